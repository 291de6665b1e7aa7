#include "rendezvous/store/refusal_log.hpp"

#include <string>

namespace muster::store {
namespace {

constexpr std::size_t kShownBytes = 24;

std::string in_hex(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char each : bytes.substr(0, kShownBytes)) {
    const auto byte = static_cast<unsigned char>(each);
    if (!text.empty()) text += ' ';
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  if (bytes.size() > kShownBytes) text += " ...";
  return text;
}

}  // namespace

void RefusalLog::refused(TimePoint now, const Endpoint& peer, std::string_view reason) {
  if (!may_speak(now)) return;
  logger_.warn("{} closed a connection peer={} reason=\"{}\"", who_, to_string(peer), reason);
}

void RefusalLog::unknown_dialect(TimePoint now, const Endpoint& peer, std::string_view reason,
                                 std::string_view first) {
  if (!may_speak(now)) return;
  logger_.warn(
      "{} closed a connection that speaks no dialect it knows peer={} reason=\"{}\" "
      "bytes=\"{}\"; if "
      "this is a PyTorch newer than this program knows, --worker-store torch lets rank 0 host the "
      "store",
      who_, to_string(peer), reason, in_hex(first));
}

bool RefusalLog::may_speak(TimePoint now) {
  ++count_;
  if (!window_start_ || now - *window_start_ >= kWindow) {
    window_start_ = now;
    lines_ = 0;
    if (unsaid_ != 0) {
      logger_.warn("{} closed more connections for a reason count={}", who_, unsaid_);
    }
    unsaid_ = 0;
  }
  if (lines_ == kLinesPerWindow) {
    ++unsaid_;
    return false;
  }
  ++lines_;
  return true;
}

}  // namespace muster::store
