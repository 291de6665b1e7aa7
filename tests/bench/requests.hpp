#pragma once

#include "base/error.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace muster::bench {

/// What answers: a c10d store (requests of dialect D, the same in all newer ones), or
/// `epoll_floor`, which is told sizes and sends so many zeros.
enum class Peer { Store, Floor };

/// What one operation of a load is.
enum class Operation {
  Ping,
  Set,      ///< SET has no reply: a PING behind it, in the same write, is the ack.
  SetMany,  ///< kSetsPerAck SETs and one PING.
  Get,
  Add,
  Check,
  WaitGet,  ///< What PyTorch's `get` sends: WAIT, and GET after its reply. Pipelined, both in one
            ///< write.
};

inline constexpr std::uint32_t kSetsPerAck = 64;

struct Workload {
  Operation operation = Operation::Ping;
  std::uint32_t value_bytes = 16;
  std::uint32_t depth = 1;  ///< Operations in flight on each connection.
};

/// Connection set-up towards a store, VALIDATE and PING, and its echo.
inline constexpr std::size_t kGreetingReplyBytes = 4;

/// The two sides of one connection: makes its requests, and judges the replies byte by byte however
/// they are cut.
///
/// An operation is made of one or more *exchanges*: a request, and a reply that must be there
/// before the next request of the same operation goes out. Each connection has a key of its own.
class Conversation {
 public:
  Conversation(Peer peer, const Workload& workload, std::uint32_t connection);

  [[nodiscard]] std::uint32_t exchanges_per_operation() const { return exchanges_per_operation_; }

  /// Greeting, and what puts the key there; and whether a reply (of kGreetingReplyBytes) is the
  /// right one.
  [[nodiscard]] std::string setup() const;
  [[nodiscard]] bool is_setup_reply(std::string_view reply) const;

  void append_request(std::string& out);

  /// How many replies these bytes complete; InvalidArgument if they are not what the requests call
  /// for. From a floor only the number of bytes is judged.
  [[nodiscard]] Result<std::uint32_t> take(std::span<const char> bytes);

  /// At the end: a request whose reply shows that the operations took effect, and that reply. Empty
  /// where replies have shown it already.
  [[nodiscard]] std::string audit() const;
  [[nodiscard]] std::string audit_reply() const;

 private:
  void write_value(std::string& out, std::uint64_t stamp) const;
  void expect_next();

  Peer peer_;
  Workload workload_;
  std::string key_;
  std::uint32_t nonce_;
  std::uint32_t exchanges_per_operation_ = 1;
  std::uint64_t requests_ = 0;  ///< Exchanges begun.
  std::uint64_t replies_ = 0;   ///< Exchanges ended.
  std::uint64_t sets_ = 0;
  std::string expected_;  ///< The reply that is due.
  std::size_t matched_ = 0;
};

/// Names of operations on the command line: ping, set, set64, get, add, check, wait_get.
[[nodiscard]] Result<Operation> parse_operation(const std::string& name);

/// Requests of dialect D by themselves, for those who need no conversation.
namespace wire {

void validate(std::string& out);
void ping(std::string& out, std::uint32_t nonce);
void set(std::string& out, const std::string& key, std::string_view value);
void get(std::string& out, const std::string& key);
void add(std::string& out, const std::string& key, std::int64_t delta);
void wait(std::string& out, const std::string& key);

/// What a floor is told first: its part, and the sizes of request and reply.
enum class FloorPart : std::uint32_t { Answer, HoldReply, Release };
inline constexpr std::size_t kFloorGreetingBytes = 12;
void floor_greeting(std::string& out, FloorPart part, std::uint32_t request, std::uint32_t reply);

}  // namespace wire

}  // namespace muster::bench
