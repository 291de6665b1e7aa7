#pragma once

#include "base/error.hpp"

#include <deque>
#include <functional>
#include <grpcpp/support/server_callback.h>
#include <grpcpp/support/status.h>
#include <memory>
#include <mutex>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

/// How calls come from gRPC's threads to the loop, and how they are answered from there.
namespace muster::rendezvous {

using CallId = std::uint64_t;  ///< One call of one server's life.

[[nodiscard]] inline grpc::Status to_status(const Error& error) {
  const auto code = [](Errc errc) {
    switch (errc) {
      case Errc::InvalidArgument:
        return grpc::StatusCode::INVALID_ARGUMENT;
      case Errc::NotFound:
        return grpc::StatusCode::NOT_FOUND;
      case Errc::Stale:
        return grpc::StatusCode::ABORTED;
      case Errc::Unavailable:
        return grpc::StatusCode::UNAVAILABLE;
      case Errc::Timeout:
        return grpc::StatusCode::DEADLINE_EXCEEDED;
      case Errc::Cancelled:
        return grpc::StatusCode::CANCELLED;
      case Errc::Internal:
        return grpc::StatusCode::INTERNAL;
    }
    return grpc::StatusCode::UNKNOWN;
  };
  return {code(error.code), error.message};
}

/// Work for the loop, from any thread, in order.
///
/// Not asio::post alone: gRPC ends only when every call was answered, and the loop waits for that
/// end. So what has been handed over and not yet begun must be within reach then, to be dropped,
/// which answers it; that is what the lock is for.
class Inbox : public std::enable_shared_from_this<Inbox> {
 public:
  explicit Inbox(boost::asio::io_context& loop) : loop_(loop) {}

  /// Once closed: drops the work, here and now.
  template <class Work>
  void put(Work work) {
    std::unique_ptr<Task> task =
        std::make_unique<TaskOf<Work>>(std::move(work));  // Outlives the lock.
    const std::lock_guard lock(mutex_);
    if (closed_) return;
    waiting_.push_back(std::move(task));
    boost::asio::post(loop_, [self = shared_from_this()] { self->run_one(); });
  }

  /// Loop thread only.
  void close() {
    std::deque<std::unique_ptr<Task>> dropped;  // Outlives the lock.
    const std::lock_guard lock(mutex_);
    closed_ = true;
    dropped.swap(waiting_);
  }

 private:
  struct Task {
    Task() = default;
    Task(const Task&) = delete;
    Task& operator=(const Task&) = delete;
    virtual ~Task() = default;
    virtual void run() = 0;
  };
  template <class Work>
  struct TaskOf final : Task {
    explicit TaskOf(Work work) : work_(std::move(work)) {}
    void run() override { work_(); }
    Work work_;
  };

  void run_one() {
    std::unique_ptr<Task> task;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty()) return;
      task = std::move(waiting_.front());
      waiting_.pop_front();
    }
    task->run();
  }

  boost::asio::io_context& loop_;
  std::mutex mutex_;
  std::deque<std::unique_ptr<Task>> waiting_;
  bool closed_ = false;
};

/// A unary call, as gRPC holds it. Deletes itself when gRPC is done with it, which is after it was
/// answered.
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  /// `cancelled` is called from a thread of gRPC's: the caller has gone, or its deadline passed.
  explicit UnaryCall(std::function<void()> cancelled) : cancelled_(std::move(cancelled)) {}
  void OnCancel() override { cancelled_(); }
  void OnDone() override { delete this; }

 private:
  std::function<void()> cancelled_;
};

/// The duty to answer one unary call, exactly once. Dropping it answers UNAVAILABLE. Move-only.
template <class Reply>
class Responder {
 public:
  Responder(UnaryCall& call, Reply& reply) : call_(&call), reply_(&reply) {}
  Responder(Responder&& other) noexcept
      : call_(std::exchange(other.call_, nullptr)), reply_(other.reply_) {}
  Responder& operator=(Responder&&) = delete;
  ~Responder() {
    if (call_ != nullptr) {
      fail({grpc::StatusCode::UNAVAILABLE, "the server is shutting down"});
    }
  }

  [[nodiscard]] Reply& reply() { return *reply_; }
  void answer() { std::exchange(call_, nullptr)->Finish(grpc::Status::OK); }
  void fail(const grpc::Status& status) { std::exchange(call_, nullptr)->Finish(status); }

 private:
  UnaryCall* call_;
  Reply* reply_;
};

}  // namespace muster::rendezvous
