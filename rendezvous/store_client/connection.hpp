#pragma once

#include "base/posix/tcp_stream.hpp"
#include "rendezvous/store_client/dialect.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tl/expected.hpp>

namespace muster::store_client {

/// Why an exchange with the server came to nothing. Except after `Cancelled` the connection is out
/// of step, replies having no frame that would let us find the next one: drop it.
struct Fault {
  enum class Kind {
    Broken,     ///< Closed, reset or unreachable.
    TimedOut,   ///< No answer by the deadline.
    Cancelled,  ///< The same, and the server confirmed that it forgot the request.
    Garbage,    ///< An answer that no store gives.
  };
  Kind kind;
  bool sent;          ///< The whole request was handed over: the server may have executed it.
  std::string cause;  ///< For people: `connection reset by peer`.
};

template <class T>
using Attempt = tl::expected<T, Fault>;

/// The most that one reply may hold, all its values together. A longer one is taken for garbage.
constexpr std::uint64_t kMaxReplyBytes = 64ULL << 20;

/// The most keys in one reply.
constexpr std::uint64_t kMaxReplyKeys = 1ULL << 20;

/// The most that a count may be. A larger one is taken for garbage.
constexpr std::int64_t kMaxCount = 1LL << 40;

/// How much is read from the kernel at once.
constexpr std::size_t kReadBytes = 16384;

/// How long a server may take to confirm CANCEL_WAIT; after that we drop the connection instead.
constexpr Duration kCancelPatience = std::chrono::milliseconds(500);

/// A connection to a server of known dialect: sends requests, reads replies field by field. What a
/// field claims is checked before anything is allocated for it. Move-only; one thread at a time.
class Connection {
 public:
  Connection(posix::TcpStream stream, ServerDialect dialect) noexcept
      : stream_(std::move(stream)), dialect_(dialect) {}

  [[nodiscard]] ServerDialect dialect() const noexcept { return dialect_; }
  [[nodiscard]] std::uint8_t opcode(Operation operation) const;
  /// Whether the server is known to have the operation, rather than worth a try.
  [[nodiscard]] bool is_certain_to_have(Operation operation) const;
  /// It has just answered to it.
  void note_supported(Operation operation);

  /// Whether it is open, with no byte that nobody asked for.
  [[nodiscard]] bool is_usable() const noexcept { return !has_leftover() && stream_.is_quiet(); }
  [[nodiscard]] bool has_leftover() const noexcept { return begin_ != end_; }

  /// Whether any byte has come since this was last asked: all that was sent before the request that
  /// it answers is done.
  [[nodiscard]] bool take_answered() noexcept { return std::exchange(answered_, false); }

  [[nodiscard]] Attempt<void> send(std::string_view request, TimePoint deadline);

  [[nodiscard]] Attempt<std::uint8_t> read_byte(TimePoint deadline);
  [[nodiscard]] Attempt<std::int64_t> read_number(TimePoint deadline);
  [[nodiscard]] Attempt<std::string> read_exactly(std::uint64_t size, TimePoint deadline);
  /// A length and as many bytes, taken off `room`, of which a reply has kMaxReplyBytes.
  [[nodiscard]] Attempt<std::string> read_bytes(std::uint64_t& room, TimePoint deadline);

  /// The end of a WAIT or BARRIER. At the deadline the wait is cancelled where the dialect can:
  /// `Cancelled`. A release that crosses with the cancellation counts.
  [[nodiscard]] Attempt<void> read_release(TimePoint deadline);

 private:
  [[nodiscard]] Attempt<void> fill(TimePoint deadline);
  [[nodiscard]] Attempt<void> cancel_wait();

  posix::TcpStream stream_;
  ServerDialect dialect_;
  std::vector<char> incoming_ = std::vector<char>(kReadBytes);
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  bool answered_ = false;
};

/// A Garbage fault.
[[nodiscard]] tl::unexpected<Fault> garbage(std::string cause);

/// Hands a fault on.
[[nodiscard]] inline tl::unexpected<Fault> pass(Fault fault) {
  return tl::unexpected<Fault>(std::move(fault));
}

}  // namespace muster::store_client
