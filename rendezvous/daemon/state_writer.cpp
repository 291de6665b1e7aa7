#include "rendezvous/daemon/state_writer.hpp"

#include <utility>

#include <boost/asio/post.hpp>

namespace muster::rendezvous {

StateWriter::StateWriter(boost::asio::io_context& loop, StateFolder folder, Options options,
                         Failed failed)
    : loop_(loop), folder_(std::move(folder)), options_(options), failed_(std::move(failed)) {}

StateWriter::~StateWriter() { thread_.join(); }

void StateWriter::keep(std::string what, std::string record) {
  if (pending_ >= kMostPending) {
    return failed_(what, {Errc::Unavailable, std::to_string(pending_) +
                                                 " others wait to be written: the disk is stuck"});
  }
  ++pending_;
  boost::asio::post(thread_, [this, what = std::move(what), record = std::move(record)] {
    folder_.forget(options_.port, options_.oldest);
    boost::asio::post(loop_, [this, what, kept = folder_.keep(options_.port, record)] {
      --pending_;
      if (!kept) failed_(what, kept.error());
    });
  });
}

void StateWriter::finish() {
  thread_.join();
  loop_.restart();
  loop_.poll();
}

}  // namespace muster::rendezvous
