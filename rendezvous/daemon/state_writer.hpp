#pragma once

#include "base/error.hpp"
#include "base/ids.hpp"
#include "rendezvous/daemon/state_folder.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

namespace muster::rendezvous {

/// Keeps records in a state folder from a thread of its own: the folder may be on a busy disk or on
/// another machine, and the loop waits for neither. Owned by main; loop thread only.
class StateWriter {
 public:
  /// Records that wait to be written. One more, where the disk is stuck, is a failure at once.
  static constexpr std::size_t kMostPending = 1024;

  struct Options {
    std::uint16_t port = 0;
    Duration oldest{};  ///< What is older is forgotten with each record that is kept.
  };
  /// Told from the loop: what could not be kept, and why.
  using Failed = std::function<void(const std::string& what, const Error& error)>;

  StateWriter(boost::asio::io_context& loop, StateFolder folder, Options options, Failed failed);
  StateWriter(const StateWriter&) = delete;
  StateWriter& operator=(const StateWriter&) = delete;
  ~StateWriter();  ///< Waits for what is being written.

  /// `what` names the record in failures.
  void keep(std::string what, std::string record);

  /// When the loop runs no more: waits until all is written, and tells of failures.
  void finish();

 private:
  boost::asio::io_context& loop_;
  StateFolder folder_;  // The thread's, from the first `keep` on.
  Options options_;
  Failed failed_;
  std::size_t pending_ = 0;
  boost::asio::thread_pool thread_{1};
};

}  // namespace muster::rendezvous
