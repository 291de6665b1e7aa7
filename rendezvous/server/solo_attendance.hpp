#pragma once

#include "rendezvous/client/attendance.hpp"
#include "rendezvous/core/solo_job.hpp"

#include <memory>

#include <boost/asio/any_io_executor.hpp>

namespace muster::rendezvous {

/// The attendance of a job's only node: its rendezvous is in the same process. Loop thread only.
class SoloAttendance : public Attendance {
 public:
  SoloAttendance(boost::asio::any_io_executor loop, SoloJob::Settings settings);

  void on_order(OnOrder handler) override;
  void report(Report report) override;

 private:
  struct State {
    explicit State(SoloJob::Settings settings) : job(settings) {}
    SoloJob job;
    OnOrder handler;
  };

  boost::asio::any_io_executor loop_;
  std::shared_ptr<State> state_;  // Shared with what is posted: it may run after us.
};

}  // namespace muster::rendezvous
