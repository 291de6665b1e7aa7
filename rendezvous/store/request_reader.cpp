#include "rendezvous/store/request_reader.hpp"

#include "rendezvous/core/planted_fault.hpp"

#include <algorithm>
#include <bit>

namespace muster::store {
namespace {

constexpr std::size_t kLengthBytes = 8;

// The wire has the byte order of the client, and clients are little-endian. Here it matters too
// that the low bytes of a length come first.
static_assert(std::endian::native == std::endian::little);

}  // namespace

bool RequestReader::skip(Strings kind, std::uint64_t& left, std::size_t& scanned) {
  if (scanned != 0) at_ = begin_ + scanned;
  std::string_view ignored;
  while (left != 0) {
    scanned = at_ - begin_;
    if (scanned > limits_.request_bytes) {
      refusal_ =
          "a request longer than the limit of " + std::to_string(limits_.request_bytes) + " bytes";
      return false;
    }
    const bool is_value = kind == Strings::Pairs && left % 2 == 1;
    if (!(is_value ? value(ignored) : key(ignored))) return false;
    --left;
  }
  scanned = 0;
  return true;
}

bool RequestReader::bounded(std::uint64_t& value, std::uint64_t limit, std::string_view what,
                            std::string_view unit) {
  const std::size_t there = std::min(input_.size() - at_, kLengthBytes);
  value = 0;
  std::memcpy(&value, input_.data() + at_, there);
  if constexpr (MUSTER_PLANTED_FAULT == 4) ++limit;
  const bool fits = value <= limit;
  if (!fits) {  // Also if part of it is still to come: that can only make it larger.
    refusal_.append(what).append(there < kLengthBytes ? " of at least " : " of ");
    refusal_.append(std::to_string(value)).append(unit);
    refusal_.append("; the limit is ").append(std::to_string(limit));
    return false;
  }
  if (there < kLengthBytes) return false;
  at_ += kLengthBytes;
  return true;
}

bool RequestReader::string(std::string_view& bytes, std::size_t limit, std::string_view what) {
  std::uint64_t size = 0;
  if (!bounded(size, limit, what, " bytes") || input_.size() - at_ < size) return false;
  bytes = input_.substr(at_, size);
  at_ += size;
  return true;
}

}  // namespace muster::store
