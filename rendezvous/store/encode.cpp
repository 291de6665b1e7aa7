#include "rendezvous/store/encode.hpp"

#include <cstdint>
#include <cstring>

namespace muster::store {
namespace {

namespace kv = rendezvous::kv;

constexpr char kReady = 0;
constexpr char kNotReady = 1;
constexpr char kStopWaiting = 0;
constexpr char kWaitCancelled = 1;
constexpr char kWatching = 3;
constexpr std::size_t kNumberBytes = 8;  // Also of a length.

template <class Number>
void put(Number number, std::string& out) {
  char bytes[sizeof number];
  std::memcpy(bytes, &number, sizeof number);
  out.append(bytes, sizeof bytes);
}

void put(std::string_view bytes, std::string& out) {
  put(std::uint64_t{bytes.size()}, out);
  out.append(bytes);
}

struct Size {
  std::size_t operator()(const kv::Nothing&) const { return 0; }
  std::size_t operator()(const kv::Withheld&) const { return 0; }
  std::size_t operator()(const kv::Refused&) const { return 0; }
  std::size_t operator()(const kv::StopWaiting&) const { return 1; }
  std::size_t operator()(const kv::WaitCancelled&) const { return 1; }
  std::size_t operator()(const kv::Watching&) const { return 1; }
  std::size_t operator()(const kv::Readiness&) const { return 1; }
  std::size_t operator()(const kv::Number&) const { return kNumberBytes; }
  std::size_t operator()(const kv::Echo&) const { return sizeof(kv::Echo::nonce); }
  std::size_t operator()(const kv::Value& value) const { return of(value.bytes); }
  std::size_t operator()(const kv::Values& values) const {
    std::size_t total = 0;
    for (const auto value : values.each) total += of(value);
    return total;
  }
  std::size_t operator()(const kv::Keys& keys) const {
    std::size_t total = kNumberBytes;
    for (const auto key : keys.each) total += of(key);
    return total;
  }
  std::size_t operator()(const kv::Popped& popped) const {
    return kNumberBytes + (popped.length_before == 0 ? 0 : of(popped.item));
  }

  static std::size_t of(std::string_view bytes) { return kNumberBytes + bytes.size(); }
};

struct Encode {
  std::string& out;

  void operator()(const kv::Nothing&) const {}
  void operator()(const kv::Withheld&) const {}
  void operator()(const kv::Refused&) const {}
  void operator()(const kv::StopWaiting&) const { out.push_back(kStopWaiting); }
  void operator()(const kv::WaitCancelled&) const { out.push_back(kWaitCancelled); }
  void operator()(const kv::Watching&) const { out.push_back(kWatching); }
  void operator()(const kv::Readiness& answer) const {
    out.push_back(answer.all_exist ? kReady : kNotReady);
  }
  void operator()(const kv::Number& number) const { put(number.value, out); }
  void operator()(const kv::Echo& echo) const { put(echo.nonce, out); }
  void operator()(const kv::Value& value) const { put(value.bytes, out); }
  void operator()(const kv::Values& values) const {
    for (const auto value : values.each) put(value, out);
  }
  void operator()(const kv::Keys& keys) const {
    put(std::uint64_t{keys.each.size()}, out);
    for (const auto key : keys.each) put(key, out);
  }
  void operator()(const kv::Popped& popped) const {
    put(popped.length_before, out);
    if (popped.length_before != 0) put(popped.item, out);
  }
};

}  // namespace

std::size_t encoded_size(const kv::Reply& reply) { return std::visit(Size{}, reply); }

void encode(const kv::Reply& reply, std::string& out) { std::visit(Encode{out}, reply); }

void encode_stop_waiting(std::string& out) { out.push_back(kStopWaiting); }

}  // namespace muster::store
