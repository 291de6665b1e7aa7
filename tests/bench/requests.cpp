#include "tests/bench/requests.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

namespace muster::bench {
namespace {

static_assert(std::endian::native == std::endian::little, "the store's wire is the host's order");

/// Of dialect D, those that are used here.
namespace opcode {
constexpr char kValidate = 0;
constexpr char kSet = 1;
constexpr char kGet = 3;
constexpr char kAdd = 4;
constexpr char kCheck = 5;
constexpr char kWait = 6;
constexpr char kPing = 13;
}  // namespace opcode

constexpr std::uint32_t kMagic = 0x3C85F7CE;
constexpr std::uint32_t kFirstNonce = 0x1000;
constexpr std::size_t kStampBytes = 8;

template <class Integer>
void put(std::string& out, Integer value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof value);
}

void put_string(std::string& out, std::string_view text) {
  put(out, std::uint64_t{text.size()});
  out += text;
}

void key_list_of_one(std::string& out, char code, const std::string& key) {
  out += code;
  put(out, std::uint64_t{1});
  put_string(out, key);
}

std::string key_of(std::uint32_t connection) {
  std::string digits = std::to_string(connection);
  return "/bench/" + std::string(6 - std::min<std::size_t>(6, digits.size()), '0') + digits;
}

std::string hex(std::span<const char> bytes) {
  constexpr std::size_t kShown = 16;
  std::string text;
  for (const char byte : bytes.first(std::min(bytes.size(), kShown))) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const auto value = static_cast<unsigned char>(byte);
    text += {kDigits[value >> 4U], kDigits[value & 15U]};
  }
  return text;
}

}  // namespace

namespace wire {

void validate(std::string& out) {
  out += opcode::kValidate;
  put(out, kMagic);
}

void ping(std::string& out, std::uint32_t nonce) {
  out += opcode::kPing;
  put(out, nonce);
}

void set(std::string& out, const std::string& key, std::string_view value) {
  out += opcode::kSet;
  put_string(out, key);
  put_string(out, value);
}

void get(std::string& out, const std::string& key) {
  out += opcode::kGet;
  put_string(out, key);
}

void add(std::string& out, const std::string& key, std::int64_t delta) {
  out += opcode::kAdd;
  put_string(out, key);
  put(out, delta);
}

void wait(std::string& out, const std::string& key) { key_list_of_one(out, opcode::kWait, key); }

void floor_greeting(std::string& out, FloorPart part, std::uint32_t request, std::uint32_t reply) {
  put(out, part);
  put(out, request);
  put(out, reply);
}

}  // namespace wire

Conversation::Conversation(Peer peer, const Workload& workload, std::uint32_t connection)
    : peer_(peer), workload_(workload), key_(key_of(connection)), nonce_(kFirstNonce + connection) {
  if (workload_.operation == Operation::WaitGet && workload_.depth == 1 && peer_ == Peer::Store) {
    exchanges_per_operation_ = 2;
  }
  expect_next();
}

std::string Conversation::setup() const {
  std::string out;
  if (peer_ == Peer::Floor) {
    Workload one_exchange = workload_;  // A floor knows one size of request.
    one_exchange.depth = std::max(2U, workload_.depth);
    Conversation sample(Peer::Store, one_exchange, 0);
    std::string request;
    sample.append_request(request);
    wire::floor_greeting(out, wire::FloorPart::Answer, static_cast<std::uint32_t>(request.size()),
                         static_cast<std::uint32_t>(sample.expected_.size()));
    return out;
  }
  wire::validate(out);
  if (workload_.operation == Operation::Add) {
    wire::set(out, key_, "0");  // A counter of an earlier run would not start at 0.
  } else {
    std::string value;
    write_value(value, 0);
    wire::set(out, key_, value);
  }
  wire::ping(out, nonce_);
  return out;
}

bool Conversation::is_setup_reply(std::string_view reply) const {
  std::string echo;
  put(echo, nonce_);
  return peer_ == Peer::Floor || reply == echo;
}

void Conversation::write_value(std::string& out, std::uint64_t stamp) const {
  const std::size_t begin = out.size();
  out.resize(begin + workload_.value_bytes, static_cast<char>('a' + nonce_ % 26));
  std::memcpy(out.data() + begin, &stamp,
              std::min<std::size_t>(kStampBytes, workload_.value_bytes));
}

void Conversation::append_request(std::string& out) {
  const auto append_set = [&] {
    out += opcode::kSet;
    put_string(out, key_);
    put(out, std::uint64_t{workload_.value_bytes});
    write_value(out, ++sets_);
  };
  const bool second = requests_++ % exchanges_per_operation_ == 1;
  switch (workload_.operation) {
    case Operation::Ping:
      wire::ping(out, nonce_);
      break;
    case Operation::Set:
      append_set();
      wire::ping(out, nonce_);
      break;
    case Operation::SetMany:
      for (std::uint32_t i = 0; i < kSetsPerAck; ++i) append_set();
      wire::ping(out, nonce_);
      break;
    case Operation::Get:
      wire::get(out, key_);
      break;
    case Operation::Add:
      wire::add(out, key_, 1);
      break;
    case Operation::Check:
      key_list_of_one(out, opcode::kCheck, key_);
      break;
    case Operation::WaitGet:
      if (!second) wire::wait(out, key_);
      if (second || exchanges_per_operation_ == 1) wire::get(out, key_);
      break;
  }
}

void Conversation::expect_next() {
  const bool second = replies_ % exchanges_per_operation_ == 1;
  const auto value = [&] {
    put(expected_, std::uint64_t{workload_.value_bytes});
    write_value(expected_, 0);
  };
  const bool constant = workload_.operation != Operation::Add && exchanges_per_operation_ == 1;
  if (constant && !expected_.empty()) return;
  expected_.clear();
  switch (workload_.operation) {
    case Operation::Ping:
    case Operation::Set:
    case Operation::SetMany:
      put(expected_, nonce_);
      break;
    case Operation::Get:
      value();
      break;
    case Operation::Add:
      put(expected_, std::int64_t(replies_ + 1));
      break;
    case Operation::Check:
      expected_ += '\0';
      break;
    case Operation::WaitGet:
      if (!second) expected_ += '\0';
      if (second || exchanges_per_operation_ == 1) value();
      break;
  }
}

Result<std::uint32_t> Conversation::take(std::span<const char> bytes) {
  std::uint32_t completed = 0;
  while (!bytes.empty()) {
    if (replies_ == requests_) {
      return fail(Errc::InvalidArgument, "reply nobody asked for: " + hex(bytes));
    }
    const std::size_t part = std::min(bytes.size(), expected_.size() - matched_);
    const auto due = std::span(expected_).subspan(matched_, part);
    if (peer_ == Peer::Store && std::memcmp(bytes.data(), due.data(), part) != 0) {
      return fail(Errc::InvalidArgument, "reply " + std::to_string(replies_) + " for key " + key_ +
                                             " from its byte " + std::to_string(matched_) + ": " +
                                             hex(bytes) + ", expected " + hex(due));
    }
    bytes = bytes.subspan(part);
    matched_ += part;
    if (matched_ < expected_.size()) break;
    matched_ = 0;
    ++replies_;
    ++completed;
    expect_next();
  }
  return completed;
}

std::string Conversation::audit() const {
  std::string out;
  if (peer_ == Peer::Store && sets_ > 0) wire::get(out, key_);
  return out;
}

std::string Conversation::audit_reply() const {
  std::string reply;
  if (peer_ == Peer::Store && sets_ > 0) {
    put(reply, std::uint64_t{workload_.value_bytes});
    write_value(reply, sets_);
  }
  return reply;
}

Result<Operation> parse_operation(const std::string& name) {
  constexpr std::array<std::pair<std::string_view, Operation>, 7> kNames{{
      {"ping", Operation::Ping},
      {"set", Operation::Set},
      {"set64", Operation::SetMany},
      {"get", Operation::Get},
      {"add", Operation::Add},
      {"check", Operation::Check},
      {"wait_get", Operation::WaitGet},
  }};
  for (const auto& [known, operation] : kNames) {
    if (name == known) return operation;
  }
  return fail(Errc::InvalidArgument,
              "operation '" + name + "': not one of ping, set, set64, get, add, check, wait_get");
}

}  // namespace muster::bench
