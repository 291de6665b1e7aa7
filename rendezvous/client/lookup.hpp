#pragma once

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "base/posix/socket.hpp"

#include <functional>
#include <memory>
#include <vector>

#include <boost/asio/io_context.hpp>

namespace muster::rendezvous {

/// Finds the addresses of a host without holding up the loop. Loop thread only.
///
/// A name is looked up on a thread of its own, which is left behind when the look-up is given up:
/// the system's resolver can't be interrupted, and may take half a minute.
class Lookup {
 public:
  using Handler = std::function<void(Result<std::vector<posix::SocketAddress>>)>;

  /// `found` is called from the loop, unless the object is gone by then.
  Lookup(boost::asio::io_context& loop, Endpoint endpoint, Handler found);
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;
  ~Lookup();

 private:
  class Wait;
  std::shared_ptr<Wait> wait_;
};

}  // namespace muster::rendezvous
