#include "rendezvous/client/printable.hpp"

namespace muster::rendezvous {

std::string printable(std::string_view bytes, std::size_t limit) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr unsigned kDelete = 0x7f;
  std::string text;
  for (const char each : bytes.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(each);
    if (byte >= ' ' && byte != kDelete) {
      text += each;
    } else {
      text += "\\x";
      text += kDigits[byte >> 4];
      text += kDigits[byte & 15];
    }
  }
  if (bytes.size() > limit) text += "...";
  return text;
}

}  // namespace muster::rendezvous
