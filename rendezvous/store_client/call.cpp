#include "rendezvous/store_client/call.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace muster::store_client {
namespace {

/// Keys may hold any byte: what is not printable ASCII is shown as \xNN.
void append_printable(std::string& text, std::string_view key) {
  for (const char byte : key.substr(0, kShownKeyBytes)) {
    if (byte >= ' ' && byte <= '~') {
      text.push_back(byte);
    } else {
      char escaped[5];
      std::snprintf(escaped, sizeof escaped, "\\x%02x",
                    static_cast<unsigned>(static_cast<unsigned char>(byte)));
      text += escaped;
    }
  }
  if (key.size() > kShownKeyBytes) text += "...";
}

}  // namespace

Call::Call(Act what, Duration allowed)
    : act(what),
      timeout(std::clamp(allowed, Duration::zero(), kLongestTimeout)),
      deadline(std::chrono::steady_clock::now() + timeout) {}

std::string describe(const Call::Act& act) {
  std::string text(act.verb);
  if (!act.has_key) return text;
  text += " '";
  append_printable(text, act.prefix);
  append_printable(text, act.key);
  text += '\'';
  if (act.others > 0) text += " and " + std::to_string(act.others) + " more";
  return text;
}

std::string describe(const Call& call, const Endpoint& endpoint) {
  if (call.act.verb.empty()) return "connect to " + to_string(endpoint);
  return describe(call.act) + " at " + to_string(endpoint);
}

Error call_error(const Call& call, const Endpoint& endpoint, Errc code, std::string_view cause) {
  return {code, describe(call, endpoint) + ": " + std::string(cause)};
}

std::string to_text(Duration duration) {
  char text[32];
  if (duration < std::chrono::seconds(1)) {
    std::snprintf(
        text, sizeof text, "%lldms",
        static_cast<long long>(std::chrono::ceil<std::chrono::milliseconds>(duration).count()));
  } else {
    std::snprintf(text, sizeof text, "%.1fs", std::chrono::duration<double>(duration).count());
  }
  return text;
}

}  // namespace muster::store_client
