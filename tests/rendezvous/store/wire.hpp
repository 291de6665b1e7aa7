#pragma once

#include "tests/rendezvous/store/reference_codec.hpp"

#include <string>
#include <string_view>

// Requests and replies in bytes, for tests that talk to a server.

namespace kv = muster::rendezvous::kv;

inline const std::string kValidate("\x00\xCE\xF7\x85\x3C", 5);
inline const std::string kStop(1, '\0');
inline const std::string kCancelled(1, '\1');

/// In dialect G, unless another is asked for.
inline std::string wire(const kv::Command& command,
                        muster::store::Dialect dialect = muster::store::Dialect::G) {
  return ReferenceCodec::encode(command, dialect);
}

inline std::string wire_number(std::uint64_t number) {
  std::string text;
  for (int at = 0; at < 8; ++at) text += static_cast<char>(number >> (8 * at) & 0xff);
  return text;
}

inline std::string wire_value(std::string_view value) {
  return wire_number(value.size()) + std::string(value);
}

inline std::string wire_wait(std::vector<std::string_view> keys,
                             muster::store::Dialect dialect = muster::store::Dialect::G) {
  return wire(kv::Wait{keys}, dialect);
}
