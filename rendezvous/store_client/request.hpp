#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace muster::store_client {

/// The bytes of one request, field by field. Numbers are in the host's byte order: that is what the
/// protocol says.
class Request {
 public:
  explicit Request(std::uint8_t opcode) { bytes_.push_back(static_cast<char>(opcode)); }

  Request& number(std::uint64_t value);
  Request& raw(std::string_view bytes);
  Request& bytes(std::string_view value);
  Request& key(std::string_view prefix, std::string_view key);
  /// The count, then each key.
  Request& keys(std::string_view prefix, std::span<const std::string> keys);

  [[nodiscard]] std::string_view view() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace muster::store_client
