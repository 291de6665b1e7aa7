#include "rendezvous/store_client/request.hpp"

#include <cstring>

namespace muster::store_client {

Request& Request::number(std::uint64_t value) {
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  bytes_.append(raw, sizeof raw);
  return *this;
}

Request& Request::raw(std::string_view bytes) {
  bytes_.append(bytes);
  return *this;
}

Request& Request::bytes(std::string_view value) {
  number(value.size());
  bytes_.append(value);
  return *this;
}

Request& Request::key(std::string_view prefix, std::string_view key) {
  number(prefix.size() + key.size());
  bytes_.append(prefix);
  bytes_.append(key);
  return *this;
}

Request& Request::keys(std::string_view prefix, std::span<const std::string> keys) {
  number(keys.size());
  for (const auto& each : keys) key(prefix, each);
  return *this;
}

}  // namespace muster::store_client
