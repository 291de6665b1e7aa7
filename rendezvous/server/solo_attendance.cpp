#include "rendezvous/server/solo_attendance.hpp"

#include <utility>

#include <boost/asio/post.hpp>

namespace muster::rendezvous {

SoloAttendance::SoloAttendance(boost::asio::any_io_executor loop, SoloJob::Settings settings)
    : loop_(std::move(loop)), state_(std::make_shared<State>(settings)) {}

void SoloAttendance::on_order(OnOrder handler) { state_->handler = std::move(handler); }

void SoloAttendance::report(Report report) {
  boost::asio::post(loop_, [state = state_, report = std::move(report)] {
    for (const auto& order : state->job.step(report)) {
      if (state->handler) state->handler(order);
    }
  });
}

}  // namespace muster::rendezvous
