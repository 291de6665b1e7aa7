#include "base/endpoint.hpp"

#include <charconv>

namespace muster {
namespace {

Result<std::uint16_t> parse_port(std::string_view text, std::string_view whole) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size()) {
    return fail(Errc::InvalidArgument, "endpoint '" + std::string(whole) + "': port '" +
                                           std::string(text) + "' is not a number of 0 to 65535");
  }
  return port;
}

}  // namespace

std::string to_string(const Endpoint& endpoint) {
  const std::string port = ":" + std::to_string(endpoint.port);
  if (endpoint.host.find(':') == std::string::npos) return endpoint.host + port;
  return "[" + endpoint.host + "]" + port;
}

Result<Endpoint> parse_endpoint(std::string_view text, std::uint16_t default_port) {
  Endpoint endpoint{.host = {}, .port = default_port};
  std::string_view port;
  bool has_port = false;
  if (text.starts_with('[')) {
    const auto close = text.find(']');
    if (close == std::string_view::npos) {
      return fail(Errc::InvalidArgument, "endpoint '" + std::string(text) + "': ']' is missing");
    }
    endpoint.host = text.substr(1, close - 1);
    const auto rest = text.substr(close + 1);
    if (!rest.empty() && !rest.starts_with(':')) {
      return fail(Errc::InvalidArgument,
                  "endpoint '" + std::string(text) + "': only ':port' may follow ']'");
    }
    has_port = !rest.empty();
    if (has_port) port = rest.substr(1);
  } else if (const auto colon = text.find(':');
             colon != std::string_view::npos &&
             text.find(':', colon + 1) == std::string_view::npos) {
    endpoint.host = text.substr(0, colon);
    port = text.substr(colon + 1);
    has_port = true;
  } else {
    endpoint.host = text;
  }
  if (endpoint.host.empty()) {
    return fail(Errc::InvalidArgument, "endpoint '" + std::string(text) + "': the host is missing");
  }
  if (has_port) {
    const auto parsed = parse_port(port, text);
    if (!parsed) return pass(parsed.error());
    endpoint.port = *parsed;
  }
  return endpoint;
}

}  // namespace muster
