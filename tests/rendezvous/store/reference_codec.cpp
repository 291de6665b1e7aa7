#include "tests/rendezvous/store/reference_codec.hpp"

#include <map>

namespace kv = muster::rendezvous::kv;
using muster::store::Dialect;

namespace {

/// By opcode: the name of the operation and its fields. k: a key, v: a value, K: keys, P: pairs of
/// key and value, 8 and 4: a number of so many bytes.
struct Layout {
  std::string_view name, fields;
};
using Layouts = std::map<int, Layout>;

const Layouts kShared{{0, {"set", "kv"}}, {1, {"compare_set", "kvv"}}, {2, {"get", "k"}},
                      {3, {"add", "k8"}}, {4, {"check", "K"}},         {5, {"wait", "K"}},
                      {6, {"count", ""}}};

Layouts with(Layouts layouts, const Layouts& more) {
  layouts.insert(more.begin(), more.end());
  return layouts;
}

const Layouts kBAlone{{9, {"multi_get", "K"}}, {10, {"multi_set", "P"}}, {11, {"cancel", ""}}};
const Layouts kA = with(kShared, {{7, {"watch", "k"}}, {8, {"delete", "k"}}});
const Layouts kASettled = with(kShared, {{7, {"delete", "k"}}, {8, {"delete", "k"}}});
const Layouts kB = with(with(kShared, kBAlone), {{7, {"delete", "k"}}, {8, {"append", "kv"}}});
const Layouts kAOrB = with(with(kShared, kBAlone), {{7, {"delete", "k"}}, {8, {"?", "k"}}});
const Layouts kC{{1, {"set", "kv"}},       {2, {"compare_set", "kvv"}}, {3, {"get", "k"}},
                 {4, {"add", "k8"}},       {5, {"check", "K"}},         {6, {"wait", "K"}},
                 {7, {"count", ""}},       {8, {"delete", "k"}},        {9, {"append", "kv"}},
                 {10, {"multi_get", "K"}}, {11, {"multi_set", "P"}},    {12, {"cancel", ""}}};
const Layouts kD = with(kC, {{13, {"ping", "4"}}});
const Layouts kE = with(kD, {{14, {"push", "kv"}}, {15, {"pop", "k"}}, {16, {"length", "k"}}});
const Layouts kF = with(kE, {{17, {"list", ""}}});
const Layouts kG = with(kF, {{18, {"barrier", "k8"}}});

const Layouts& layouts_of(Dialect dialect) {
  switch (dialect) {
    case Dialect::A:
      return kA;
    case Dialect::B:
      return kB;
    case Dialect::C:
      return kC;
    case Dialect::D:
      return kD;
    case Dialect::E:
      return kE;
    case Dialect::F:
      return kF;
    case Dialect::G:
      break;
  }
  return kG;
}

std::string number_bytes(std::uint64_t number, int bytes) {
  std::string text;
  for (int at = 0; at < bytes; ++at) text += static_cast<char>(number >> (8 * at) & 0xff);
  return text;
}

std::string text_bytes(std::string_view text) {
  return number_bytes(text.size(), 8) + std::string(text);
}

std::string keys_bytes(std::span<const std::string_view> keys) {
  std::string bytes = number_bytes(keys.size(), 8);
  for (const auto key : keys) bytes += text_bytes(key);
  return bytes;
}

/// The name of a command and the bytes of its fields.
std::pair<std::string_view, std::string> name_and_body(const kv::Command& command) {
  using Result = std::pair<std::string_view, std::string>;
  struct {
    Result operator()(const kv::Set& is) {
      return {"set", text_bytes(is.key) + text_bytes(is.value)};
    }
    Result operator()(const kv::CompareSet& is) {
      return {"compare_set", text_bytes(is.key) + text_bytes(is.expected) + text_bytes(is.desired)};
    }
    Result operator()(const kv::Get& is) { return {"get", text_bytes(is.key)}; }
    Result operator()(const kv::Add& is) {
      return {"add", text_bytes(is.key) + number_bytes(static_cast<std::uint64_t>(is.delta), 8)};
    }
    Result operator()(const kv::Check& is) { return {"check", keys_bytes(is.keys)}; }
    Result operator()(const kv::Wait& is) { return {"wait", keys_bytes(is.keys)}; }
    Result operator()(const kv::CountKeys&) { return {"count", ""}; }
    Result operator()(const kv::Delete& is) { return {"delete", text_bytes(is.key)}; }
    Result operator()(const kv::Append& is) {
      return {"append", text_bytes(is.key) + text_bytes(is.tail)};
    }
    Result operator()(const kv::MultiGet& is) { return {"multi_get", keys_bytes(is.keys)}; }
    Result operator()(const kv::MultiSet& is) {
      std::string body = number_bytes(is.pairs.size(), 8);
      for (const auto& [key, value] : is.pairs) body += text_bytes(key) + text_bytes(value);
      return {"multi_set", body};
    }
    Result operator()(const kv::CancelWait&) { return {"cancel", ""}; }
    Result operator()(const kv::Ping& is) { return {"ping", number_bytes(is.nonce, 4)}; }
    Result operator()(const kv::QueuePush& is) {
      return {"push", text_bytes(is.key) + text_bytes(is.item)};
    }
    Result operator()(const kv::QueuePop& is) { return {"pop", text_bytes(is.key)}; }
    Result operator()(const kv::QueueLength& is) { return {"length", text_bytes(is.key)}; }
    Result operator()(const kv::ListKeys&) { return {"list", ""}; }
    Result operator()(const kv::Barrier& is) {
      return {"barrier",
              text_bytes(is.key) + number_bytes(static_cast<std::uint64_t>(is.world_size), 8)};
    }
    Result operator()(const kv::Watch& is) { return {"watch", text_bytes(is.key)}; }
  } split;
  return std::visit(split, command);
}

}  // namespace

ReferenceCodec::ReferenceCodec(const muster::store::Limits& limits, std::optional<Dialect> dialect)
    : limits_(limits), dialect_(dialect) {
  if (dialect == Dialect::A) speech_ = 'A';
  if (dialect == Dialect::B) speech_ = 'B';
}

ReferenceCodec::Found ReferenceCodec::take(std::string& input) {
  if (input.empty()) return Found::Partial;
  if (speech_ == '?') {
    const std::string validate("\x00\xCE\xF7\x85\x3C", 5);
    if (input[0] == 0 && input.size() < validate.size()) return Found::Partial;
    if (input.starts_with(validate)) {
      speech_ = 'G';
      input.erase(0, validate.size());
      return take(input);
    }
    if (dialect_) return Found::Refused;
    speech_ = 'x';
  }

  const auto opcode = static_cast<unsigned char>(input[0]);
  const bool is_guess = speech_ == 'x';
  const Layouts& layouts = is_guess                      ? kAOrB
                           : speech_ == 'A' && !dialect_ ? kASettled
                           : speech_ == 'A' || speech_ == 'B'
                               ? (speech_ == 'A' ? kA : kB)
                               : layouts_of(dialect_.value_or(Dialect::G));
  const auto layout = layouts.find(opcode);
  if (layout == layouts.end()) return Found::Refused;
  if (is_guess && kBAlone.contains(opcode)) speech_ = 'B';

  request_ = input;
  at_ = 1;
  is_too_long_ = false;
  texts_.clear();
  if (!take_fields(layout->second.fields)) return is_too_long_ ? Found::Refused : Found::Partial;
  if (layout->second.name == "?") {
    if (at_ == input.size()) return Found::Undecided;
    speech_ = 'B';
    return take(input);
  }
  build(layout->second.name);
  input.erase(0, at_);
  return Found::Command;
}

std::string ReferenceCodec::encode(const kv::Command& command, Dialect dialect) {
  const auto [name, body] = name_and_body(command);
  for (const auto& [opcode, layout] : layouts_of(dialect)) {
    if (layout.name == name) return static_cast<char>(opcode) + body;
  }
  return "";
}

bool ReferenceCodec::take_number(std::size_t bytes, std::uint64_t& number) {
  if (request_.size() - at_ < bytes) return false;
  number = 0;
  for (std::size_t byte = 0; byte < bytes; ++byte) {
    number |= std::uint64_t{static_cast<unsigned char>(request_[at_ + byte])} << (8 * byte);
  }
  at_ += bytes;
  return true;
}

bool ReferenceCodec::take_length(std::uint64_t limit, std::uint64_t& length) {
  // A part of a length may be too long already.
  std::uint64_t so_far = 0;
  const std::size_t there = std::min<std::size_t>(8, request_.size() - at_);
  for (std::size_t byte = 0; byte < there; ++byte) {
    so_far += std::uint64_t{static_cast<unsigned char>(request_[at_ + byte])} << (8 * byte);
  }
  is_too_long_ = so_far > limit;
  return !is_too_long_ && take_number(8, length);
}

bool ReferenceCodec::take_text(std::uint64_t limit, std::string& text) {
  std::uint64_t length = 0;
  if (!take_length(limit, length) || request_.size() - at_ < length) return false;
  text = request_.substr(at_, length);
  at_ += length;
  return true;
}

bool ReferenceCodec::take_fields(std::string_view fields) {
  for (const char field : fields) {
    if (field == '8' || field == '4') {
      if (!take_number(field == '8' ? 8 : 4, number_)) return false;
      continue;
    }
    const bool is_list = field == 'K' || field == 'P';
    std::uint64_t count = 1;
    if (is_list && !take_length(limits_.keys_per_request, count)) return false;
    for (std::uint64_t each = 0; each < count; ++each) {
      if (is_list && at_ > limits_.request_bytes) is_too_long_ = true;
      if (is_too_long_) return false;
      if (field != 'v' && !take_text(limits_.key_bytes, texts_.emplace_back())) return false;
      if (is_list && field == 'P' && at_ > limits_.request_bytes) is_too_long_ = true;
      if (is_too_long_) return false;
      if ((field == 'v' || field == 'P') &&
          !take_text(limits_.value_bytes, texts_.emplace_back())) {
        return false;
      }
    }
  }
  return true;
}

void ReferenceCodec::build(std::string_view name) {
  keys_.assign(texts_.begin(), texts_.end());
  pairs_.clear();
  for (std::size_t at = 0; at + 1 < texts_.size(); at += 2)
    pairs_.emplace_back(texts_[at], texts_[at + 1]);
  const auto signed_number = static_cast<std::int64_t>(number_);
  const auto text = [this](std::size_t at) -> std::string_view { return texts_.at(at); };
  if (name == "set") command_ = kv::Set{text(0), text(1)};
  if (name == "compare_set") command_ = kv::CompareSet{text(0), text(1), text(2)};
  if (name == "get") command_ = kv::Get{text(0)};
  if (name == "add") command_ = kv::Add{text(0), signed_number};
  if (name == "check") command_ = kv::Check{keys_};
  if (name == "wait") command_ = kv::Wait{keys_};
  if (name == "count") command_ = kv::CountKeys{};
  if (name == "watch") command_ = kv::Watch{text(0)};
  if (name == "delete") command_ = kv::Delete{text(0)};
  if (name == "append") command_ = kv::Append{text(0), text(1)};
  if (name == "multi_get") command_ = kv::MultiGet{keys_};
  if (name == "multi_set") command_ = kv::MultiSet{pairs_};
  if (name == "cancel") command_ = kv::CancelWait{};
  if (name == "ping") command_ = kv::Ping{static_cast<std::uint32_t>(number_)};
  if (name == "push") command_ = kv::QueuePush{text(0), text(1)};
  if (name == "pop") command_ = kv::QueuePop{text(0)};
  if (name == "length") command_ = kv::QueueLength{text(0)};
  if (name == "list") command_ = kv::ListKeys{};
  if (name == "barrier") command_ = kv::Barrier{text(0), signed_number};
}
