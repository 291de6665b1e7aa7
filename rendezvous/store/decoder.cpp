#include "rendezvous/store/decoder.hpp"

#include <cstring>

namespace muster::store {
namespace {

constexpr std::uint32_t kMagic = 0x3C85F7CE;
constexpr std::size_t kValidateBytes = 5;
constexpr std::size_t kKeptStrings = 4096;  // More room than this is given back after use.

bool must_validate(const Decoder::Rules& rules) {
  return rules.refuse_unvalidated || (rules.dialect && *rules.dialect >= Dialect::C);
}

bool has_magic(std::string_view validate) {
  std::uint32_t magic = 0;
  std::memcpy(&magic, validate.data() + 1, sizeof magic);
  return magic == kMagic;
}

std::string hex_byte(unsigned char byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  return {'0', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

template <class List>
void clear(List& list) {
  list.clear();
  if (list.capacity() > kKeptStrings) list.shrink_to_fit();
}

}  // namespace

Decoder::Decoder(const Rules& rules) {
  if (rules.dialect == Dialect::A) speech_ = Speech::A;
  if (rules.dialect == Dialect::B) speech_ = Speech::B;
}

Decoder::Step Decoder::next(std::string_view input, const Rules& rules, Scratch& scratch) {
  std::size_t begin = 0;
  if (speech_ == Speech::Unknown && !input.empty()) {
    // A length of a key that begins like the magic number would be far beyond any limit.
    const bool may_validate = input[0] == 0;
    if (may_validate && input.size() < kValidateBytes) return {.found = Found::Partial};
    if (may_validate && has_magic(input)) {
      speech_ = Speech::Validated;
      begin = kValidateBytes;
    } else if (must_validate(rules)) {
      scratch.refusal = "it did not begin with VALIDATE, which this server demands";
      scratch.unknown_dialect = true;
      return {.found = Found::Refused};
    } else {
      speech_ = Speech::AOrB;
    }
  }
  if (begin == input.size()) return {.found = Found::Partial, .consumed = begin};

  const auto opcode = static_cast<unsigned char>(input[begin]);
  const Operation operation = operation_of(opcode, speech_, rules.dialect);
  if (speech_ == Speech::AOrB && opcode >= kFirstOpcodeOfBAlone && operation != Operation::None) {
    speech_ = Speech::B;
  }

  RequestReader request(input, begin, rules.limits, scratch.refusal);
  Step step{.found = Found::Partial, .consumed = begin};
  if (operation == Operation::None) {
    scratch.refusal = "opcode " + hex_byte(opcode) + " is unknown";
  } else if (read(operation, request, scratch, step.command)) {
    const bool can_be_append = operation == Operation::DeleteOrAppend;
    if (can_be_append && request.at() == input.size())
      return {.found = Found::Undecided, .consumed = begin};
    if (can_be_append) {
      speech_ = Speech::B;
      return next(input, rules, scratch);
    }
    step.found = Found::Command;
    step.consumed = request.at();
    has_spoken_ = true;
  }
  if (!scratch.refusal.empty()) {
    step.found = Found::Refused;
    scratch.unknown_dialect = operation == Operation::None || !has_spoken_;
  }
  return step;
}

bool Decoder::read(Operation operation, RequestReader& request, Scratch& scratch,
                   kv::Command& command) {
  switch (operation) {
    case Operation::None:
      return false;
    case Operation::Set: {
      auto& set = command.emplace<kv::Set>();
      return request.key(set.key) && request.value(set.value);
    }
    case Operation::CompareSet: {
      auto& swap = command.emplace<kv::CompareSet>();
      return request.key(swap.key) && request.value(swap.expected) && request.value(swap.desired);
    }
    case Operation::Get:
      return request.key(command.emplace<kv::Get>().key);
    case Operation::Add: {
      auto& add = command.emplace<kv::Add>();
      return request.key(add.key) && request.number(add.delta);
    }
    case Operation::Check:
      if (!read_keys(request, scratch)) return false;
      command = kv::Check{scratch.keys};
      return true;
    case Operation::Wait:
      if (!read_keys(request, scratch)) return false;
      command = kv::Wait{scratch.keys};
      return true;
    case Operation::CountKeys:
      command = kv::CountKeys{};
      return true;
    case Operation::Watch:
      return request.key(command.emplace<kv::Watch>().key);
    case Operation::Delete:
    case Operation::DeleteOrAppend:
      return request.key(command.emplace<kv::Delete>().key);
    case Operation::Append: {
      auto& append = command.emplace<kv::Append>();
      return request.key(append.key) && request.value(append.tail);
    }
    case Operation::MultiGet:
      if (!read_keys(request, scratch)) return false;
      command = kv::MultiGet{scratch.keys};
      return true;
    case Operation::MultiSet:
      if (!read_pairs(request, scratch)) return false;
      command = kv::MultiSet{scratch.pairs};
      return true;
    case Operation::CancelWait:
      command = kv::CancelWait{};
      return true;
    case Operation::Ping:
      return request.number(command.emplace<kv::Ping>().nonce);
    case Operation::QueuePush: {
      auto& push = command.emplace<kv::QueuePush>();
      return request.key(push.key) && request.value(push.item);
    }
    case Operation::QueuePop:
      return request.key(command.emplace<kv::QueuePop>().key);
    case Operation::QueueLength:
      return request.key(command.emplace<kv::QueueLength>().key);
    case Operation::ListKeys:
      command = kv::ListKeys{};
      return true;
    case Operation::Barrier: {
      auto& barrier = command.emplace<kv::Barrier>();
      return request.key(barrier.key) && request.number(barrier.world_size);
    }
  }
  return false;
}

bool Decoder::read_keys(RequestReader& request, Scratch& scratch) {
  clear(scratch.keys);
  std::uint64_t count = 0;
  if (!skip_list(request, RequestReader::Strings::Keys, count)) return false;
  scratch.keys.resize(count);
  for (auto& key : scratch.keys) {
    if (!request.key(key)) return false;
  }
  return true;
}

bool Decoder::read_pairs(RequestReader& request, Scratch& scratch) {
  clear(scratch.pairs);
  std::uint64_t count = 0;
  if (!skip_list(request, RequestReader::Strings::Pairs, count)) return false;
  scratch.pairs.resize(count);
  for (auto& [key, value] : scratch.pairs) {
    if (!request.key(key) || !request.value(value)) return false;
  }
  return true;
}

/// Whether the whole of a list has come; then `request` stands at its first string.
bool Decoder::skip_list(RequestReader& request, RequestReader::Strings kind, std::uint64_t& count) {
  if (!request.count(count)) return false;
  const std::size_t first = request.at();
  const bool begun = scanned_ != 0;
  if (!begun) strings_left_ = kind == RequestReader::Strings::Pairs ? 2 * count : count;
  if (!request.skip(kind, strings_left_, scanned_)) return false;
  request.go_to(first);
  return true;
}

}  // namespace muster::store
