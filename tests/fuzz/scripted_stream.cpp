#include "tests/fuzz/scripted_stream.hpp"

#include "base/posix/tcp_stream.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace {

std::vector<ScriptedReplies> connections;  // Those to come.
ScriptedReplies current;

}  // namespace

void script_connections(std::vector<ScriptedReplies> each) { connections = std::move(each); }
void script_replies(const ScriptedReplies& replies) { current = replies; }

namespace muster::posix {

Result<std::vector<SocketAddress>> resolve(const Endpoint& endpoint) {
  auto address = numeric_address(endpoint);
  if (!address) return pass(std::move(address.error()));
  return std::vector{*std::move(address)};
}

Result<TcpStream> TcpStream::connect(const SocketAddress&, TimePoint) {
  if (connections.empty()) return fail(Errc::Unavailable, "connection refused");
  current = connections.front();
  connections.erase(connections.begin());
  return TcpStream(Fd());
}

Result<void> TcpStream::send(std::string_view, TimePoint) { return {}; }

Result<std::size_t> TcpStream::receive(std::span<char> room, TimePoint) {
  if (std::exchange(current.pauses_first, false)) return fail(Errc::Timeout, "timed out");
  if (current.bytes.empty()) {
    if (current.stays_silent) return fail(Errc::Timeout, "timed out");
    return std::size_t{0};
  }
  const auto size = std::min({room.size(), current.piece, current.bytes.size()});
  std::memcpy(room.data(), current.bytes.data(), size);
  current.bytes.remove_prefix(size);
  return size;
}

/// The rest of a script is what the server sends once it is asked.
bool TcpStream::is_quiet() const noexcept { return true; }

}  // namespace muster::posix
