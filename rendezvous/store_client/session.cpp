#include "rendezvous/store_client/session.hpp"

#include "rendezvous/store_client/dial.hpp"
#include "rendezvous/store_client/exchanges.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace muster::store_client {
namespace {

TimePoint now() { return std::chrono::steady_clock::now(); }

constexpr auto kBrokenBetweenCalls =
    "the connection was closed, or carried a stray byte, between two calls";

/// The cheapest round trip that the dialect has.
Attempt<void> confirm(Connection& connection, TimePoint deadline) {
  if (opcode(connection.dialect(), Operation::Ping)) return ask_echo(connection, {}, deadline);
  const Request request(connection.opcode(Operation::NumKeys));
  return ask_count(connection, request, deadline).map([](std::int64_t) {});
}

}  // namespace

Session::Session(Endpoint endpoint, ConnectOptions options)
    : endpoint_(std::move(endpoint)), options_(std::move(options)) {}

ServerDialect Session::dialect() const noexcept {
  return connection_ ? connection_->dialect() : dialect_;
}

Result<void> Session::connect() {
  Call call({.verb = {}, .has_key = false}, options_.timeout);
  return make_connection(call);
}

Result<void> Session::make_ready(Call& call, Operation operation) {
  if (connection_ && !connection_->is_usable()) {
    drop_connection(kBrokenBetweenCalls);
    call.outage = {.since = now(), .cause = kBrokenBetweenCalls};
  }
  if (!connection_) {
    if (auto made = make_connection(call); !made) return made;
  }
  if (!opcode(connection_->dialect(), operation)) return pass(lacks(call, operation));
  return {};
}

Result<void> Session::make_connection(Call& call) {
  const bool first = call.act.verb.empty();
  if (!call.outage)
    call.outage = {.since = now(), .cause = first ? "" : "an earlier call lost the connection"};
  auto& outage = *call.outage;
  const auto give_up =
      first ? call.deadline
            : std::min(call.deadline,
                       outage.since + std::min(options_.reconnect_patience, kLongestTimeout));

  for (;;) {
    if (outage.tries++ > 0)
      std::this_thread::sleep_until(std::min(give_up, now() + outage.backoff.next()));
    if (now() >= give_up && (!first || outage.tries > 1)) break;
    const auto began = now();
    auto dialed = dial(endpoint_, options_.dialect, give_up);
    if (dialed) {
      connection_ = *std::move(dialed);
      dialect_ = connection_->dialect();
      return {};
    }
    // What the deadline cut short says less than the round before.
    const bool was_cut =
        dialed.error().kind == Refusal::Kind::Silent && now() - began < kProbePatience;
    if (outage.latest.empty() || !was_cut) outage.latest = std::move(dialed.error().cause);
    if (dialed.error().kind == Refusal::Kind::NoStore)
      return pass(error(call, Errc::Internal, outage.latest));
    if (first && !options_.wait_for_server && now() < give_up) {
      return pass(error(call, Errc::Unavailable, outage.latest));
    }
  }

  std::string cause;
  if (give_up == call.deadline) {
    cause = "timed out after " + to_text(call.timeout);
  } else {
    cause = "no connection for " + to_text(options_.reconnect_patience);
  }
  if (!outage.cause.empty()) cause += ": " + outage.cause;
  if (!outage.latest.empty()) cause += (first ? ": " : "; connecting again: ") + outage.latest;
  return pass(error(call, give_up == call.deadline ? Errc::Timeout : Errc::Unavailable, cause));
}

std::optional<Error> Session::settle(Call& call, Operation operation, Repeat repeat,
                                     const Fault& fault) {
  const bool certain = connection_->is_certain_to_have(operation);
  if (fault.kind != Fault::Kind::Cancelled) drop_connection(fault.cause);
  const bool doubtful = repeat == Repeat::Unsafe && fault.sent;
  switch (fault.kind) {
    case Fault::Kind::Cancelled:
      return error(call, Errc::Timeout,
                   "timed out after " + to_text(call.timeout) +
                       (doubtful ? "; the server still counts this call" : ""));
    case Fault::Kind::TimedOut:
      return error(call, Errc::Timeout,
                   "timed out after " + to_text(call.timeout) +
                       (doubtful ? "; the request was sent, and may have been executed" : ""));
    case Fault::Kind::Garbage:
      return error(call, Errc::Internal, "the server's answer makes no sense: " + fault.cause);
    case Fault::Kind::Broken:
      break;
  }
  if (fault.sent && !certain) {
    return error(call, Errc::Unavailable,
                 fault.cause + "; a server that does not know " +
                     std::string(to_string(operation)) + " answers so, and only since dialect " +
                     std::string(to_string(first_dialect(operation))) + " they do");
  }
  if (doubtful) {
    return error(call, Errc::Unavailable,
                 "the connection was lost before the answer (" + fault.cause +
                     "); the request may have been executed, so it is not repeated");
  }
  if (!call.outage) call.outage = {.since = now(), .cause = fault.cause};
  return std::nullopt;
}

Error Session::lacks(const Call& call, Operation operation) const {
  return error(call, Errc::InvalidArgument,
               "the server speaks dialect " +
                   std::string(to_string(connection_->dialect().dialect)) + ", which has no " +
                   std::string(to_string(operation)) + "; it came with dialect " +
                   std::string(to_string(first_dialect(operation))));
}

void Session::note_write(const Call& call) {
  if (unconfirmed_.count++ == 0) unconfirmed_.first = describe(call.act);
}

Result<void> Session::flush(Call& call) {
  if (connection_ && !connection_->is_usable()) drop_connection(kBrokenBetweenCalls);
  auto code = Errc::Unavailable;
  if (lost_.count == 0) {
    if (unconfirmed_.count == 0) return {};
    // On this connection or not at all: another would confirm nothing.
    const auto answered = confirm(*connection_, call.deadline);
    if (answered) {
      unconfirmed_ = {};
      return {};
    }
    if (answered.error().kind == Fault::Kind::TimedOut) code = Errc::Timeout;
    if (answered.error().kind == Fault::Kind::Garbage) code = Errc::Internal;
    drop_connection(code == Errc::Timeout ? "no answer for " + to_text(call.timeout)
                                          : answered.error().cause);
  }
  const auto lost = std::exchange(lost_, {});
  const std::string more =
      lost.count > 1 ? " and " + std::to_string(lost.count - 1) + " later writes" : "";
  return pass(error(call, code, lost.first + more + " may not have been executed: " + lost.fate));
}

void Session::drop_connection(const std::string& cause) {
  dialect_ = connection_->dialect();
  connection_.reset();
  if (unconfirmed_.count == 0) return;
  if (lost_.count == 0) {
    lost_.first = std::move(unconfirmed_.first);
    lost_.fate = cause;
  }
  lost_.count += unconfirmed_.count;
  unconfirmed_ = {};
}

}  // namespace muster::store_client
