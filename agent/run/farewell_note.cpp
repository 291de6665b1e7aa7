#include "agent/run/farewell_note.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace muster::agent {
namespace {

// Read by a fork of the process that wrote it: no byte order, no version.

class Writer {
 public:
  void number(std::uint64_t value) {
    text_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void string(std::string_view value) {
    number(value.size());
    text_.append(value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  std::uint64_t number() {
    std::uint64_t value = 0;
    const auto bytes = piece(sizeof value);
    if (is_whole_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string string() { return std::string(piece(number())); }
  /// Nothing was missing and nothing is left.
  bool is_complete() const { return is_whole_ && rest_.empty(); }

 private:
  std::string_view piece(std::uint64_t size) {
    if (size > rest_.size()) {
      is_whole_ = false;
      return {};
    }
    const auto bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }

  std::string_view rest_;
  bool is_whole_ = true;
};

}  // namespace

std::string encode(const FarewellNote& note) {
  Writer writer;
  writer.string(note.server.host);
  writer.number(note.server.port);
  writer.number(note.token.has_value() ? 1 : 0);
  writer.string(note.token.value_or(""));
  writer.string(note.farewell.job);
  writer.string(note.farewell.secret);
  const auto round = note.farewell.round.value_or(RoundId{});
  writer.number(note.farewell.round.has_value() ? 1 : 0);
  writer.number(round.epoch);
  writer.number(round.number);
  writer.string(note.farewell.reason);
  writer.number(note.farewell.preempted ? 1 : 0);
  return writer.take();
}

std::optional<FarewellNote> decode_farewell_note(std::string_view text) {
  Reader reader(text);
  FarewellNote note;
  note.server.host = reader.string();
  note.server.port = static_cast<std::uint16_t>(reader.number());
  const bool has_token = reader.number() != 0;
  auto token = reader.string();
  if (has_token) note.token = std::move(token);
  note.farewell.job = reader.string();
  note.farewell.secret = reader.string();
  const bool has_round = reader.number() != 0;
  RoundId round;
  round.epoch = reader.number();
  round.number = reader.number();
  if (has_round) note.farewell.round = round;
  note.farewell.reason = reader.string();
  note.farewell.preempted = reader.number() != 0;
  if (!reader.is_complete()) return std::nullopt;
  return note;
}

}  // namespace muster::agent
