#pragma once

#include "base/endpoint.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "base/posix/fd.hpp"
#include "rendezvous/client/wire.hpp"

#include <functional>
#include <memory>
#include <string>
#include <variant>

#include <boost/asio/io_context.hpp>

namespace muster::rendezvous {

/// Finds a server of muster at an endpoint: looks the name up, tries all its addresses, a little
/// after one another, and takes the first where a server answers the Open. Loop thread only.
class Dialler {
 public:
  struct Options {
    Endpoint server;
    std::string local_address;  ///< Empty: any.
    Duration patience;          ///< For all of it.
    Duration silence;           ///< That a service may keep once the connection stands.
  };

  struct Answer {
    posix::Fd socket;
    std::variant<Challenge, Refusal> said;
    std::string nonce;  ///< The one that was sent in the Open.
    std::string rest;   ///< What came behind the answer.
  };
  using Handler = std::function<void(Result<Answer>)>;

  /// `answered` is called from the loop, unless the object is gone by then.
  Dialler(boost::asio::io_context& loop, Options options, Handler answered);
  Dialler(const Dialler&) = delete;
  Dialler& operator=(const Dialler&) = delete;
  ~Dialler();

 private:
  class Search;
  class Attempt;
  std::shared_ptr<Search> search_;
};

}  // namespace muster::rendezvous
