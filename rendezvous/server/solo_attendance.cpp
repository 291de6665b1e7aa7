#include "rendezvous/server/solo_attendance.hpp"

#include <chrono>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

namespace muster::rendezvous {

class SoloAttendance::State : public std::enable_shared_from_this<State> {
 public:
  State(boost::asio::any_io_executor loop, SoloRendezvous::Settings settings)
      : loop_(std::move(loop)), timer_(loop_), rendezvous_(settings) {}

  void attend(Handlers handlers) { handlers_ = std::move(handlers); }

  void report(Report report) {
    boost::asio::post(loop_, [self = shared_from_this(), report = std::move(report)] {
      self->give(self->rendezvous_.step(std::chrono::steady_clock::now(), report));
    });
  }

  void close() {
    handlers_ = {};
    timer_.cancel();
  }

 private:
  void give(const std::vector<Order>& orders) {
    for (const auto& order : orders) {
      if (handlers_.on_order) handlers_.on_order(order);
    }
    arm();
  }

  void arm() {
    const auto deadline = rendezvous_.next_deadline();
    if (!deadline || !handlers_.on_order) return;
    timer_.expires_at(*deadline);
    timer_.async_wait([self = shared_from_this()](const boost::system::error_code& error) {
      if (!error) self->give(self->rendezvous_.tick(std::chrono::steady_clock::now()));
    });
  }

  boost::asio::any_io_executor loop_;
  boost::asio::steady_timer timer_;
  SoloRendezvous rendezvous_;
  Handlers handlers_;
};

SoloAttendance::SoloAttendance(boost::asio::any_io_executor loop, SoloRendezvous::Settings settings)
    : state_(std::make_shared<State>(std::move(loop), settings)) {}

SoloAttendance::~SoloAttendance() { state_->close(); }

void SoloAttendance::attend(Handlers handlers) { state_->attend(std::move(handlers)); }

void SoloAttendance::report(Report report) { state_->report(std::move(report)); }

}  // namespace muster::rendezvous
