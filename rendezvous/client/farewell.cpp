#include "rendezvous/client/farewell.hpp"

#include "base/posix/tcp_stream.hpp"
#include "rendezvous/client/frames.hpp"
#include "rendezvous/client/handshake.hpp"
#include "rendezvous/client/secret.hpp"
#include "rendezvous/client/stranger.hpp"
#include "rendezvous/client/wire.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

namespace muster::rendezvous {
namespace {

/// Between two tries, while the server is not there: it may be starting again.
constexpr std::chrono::milliseconds kPause{50};
/// Of one try: the rest of the patience may do better on a new connection.
constexpr std::chrono::milliseconds kTryPatience{700};

/// A frame from the server, the one at the beginning of `in`, waiting for it.
Result<std::optional<ServerFrame>> next_frame(posix::TcpStream& stream, std::string& in,
                                              TimePoint deadline) {
  for (;;) {
    const auto body = first_frame(in, kMaxFrameBytes);
    if (!body) return pass(body.error());
    if (*body) {
      auto frame = decode_server_frame(**body);
      in.erase(0, kFrameHeaderBytes + (*body)->size());
      return frame;
    }
    std::array<char, 4 * 1024> room;
    const auto got = stream.receive(room, deadline);
    if (!got) return pass(got.error());
    if (*got == 0) return fail(Errc::Unavailable, "the server closed the connection");
    in.append(room.data(), *got);
  }
}

Error refused(const std::string& endpoint, const std::string& why) {
  return {Errc::InvalidArgument, endpoint + " does not take the farewell: " + why};
}

Result<void> say_once(const posix::SocketAddress& address, const std::optional<std::string>& token,
                      const Farewell& farewell, TimePoint deadline) {
  const auto endpoint = to_string(posix::to_endpoint(address));
  const auto broken = [&](const Error& cause) {
    return fail(Errc::Unavailable, "say farewell to " + endpoint + ": " + cause.message);
  };
  const auto nonce = random_secret();
  if (!nonce) return pass(nonce.error());
  auto stream = posix::TcpStream::connect(address, deadline);
  if (!stream) return broken(stream.error());
  if (auto sent = stream->send(opening(*nonce), deadline); !sent) return broken(sent.error());

  std::string in;
  std::optional<OpenAnswer> said;
  while (!said) {
    std::array<char, 4 * 1024> room;
    const auto got = stream->receive(room, deadline);
    if (!got) return broken(got.error());
    if (*got == 0) return pass(hung_up(endpoint));
    in.append(room.data(), *got);
    std::size_t taken = 0;
    auto answer = read_answer(endpoint, in, taken);
    if (!answer) return pass(answer.error());
    said = std::move(*answer);
    if (said) in.erase(0, taken);
  }
  if (const auto* const refusal = std::get_if<Refusal>(&*said)) {
    return pass(refused(endpoint, refusal->message));
  }
  const auto& challenge = std::get<Challenge>(*said);
  if (const auto refusal = judge(endpoint, challenge, token, *nonce)) {
    return pass(refused(endpoint, refusal->message));
  }
  Parting parting;
  parting.farewell = farewell;
  if (token) parting.proof = parting_proof(*token, challenge.nonce, *nonce, farewell);
  std::string bytes;
  encode(parting, bytes);
  if (auto sent = stream->send(bytes, deadline); !sent) return broken(sent.error());
  for (;;) {
    const auto frame = next_frame(*stream, in, deadline);
    if (!frame) return broken(frame.error());
    if (!*frame) continue;
    if (std::holds_alternative<PartingSeen>(**frame)) return {};
    if (const auto* const message = std::get_if<ServerMessage>(&**frame)) {
      if (const auto* const refusal = std::get_if<Refusal>(message)) {
        return pass(refused(endpoint, refusal->message));
      }
    }
  }
}

}  // namespace

Result<void> say_farewell(const Endpoint& server, const std::optional<std::string>& token,
                          const Farewell& farewell, Duration patience) {
  using Clock = std::chrono::steady_clock;
  const TimePoint deadline = Clock::now() + patience;
  Error last{Errc::Unavailable, "say farewell to " + to_string(server) + ": no time was left"};
  do {
    const auto addresses = posix::resolve(server);
    if (!addresses) last = addresses.error();
    for (const auto& address : addresses.value_or(std::vector<posix::SocketAddress>{})) {
      const auto until = std::min<TimePoint>(deadline, Clock::now() + kTryPatience);
      auto said = say_once(address, token, farewell, until);
      if (said) return {};
      last = std::move(said.error());
      if (last.code == Errc::InvalidArgument) return pass(last);
    }
    const auto left = deadline - Clock::now();
    if (left > Duration::zero()) std::this_thread::sleep_for(std::min<Duration>(left, kPause));
  } while (Clock::now() < deadline);
  return fail(Errc::Timeout, last.message);
}

}  // namespace muster::rendezvous
