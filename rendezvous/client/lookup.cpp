#include "rendezvous/client/lookup.hpp"

#include "base/posix/stream.hpp"
#include "base/posix/tcp_stream.hpp"

#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>

namespace muster::rendezvous {
namespace {

using Found = Result<std::vector<posix::SocketAddress>>;

/// Where the thread leaves what it found; closing the pipe tells the loop. It knows no more of the
/// loop than this, so that it may outlive it.
struct Mailbox {
  std::mutex mutex;
  std::optional<Found> found;
};

void look_up(Endpoint endpoint, std::shared_ptr<Mailbox> mailbox, posix::Fd done) {
  auto found = posix::resolve(endpoint);
  {
    const std::lock_guard lock(mailbox->mutex);
    mailbox->found = std::move(found);
  }
  done.reset();
}

}  // namespace

class Lookup::Wait : public std::enable_shared_from_this<Wait> {
 public:
  Wait(boost::asio::io_context& loop, Handler found)
      : loop_(loop), done_(loop), handler_(std::move(found)) {}

  void begin(Endpoint endpoint) {
    if (auto numeric = posix::numeric_address(endpoint)) {
      report_soon(std::vector{*std::move(numeric)});
      return;
    }
    auto pipe = posix::make_pipe();
    if (!pipe) return report_soon(pass(std::move(pipe.error())));
    done_.assign(pipe->reader.release());
    try {
      std::thread(look_up, std::move(endpoint), mailbox_, std::move(pipe->writer)).detach();
    } catch (const std::system_error& error) {
      return report_soon(fail(Errc::Unavailable,
                              std::string("start a thread to look up a host: ") + error.what()));
    }
    done_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                     [self = shared_from_this()](const boost::system::error_code& error) {
                       if (error) return;
                       std::optional<Found> found;
                       {
                         const std::lock_guard lock(self->mailbox_->mutex);
                         found = std::move(self->mailbox_->found);
                       }
                       if (found) self->report(*std::move(found));
                     });
  }

  void give_up() {
    handler_ = nullptr;
    done_.close();
  }

 private:
  void report_soon(Found found) {
    boost::asio::post(loop_, [self = shared_from_this(), found = std::move(found)]() mutable {
      self->report(std::move(found));
    });
  }

  void report(Found found) {
    if (auto handler = std::exchange(handler_, nullptr)) handler(std::move(found));
  }

  boost::asio::io_context& loop_;
  boost::asio::posix::stream_descriptor done_;
  Handler handler_;
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
};

Lookup::Lookup(boost::asio::io_context& loop, Endpoint endpoint, Handler found)
    : wait_(std::make_shared<Wait>(loop, std::move(found))) {
  wait_->begin(std::move(endpoint));
}

Lookup::~Lookup() { wait_->give_up(); }

}  // namespace muster::rendezvous
