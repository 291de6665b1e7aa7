#include "tests/fuzz/reply_reference.hpp"

#include "base/error.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

using muster::Errc;
using muster::store_client::Operation;
using muster::store_client::ServerDialect;

std::string number_text(std::int64_t number) { return "number=" + std::to_string(number) + " "; }
std::string value_text(std::string_view value) {
  return "value=" + std::to_string(value.size()) + ":" + std::string(value) + " ";
}
std::string error_text(int code) { return "error=" + std::to_string(code); }

namespace {

constexpr std::uint64_t kRoom = 64 << 20;
constexpr std::int64_t kCountLimit = std::int64_t{1} << 40;
constexpr std::int64_t kKeysLimit = 1 << 20;

/// Reads replies. A failure is thrown: here nothing is left to do after one.
class Reader {
 public:
  Reader(const ScriptedReplies& replies, bool can_cancel)
      : bytes_(replies.bytes), script_(replies), can_cancel_(can_cancel) {}

  std::string_view take(std::uint64_t size) {
    if (size == 0) return {};
    if (script_.pauses_first) throw Errc::Timeout;
    if (bytes_.size() - at_ < size) throw script_.stays_silent ? Errc::Timeout : Errc::Unavailable;
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  int byte() { return static_cast<unsigned char>(take(1)[0]); }
  std::int64_t number() {
    std::int64_t value = 0;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::int64_t count(std::int64_t most = kCountLimit) {
    const auto value = number();
    if (value < 0 || value > most) throw Errc::Internal;
    return value;
  }
  std::string value() {
    const auto size = static_cast<std::uint64_t>(number());
    if (size > room_) throw Errc::Internal;
    room_ -= size;
    return std::string(take(size));
  }
  bool flag() {
    const int value = byte();
    if (value > 1) throw Errc::Internal;
    return value == 0;
  }
  void echo() {
    if (take(4) != "\x7F\x7F\x7F\x7F") throw Errc::Internal;
  }
  void release() {
    if (script_.pauses_first && can_cancel_) {
      script_.pauses_first = false;
      int answer = byte();
      const bool crossed = answer == 0;
      if (crossed) answer = byte();
      if (answer != 1) throw Errc::Internal;
      if (crossed) return;
      was_cancelled_ = true;
      throw Errc::Timeout;
    }
    if (byte() != 0) throw Errc::Internal;
  }

  /// What has come with the last piece beyond the reply.
  [[nodiscard]] bool has_leftover() const {
    return at_ % script_.piece != 0 && at_ != bytes_.size();
  }
  void end() {
    if (has_leftover()) throw Errc::Internal;
    room_ = kRoom;
  }
  [[nodiscard]] bool was_cancelled() const { return was_cancelled_; }

 private:
  std::string_view bytes_;
  ScriptedReplies script_;
  bool can_cancel_;
  std::size_t at_ = 0;
  std::uint64_t room_ = kRoom;
  bool was_cancelled_ = false;
};

std::string pop(Reader& reader) {
  if (reader.count() == 0) return "";
  return value_text(reader.value());
}

std::string read(Act act, Reader& reader, bool has_ping) {
  std::string text;
  switch (act) {
    case Act::Connect:
      return "ok";
    case Act::SetAndFlush:
    case Act::MultiSetAndFlush:
    case Act::AppendAndFlush:
      if (has_ping) {
        reader.echo();
      } else {
        reader.count();
      }
      return "ok";
    case Act::Get:
      reader.release();
      reader.end();
      return value_text(reader.value());
    case Act::MultiGet:
      reader.release();
      reader.end();
      for (std::size_t key = 0; key < kMultiGetKeys; ++key) text += value_text(reader.value());
      return text;
    case Act::Wait:
    case Act::Barrier:
      reader.release();
      return "ok";
    case Act::Check:
      return number_text(reader.flag() ? 1 : 0);
    case Act::Add:
      return number_text(reader.number());
    case Act::CompareSet:
      return value_text(reader.value());
    case Act::Delete:
      return number_text(reader.count() > 0 ? 1 : 0);
    case Act::CountKeys:
    case Act::QueueLength:
      return number_text(reader.count());
    case Act::ListKeys: {
      std::vector<std::string> keys;
      for (auto left = reader.count(kKeysLimit); left > 0; --left) {
        if (auto key = reader.value(); key.starts_with("/")) keys.push_back(key.substr(1));
      }
      std::sort(keys.begin(), keys.end());
      for (const auto& key : keys) text += value_text(key);
      return text;
    }
    case Act::QueuePush:
    case Act::Ping:
      reader.echo();
      return "ok";
    case Act::QueuePop:
      while ((text = pop(reader)).empty()) {
        reader.end();
        reader.release();
        reader.end();
      }
      return text;
    case Act::QueueTryPop:
      return pop(reader);
    case Act::BarrierOfView:
      static_cast<void>(reader.number());
      reader.end();
      reader.release();
      return "ok";
  }
  return text;
}

std::optional<Operation> needed_by(Act act) {
  switch (act) {
    case Act::MultiSetAndFlush:
      return Operation::MultiSet;
    case Act::AppendAndFlush:
      return Operation::Append;
    case Act::MultiGet:
      return Operation::MultiGet;
    case Act::ListKeys:
      return Operation::ListKeys;
    case Act::QueuePush:
      return Operation::QueuePush;
    case Act::QueuePop:
    case Act::QueueTryPop:
      return Operation::QueuePop;
    case Act::QueueLength:
      return Operation::QueueLen;
    case Act::Barrier:
      return Operation::Barrier;
    case Act::Ping:
      return Operation::Ping;
    default:
      return std::nullopt;
  }
}

}  // namespace

Expected expected_of(Act act, ServerDialect dialect, const ScriptedReplies& replies) {
  const auto has = [dialect](Operation operation) {
    return muster::store_client::opcode(dialect, operation).has_value();
  };
  if (const auto needed = needed_by(act); needed && !has(*needed)) {
    return {error_text(static_cast<int>(Errc::InvalidArgument)), true};
  }
  Reader reader(replies, has(Operation::CancelWait));
  try {
    auto text = read(act, reader, has(Operation::Ping));
    const bool is_flush =
        act == Act::SetAndFlush || act == Act::MultiSetAndFlush || act == Act::AppendAndFlush;
    if (!is_flush) reader.end();  // After a flush the next call would find it.
    return {std::move(text), !reader.has_leftover()};
  } catch (const Errc code) {
    return {error_text(static_cast<int>(code)), reader.was_cancelled() && !reader.has_leftover()};
  }
}
