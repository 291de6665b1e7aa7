#pragma once

#include "base/endpoint.hpp"
#include "base/ids.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

namespace muster::agent {

/// Knocks on the port of the master's store (protocol.md 4) until it is heard: connects, says the
/// round's secret, and waits to be welcomed; again and again, with growing pauses. Loop thread
/// only. Destroyed, it stops.
class Knocker {
 public:
  static constexpr Duration kFirstPause = std::chrono::milliseconds(5);
  static constexpr Duration kLongestPause = std::chrono::milliseconds(200);
  /// An attempt that had no answer by then is given up for a fresh one: a lost first packet would
  /// be repeated by the kernel after a second only.
  static constexpr Duration kAttemptPatience = std::chrono::seconds(1);

  struct Handlers {
    std::function<void()> on_heard;
    /// Of one attempt; the next follows by itself. Names both ends and the cause.
    std::function<void(const std::string& detail)> on_failed;
  };

  /// `own_address` is for messages. Handlers are called from the loop, never from within this call,
  /// and may destroy the knocker.
  Knocker(boost::asio::io_context& loop, Endpoint store, std::string secret,
          std::string own_address, Handlers handlers);
  Knocker(const Knocker&) = delete;
  Knocker& operator=(const Knocker&) = delete;
  ~Knocker();

 private:
  class Attempts;
  std::shared_ptr<Attempts> attempts_;
};

}  // namespace muster::agent
