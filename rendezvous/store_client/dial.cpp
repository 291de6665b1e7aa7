#include "rendezvous/store_client/dial.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <vector>

namespace muster::store_client {
namespace {

using namespace std::string_view_literals;

/// The last four bytes are PING's nonce. Its last makes the whole a length of 2^63 for who does not
/// know VALIDATE.
constexpr auto kValidateAndPing = "\x00\xCE\xF7\x85\x3C\x0D\x7F\x7F\x7F\x7F"sv;
constexpr auto kEcho = "\x7F\x7F\x7F\x7F"sv;
constexpr auto kValidateAndCancel = "\x00\xCE\xF7\x85\x3C\x0C\x0C\x0C\x0C"sv;
constexpr auto kConfirmedCancel = "\x01\x01\x01\x01"sv;
constexpr auto kNumKeysOfAOrB = "\x06"sv;
constexpr auto kCancelOfB = "\x0B"sv;
constexpr auto kConfirmedCancelOfB = "\x01"sv;

using Dialed = tl::expected<Connection, Refusal>;

tl::unexpected<Refusal> refuse(Refusal::Kind kind, std::string cause) {
  return tl::unexpected<Refusal>(Refusal{kind, std::move(cause)});
}

tl::unexpected<Refusal> refuse(const Fault& fault) {
  switch (fault.kind) {
    case Fault::Kind::Broken:
      return refuse(Refusal::Kind::Closed, fault.cause);
    case Fault::Kind::TimedOut:
    case Fault::Kind::Cancelled:
      return refuse(Refusal::Kind::Silent,
                    "it accepted the connection, but did not answer (is it a c10d store?)");
    case Fault::Kind::Garbage:
      break;
  }
  return refuse(Refusal::Kind::NoStore, fault.cause);
}

TimePoint now() { return std::chrono::steady_clock::now(); }

/// What an unknown server answered, as hex digits.
std::string hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    const auto value = static_cast<unsigned char>(byte);
    text.push_back(kDigits[value >> 4]);
    text.push_back(kDigits[value & 15]);
  }
  return text;
}

Dialed open(const posix::SocketAddress& address, ServerDialect dialect, TimePoint deadline) {
  const auto patience = std::min(deadline, now() + kConnectPatience);
  auto stream = posix::TcpStream::connect(address, patience);
  if (!stream) {
    if (stream.error().code == Errc::Timeout) {
      return refuse(Refusal::Kind::Silent, "nothing answers at that address");
    }
    return refuse(Refusal::Kind::NotThere, stream.error().message);
  }
  return Connection(*std::move(stream), dialect);
}

/// Sends bytes on a new connection and expects exactly those in return.
Dialed introduce(const posix::SocketAddress& address, ServerDialect dialect,
                 std::string_view greeting, std::string_view expected, TimePoint deadline) {
  auto connection = open(address, dialect, deadline);
  if (!connection) return connection;
  if (auto sent = connection->send(greeting, deadline); !sent) return refuse(sent.error());
  const auto answer = connection->read_exactly(expected.size(), deadline);
  if (!answer) return refuse(answer.error());
  if (*answer != expected) {
    return refuse(Refusal::Kind::NoStore, "what listens there is no c10d store: it answered " +
                                              hex(*answer) + " where one answers " + hex(expected));
  }
  return connection;
}

/// Step 2: a connection to an A or B server.
Dialed introduce_unvalidated(const posix::SocketAddress& address, ServerDialect dialect,
                             TimePoint deadline) {
  auto connection = open(address, dialect, deadline);
  if (!connection) return connection;
  if (auto sent = connection->send(kNumKeysOfAOrB, deadline); !sent) return refuse(sent.error());
  const auto keys = connection->read_number(deadline);
  if (!keys) return refuse(keys.error());
  if (*keys < 0 || *keys > kMaxCount) {
    return refuse(Refusal::Kind::NoStore,
                  "what listens there is no c10d store: it claims to hold " +
                      std::to_string(*keys) + " keys");
  }
  return connection;
}

Dialed introduce_as(const posix::SocketAddress& address, Dialect dialect, TimePoint deadline) {
  const ServerDialect server{dialect};
  switch (dialect) {
    case Dialect::A:
      return introduce_unvalidated(address, server, deadline);
    case Dialect::B:
      return introduce(address, server, kCancelOfB, kConfirmedCancelOfB, deadline);
    case Dialect::C:
      return introduce(address, server, kValidateAndCancel, kConfirmedCancel, deadline);
    case Dialect::D:
    case Dialect::E:
    case Dialect::F:
    case Dialect::G:
      break;
  }
  return introduce(address, server, kValidateAndPing, kEcho, deadline);
}

bool failed_as(const Dialed& dialed, Refusal::Kind kind) {
  return !dialed && dialed.error().kind == kind;
}

Dialed detect(const posix::SocketAddress& address, TimePoint deadline) {
  using enum Refusal::Kind;
  const ServerDialect d_or_later{Dialect::D, true};
  auto modern = introduce(address, d_or_later, kValidateAndPing, kEcho, deadline);
  if (!failed_as(modern, Closed)) return modern;

  const auto patience = now() + std::min<Duration>(kProbePatience, (deadline - now()) / 2);
  auto old = introduce_unvalidated(address, {Dialect::A}, patience);
  if (failed_as(old, Closed) || failed_as(old, Silent)) {
    auto middle = introduce_as(address, Dialect::C, deadline);
    if (failed_as(middle, Closed)) {
      return refuse(Closed,
                    "it closes every connection (is it a c10d store?): " + middle.error().cause);
    }
    return middle;
  }
  if (!old) return old;

  auto newer = introduce_as(address, Dialect::B, deadline);
  if (failed_as(newer, Closed)) return old;
  return newer;
}

}  // namespace

tl::expected<Connection, Refusal> dial(const Endpoint& endpoint, std::optional<Dialect> fixed,
                                       TimePoint deadline) {
  const auto addresses = posix::resolve(endpoint);
  if (!addresses) return refuse(Refusal::Kind::NotThere, addresses.error().message);

  Refusal refusal{Refusal::Kind::NoStore, {}};
  for (std::size_t i = 0; i < addresses->size(); ++i) {
    const auto& address = (*addresses)[i];
    const auto share = (deadline - now()) / static_cast<std::int64_t>(addresses->size() - i);
    const auto turn = now() + share;
    auto dialed = fixed ? introduce_as(address, *fixed, turn) : detect(address, turn);
    if (dialed) return dialed;

    // The most hopeful kind is the kind of the round: one address that may still come up is worth
    // another.
    refusal.kind = std::min(refusal.kind, dialed.error().kind);
    const auto host = posix::to_endpoint(address).host;
    if (!refusal.cause.empty()) refusal.cause += "; ";
    if (host != endpoint.host) refusal.cause += host + ": ";
    refusal.cause += dialed.error().cause;
  }
  return tl::unexpected<Refusal>(std::move(refusal));
}

}  // namespace muster::store_client
