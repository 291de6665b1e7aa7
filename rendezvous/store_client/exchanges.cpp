#include "rendezvous/store_client/exchanges.hpp"

namespace muster::store_client {
namespace {

constexpr std::uint8_t kReady = 0;
constexpr std::uint8_t kNotReady = 1;
constexpr std::string_view kNonce = "\x7F\x7F\x7F\x7F";

}  // namespace

Attempt<std::int64_t> ask_number(Connection& connection, const Request& request,
                                 TimePoint deadline) {
  if (auto sent = connection.send(request.view(), deadline); !sent) return pass(sent.error());
  return connection.read_number(deadline);
}

Attempt<std::int64_t> ask_count(Connection& connection, const Request& request,
                                TimePoint deadline) {
  auto count = ask_number(connection, request, deadline);
  if (count && (*count < 0 || *count > kMaxCount))
    return garbage(std::to_string(*count) + " where a count belongs");
  return count;
}

Attempt<bool> ask_readiness(Connection& connection, const Request& request, TimePoint deadline) {
  if (auto sent = connection.send(request.view(), deadline); !sent) return pass(sent.error());
  const auto reply = connection.read_byte(deadline);
  if (!reply) return pass(reply.error());
  if (*reply != kReady && *reply != kNotReady) {
    return garbage("byte " + std::to_string(*reply) + " where 0 or 1 says whether keys are there");
  }
  return *reply == kReady;
}

Attempt<void> ask_release(Connection& connection, const Request& request, TimePoint deadline) {
  if (auto sent = connection.send(request.view(), deadline); !sent) return sent;
  return connection.read_release(deadline);
}

Attempt<std::string> ask_value(Connection& connection, const Request& request, TimePoint deadline) {
  if (auto sent = connection.send(request.view(), deadline); !sent) return pass(sent.error());
  auto room = kMaxReplyBytes;
  return connection.read_bytes(room, deadline);
}

Attempt<std::vector<std::string>> ask_values(Connection& connection, const Request& request,
                                             std::size_t count, TimePoint deadline) {
  if (auto sent = connection.send(request.view(), deadline); !sent) return pass(sent.error());
  auto room = kMaxReplyBytes;
  std::vector<std::string> values;
  while (values.size() < count) {
    auto value = connection.read_bytes(room, deadline);
    if (!value) return pass(value.error());
    values.push_back(*std::move(value));
  }
  return values;
}

Attempt<std::optional<std::string>> ask_item(Connection& connection, const Request& request,
                                             TimePoint deadline) {
  const auto length = ask_count(connection, request, deadline);
  if (!length) return pass(length.error());
  if (*length == 0) return std::nullopt;
  auto room = kMaxReplyBytes;
  auto item = connection.read_bytes(room, deadline);
  if (!item) return pass(item.error());
  return *std::move(item);
}

Attempt<std::vector<std::string>> ask_keys(Connection& connection, TimePoint deadline) {
  const auto count =
      ask_count(connection, Request(connection.opcode(Operation::ListKeys)), deadline);
  if (!count) return pass(count.error());
  if (static_cast<std::uint64_t>(*count) > kMaxReplyKeys) {
    return garbage("it claims to list " + std::to_string(*count) + " keys where at most " +
                   std::to_string(kMaxReplyKeys) + " are taken");
  }
  auto room = kMaxReplyBytes;
  std::vector<std::string> keys;
  while (keys.size() < static_cast<std::size_t>(*count)) {
    auto key = connection.read_bytes(room, deadline);
    if (!key) return pass(key.error());
    keys.push_back(*std::move(key));
  }
  return keys;
}

Attempt<void> ask_echo(Connection& connection, std::string_view unanswered, TimePoint deadline) {
  std::string bytes(unanswered);
  bytes.push_back(static_cast<char>(connection.opcode(Operation::Ping)));
  bytes += kNonce;
  if (auto sent = connection.send(bytes, deadline); !sent) return sent;
  const auto echo = connection.read_exactly(kNonce.size(), deadline);
  if (!echo) return pass(echo.error());
  if (*echo != kNonce) return garbage("another echo than PING's own");
  return {};
}

}  // namespace muster::store_client
