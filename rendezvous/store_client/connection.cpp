#include "rendezvous/store_client/connection.hpp"

#include "base/assert.hpp"
#include "rendezvous/store_client/planted_fault.hpp"
#include "rendezvous/store_client/request.hpp"

#include <algorithm>
#include <cstring>

namespace muster::store_client {
namespace {

constexpr std::uint8_t kStopWaiting = 0;
constexpr std::uint8_t kWaitCanceled = 1;

Fault to_fault(const Error& error, bool sent) {
  const auto kind = error.code == Errc::Timeout ? Fault::Kind::TimedOut : Fault::Kind::Broken;
  return {kind, sent, error.message};
}

}  // namespace

tl::unexpected<Fault> garbage(std::string cause) {
  return pass(Fault{Fault::Kind::Garbage, true, std::move(cause)});
}

std::uint8_t Connection::opcode(Operation operation) const {
  const auto number = store_client::opcode(dialect_, operation);
  MUSTER_ASSERT(number.has_value());
  return *number;
}

bool Connection::is_certain_to_have(Operation operation) const {
  return dialect_.dialect >= first_dialect(operation);
}

void Connection::note_supported(Operation operation) {
  dialect_.dialect = std::max(dialect_.dialect, first_dialect(operation));
}

Attempt<void> Connection::send(std::string_view request, TimePoint deadline) {
  if (auto sent = stream_.send(request, deadline); !sent)
    return pass(to_fault(sent.error(), false));
  return {};
}

Attempt<void> Connection::fill(TimePoint deadline) {
  if (begin_ != end_) return {};
  const auto got = stream_.receive(incoming_, deadline);
  if (!got) return pass(to_fault(got.error(), true));
  if (*got == 0) return pass(Fault{Fault::Kind::Broken, true, "the server closed the connection"});
  begin_ = 0;
  end_ = *got;
  answered_ = true;
  return {};
}

Attempt<std::uint8_t> Connection::read_byte(TimePoint deadline) {
  if (auto filled = fill(deadline); !filled) return pass(filled.error());
  return static_cast<std::uint8_t>(incoming_[begin_++]);
}

Attempt<std::int64_t> Connection::read_number(TimePoint deadline) {
  const auto raw = read_exactly(sizeof(std::int64_t), deadline);
  if (!raw) return pass(raw.error());
  std::int64_t value;
  std::memcpy(&value, raw->data(), sizeof value);
  return value;
}

Attempt<std::string> Connection::read_exactly(std::uint64_t size, TimePoint deadline) {
  std::string value;  // Grows with what arrives, never ahead of it.
  if constexpr (MUSTER_PLANTED_FAULT == 1) value.reserve(size);
  while (value.size() < size) {
    if (auto filled = fill(deadline); !filled) return pass(filled.error());
    const auto take = std::min<std::uint64_t>(size - value.size(), end_ - begin_);
    value.append(incoming_.data() + begin_, take);
    begin_ += take;
  }
  return value;
}

Attempt<std::string> Connection::read_bytes(std::uint64_t& room, TimePoint deadline) {
  const auto length = read_number(deadline);
  if (!length) return pass(length.error());
  const auto size = static_cast<std::uint64_t>(*length);
  if (size > room) {
    return garbage("it claims a value of " + std::to_string(size) +
                   " bytes where a reply may hold " + std::to_string(room));
  }
  room -= size;
  auto bytes = read_exactly(size, deadline);
  if constexpr (MUSTER_PLANTED_FAULT == 2) begin_ += begin_ != end_ ? 1 : 0;
  return bytes;
}

Attempt<void> Connection::read_release(TimePoint deadline) {
  const auto reply = read_byte(deadline);
  if (!reply) {
    const bool can_cancel = store_client::opcode(dialect_, Operation::CancelWait).has_value();
    if (reply.error().kind == Fault::Kind::TimedOut && can_cancel) return cancel_wait();
    return pass(reply.error());
  }
  if (MUSTER_PLANTED_FAULT != 3 && *reply != kStopWaiting) {
    return garbage("byte " + std::to_string(*reply) + " where 0 ends a wait");
  }
  return {};
}

Attempt<void> Connection::cancel_wait() {
  const auto deadline = std::chrono::steady_clock::now() + kCancelPatience;
  const Request request(opcode(Operation::CancelWait));
  if (auto sent = send(request.view(), deadline); !sent) return sent;
  auto reply = read_byte(deadline);
  if (!reply) return pass(reply.error());
  const bool released = *reply == kStopWaiting;
  if (released) {
    reply = read_byte(deadline);
    if (!reply) return pass(reply.error());
  }
  if (*reply != kWaitCanceled) {
    return garbage("byte " + std::to_string(*reply) + " where 1 confirms that a wait is cancelled");
  }
  if (released) return {};
  return pass(Fault{Fault::Kind::Cancelled, true, "timed out"});
}

}  // namespace muster::store_client
