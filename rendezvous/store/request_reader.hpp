#pragma once

#include "rendezvous/store/limits.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace muster::store {

/// Reads the fields of one request, each against its limit. Functions answer whether they got what
/// they wanted; if not, `refusal` says what was wrong, or it is empty and the rest must still come.
class RequestReader {
 public:
  /// `begin` is where the opcode stands.
  RequestReader(std::string_view input, std::size_t begin, const Limits& limits,
                std::string& refusal)
      : input_(input), begin_(begin), at_(begin + 1), limits_(limits), refusal_(refusal) {
    refusal_.clear();
  }

  template <class Number>
  [[nodiscard]] bool number(Number& value) {
    if (input_.size() - at_ < sizeof value) return false;
    std::memcpy(&value, input_.data() + at_, sizeof value);
    at_ += sizeof value;
    return true;
  }
  [[nodiscard]] bool key(std::string_view& key) { return string(key, limits_.key_bytes, "a key"); }
  [[nodiscard]] bool value(std::string_view& value) {
    return string(value, limits_.value_bytes, "a value");
  }
  /// How many keys, or pairs of key and value, follow.
  [[nodiscard]] bool count(std::uint64_t& count) {
    return bounded(count, limits_.keys_per_request, "a list", " keys");
  }

  enum class Strings { Keys, Pairs };
  /// Goes over the `left` last strings of a list, without keeping them. When it does not get to the
  /// end, `left` and `scanned` tell a later call with more input where to go on.
  [[nodiscard]] bool skip(Strings kind, std::uint64_t& left, std::size_t& scanned);

  [[nodiscard]] std::size_t at() const noexcept { return at_; }
  void go_to(std::size_t at) noexcept { at_ = at; }

 private:
  [[nodiscard]] bool bounded(std::uint64_t& value, std::uint64_t limit, std::string_view what,
                             std::string_view unit);
  [[nodiscard]] bool string(std::string_view& bytes, std::size_t limit, std::string_view what);

  std::string_view input_;
  std::size_t begin_;
  std::size_t at_;
  const Limits& limits_;
  std::string& refusal_;
};

}  // namespace muster::store
