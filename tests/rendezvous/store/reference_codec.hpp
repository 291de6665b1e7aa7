#pragma once

#include "rendezvous/core/kv_command.hpp"
#include "rendezvous/store/limits.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// The wire format once more, in the plainest words: a table of fields, read from the beginning of
/// the request each time. The store's decoder is compared with it.
class ReferenceCodec {
 public:
  ReferenceCodec(const muster::store::Limits& limits,
                 std::optional<muster::store::Dialect> dialect);

  enum class Found { Command, Partial, Undecided, Refused };
  /// Takes the first command off `input`. What it points to is valid until the next call.
  Found take(std::string& input);
  [[nodiscard]] const muster::rendezvous::kv::Command& command() const { return command_; }

  /// After Undecided: it was all.
  void settle() { speech_ = 'A'; }
  [[nodiscard]] bool abandons_waits() const { return speech_ == 'A' || speech_ == 'x'; }

  /// The bytes of a command in a dialect (after VALIDATE, from C on); empty if it has no such
  /// command.
  [[nodiscard]] static std::string encode(const muster::rendezvous::kv::Command& command,
                                          muster::store::Dialect dialect);

 private:
  bool take_number(std::size_t bytes, std::uint64_t& number);
  bool take_length(std::uint64_t limit, std::uint64_t& length);
  bool take_text(std::uint64_t limit, std::string& text);
  bool take_fields(std::string_view fields);
  void build(std::string_view name);

  muster::store::Limits limits_;
  std::optional<muster::store::Dialect> dialect_;
  char speech_ = '?';  ///< ? unknown, x A or B, A, B, G for C and later.

  // The request being read.
  std::string request_;
  std::size_t at_ = 0;
  bool is_too_long_ = false;
  std::vector<std::string> texts_;
  std::vector<std::string_view> keys_;
  std::vector<std::pair<std::string_view, std::string_view>> pairs_;
  std::uint64_t number_ = 0;
  muster::rendezvous::kv::Command command_;
};
