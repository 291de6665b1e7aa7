#include "rendezvous/server/control_watch.hpp"

#include "base/text.hpp"
#include "muster/v1/control.pb.h"
#include "rendezvous/server/control_wire.hpp"

#include <deque>
#include <utility>

namespace muster::rendezvous {
namespace {

/// A job whose thousand nodes arrive is told about a few times, not a thousand times.
constexpr auto kPauseBetweenStates = std::chrono::milliseconds(100);

const grpc::Status kShuttingDown(grpc::StatusCode::UNAVAILABLE, "the server is shutting down");

v1::DecisionNote::Level to_wire(Rendezvous::Note::Level level) {
  switch (level) {
    case Rendezvous::Note::Level::Debug:
      return v1::DecisionNote::LEVEL_DEBUG;
    case Rendezvous::Note::Level::Info:
      return v1::DecisionNote::LEVEL_INFO;
    case Rendezvous::Note::Level::Warn:
      return v1::DecisionNote::LEVEL_WARN;
  }
  return v1::DecisionNote::LEVEL_UNSPECIFIED;
}

v1::WatchedEvent state_event(const JobView& view) {
  v1::WatchedEvent event;
  event.set_job(view.id);
  write(view, Extent::Brief, *event.mutable_state());
  return event;
}

}  // namespace

class WatchStream final : public grpc::ServerWriteReactor<v1::WatchedEvent> {
 public:
  WatchStream(std::function<void()> cancelled, std::function<void(bool)> written)
      : cancelled_(std::move(cancelled)), written_(std::move(written)) {}

  /// Not before the one before it was written.
  void write(v1::WatchedEvent event) {
    event_ = std::move(event);
    StartWrite(&event_);
  }

  void OnWriteDone(bool ok) override { written_(ok); }
  void OnCancel() override { cancelled_(); }
  void OnDone() override { delete this; }

 private:
  std::function<void()> cancelled_;
  std::function<void(bool)> written_;
  v1::WatchedEvent event_;
};

void FinishStream::operator()(WatchStream* stream) const { stream->Finish(kShuttingDown); }

/// The loop's side of a call: what waits to be written. Dropping it ends the call.
class Watches::Watch {
 public:
  Watch(OwnedStream stream, std::string job, std::size_t limit)
      : stream_(std::move(stream)), job_(std::move(job)), limit_(limit) {}

  [[nodiscard]] bool wants(const std::string& job) const { return job_.empty() || job_ == job; }

  void push(v1::WatchedEvent event) {
    if (unread_.size() >= limit_) {
      ++sequence_;
      ++lost_;
      return;
    }
    event.set_sequence(++sequence_);
    unread_.push_back(std::move(event));
    write_next();
  }

  void written() {
    writing_ = false;
    if (lost_ > 0 && unread_.size() < limit_) {
      v1::WatchedEvent event;
      event.mutable_lost()->set_count(std::exchange(lost_, 0));
      push(std::move(event));
    }
    write_next();
  }

  void finish(const grpc::Status& status) { stream_.release()->Finish(status); }

 private:
  void write_next() {
    if (writing_ || unread_.empty()) return;
    writing_ = true;
    auto event = std::move(unread_.front());
    unread_.pop_front();
    stream_->write(std::move(event));
  }

  OwnedStream stream_;
  std::string job_;
  std::size_t limit_;
  std::deque<v1::WatchedEvent> unread_;
  std::uint64_t sequence_ = 0;
  std::uint64_t lost_ = 0;
  bool writing_ = false;
};

Watches::Watches(boost::asio::io_context& loop, const JobBoard& board, Limits limits)
    : board_(board), limits_(limits), pause_(loop) {}

Watches::~Watches() { end_all(kShuttingDown); }

WatchStream* Watches::make_stream(std::function<void()> cancelled,
                                  std::function<void(bool)> written) {
  return new WatchStream(std::move(cancelled), std::move(written));
}

grpc::ServerWriteReactor<v1::WatchedEvent>* Watches::to_grpc(WatchStream* stream) { return stream; }

void Watches::refuse(WatchStream& stream, const grpc::Status& status) { stream.Finish(status); }

void Watches::begin(CallId id, OwnedStream stream, const std::string& job) {
  if (watches_.size() >= limits_.watchers) {
    return refuse(*stream.release(), {grpc::StatusCode::RESOURCE_EXHAUSTED,
                                      "as many watchers as the server takes (" +
                                          std::to_string(limits_.watchers) + ") are there"});
  }
  auto jobs = job.empty() ? board_.jobs() : std::vector<JobView>{};
  if (!job.empty()) {
    auto one = board_.job(job);
    if (!one) {
      return refuse(*stream.release(),
                    {grpc::StatusCode::NOT_FOUND, "no job '" + printable(job) + "' is known here"});
    }
    jobs.push_back(std::move(*one));
  }
  const auto watch =
      watches_.emplace(id, std::make_unique<Watch>(std::move(stream), job, limits_.unread_events));
  for (const auto& view : jobs) {
    auto event = state_event(view);
    told_.try_emplace(view.id, event.state().SerializeAsString());
    watch.first->second->push(std::move(event));
  }
}

void Watches::written(CallId id, bool ok) {
  const auto found = watches_.find(id);
  if (found != watches_.end() && ok) found->second->written();  // Not ok: `cancelled` follows.
}

void Watches::cancelled(CallId id) {
  const auto found = watches_.find(id);
  if (found == watches_.end()) return;
  found->second->finish(grpc::Status::CANCELLED);
  watches_.erase(found);
  if (watches_.empty()) told_.clear();
}

void Watches::noted(const Rendezvous::Note& note) {
  if (watches_.empty()) return;
  v1::WatchedEvent event;
  event.set_job(note.job);
  event.mutable_note()->set_level(to_wire(note.level));
  event.mutable_note()->set_text(printable(note.text));
  tell(note.job, event);
  changed(note.job);
}

void Watches::ended(const std::string& job, const Verdict& verdict) {
  if (watches_.empty()) return;
  changed_.insert(job);
  tell_changes();  // The last state comes before the end.
  v1::WatchedEvent event;
  event.set_job(job);
  write(verdict, *event.mutable_ended());
  tell(job, event);
}

void Watches::end_all(const grpc::Status& status) {
  for (const auto& [id, watch] : watches_) watch->finish(status);
  watches_.clear();
  told_.clear();
  changed_.clear();
  pausing_ = false;
  pause_.cancel();
}

void Watches::tell(const std::string& job, const v1::WatchedEvent& event) {
  for (const auto& [id, watch] : watches_) {
    if (watch->wants(job)) watch->push(event);
  }
}

void Watches::changed(const std::string& job) {
  changed_.insert(job);
  if (std::exchange(pausing_, true)) return;
  pause_.expires_after(kPauseBetweenStates);
  pause_.async_wait([this, alive = std::weak_ptr(alive_)](const boost::system::error_code& error) {
    if (error || alive.expired()) return;
    pausing_ = false;
    tell_changes();
  });
}

void Watches::tell_changes() {
  for (const auto& job : std::exchange(changed_, {})) {
    const auto view = board_.job(job);
    if (!view) {
      told_.erase(job);
      continue;
    }
    const auto event = state_event(*view);
    auto state = event.state().SerializeAsString();
    auto& told = told_[job];
    if (state == told) continue;
    told = std::move(state);
    tell(job, event);
  }
}

}  // namespace muster::rendezvous
