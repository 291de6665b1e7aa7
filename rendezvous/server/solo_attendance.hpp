#pragma once

#include "rendezvous/client/attendance.hpp"
#include "rendezvous/core/solo_rendezvous.hpp"

#include <memory>

#include <boost/asio/any_io_executor.hpp>

namespace muster::rendezvous {

/// The attendance of a job's only node: its rendezvous is in the same process. Loop thread only.
class SoloAttendance : public Attendance {
 public:
  SoloAttendance(boost::asio::any_io_executor loop, SoloRendezvous::Settings settings);
  ~SoloAttendance() override;

  void attend(Handlers handlers) override;
  void report(Report report) override;

 private:
  class State;

  std::shared_ptr<State> state_;  // Shared with what is posted: it may run after us.
};

}  // namespace muster::rendezvous
