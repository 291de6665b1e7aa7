#pragma once

#include "base/posix/fd.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include <boost/asio/io_context.hpp>

namespace muster::rendezvous {

struct HttpReply {
  unsigned status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

/// Speaks HTTP/1.1 on connections that somebody else accepted: GET and HEAD, without bodies. What
/// takes too long, is too long or does not parse ends its connection. Loop thread only.
class HttpSessions {
 public:
  static constexpr std::size_t kMaxSessions = 256;  ///< Those beyond are closed at once.
  static constexpr std::size_t kMaxHeaderBytes = 8 * 1024;

  /// `target`: the path and query of a GET.
  using Answer = std::function<HttpReply(const std::string& target)>;

  HttpSessions(boost::asio::io_context& loop, Answer answer);
  HttpSessions(const HttpSessions&) = delete;
  HttpSessions& operator=(const HttpSessions&) = delete;
  /// Closes them all.
  ~HttpSessions();

  /// `is_v6`: the socket's family, whatever address the peer has. False: there are too many.
  [[nodiscard]] bool serve(posix::Fd socket, bool is_v6);
  [[nodiscard]] std::size_t size() const { return sessions_->size(); }

 private:
  class Session;
  using Sessions = std::set<std::shared_ptr<Session>>;

  boost::asio::io_context& loop_;
  Answer answer_;
  std::shared_ptr<Sessions> sessions_ = std::make_shared<Sessions>();
};

}  // namespace muster::rendezvous
