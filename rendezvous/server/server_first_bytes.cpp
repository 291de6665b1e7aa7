#include "base/posix/dialling.hpp"
#include "rendezvous/client/frames.hpp"
#include "rendezvous/server/server_loop.hpp"
#include "rendezvous/store/knock.hpp"

#include <chrono>

#include <spdlog/fmt/fmt.h>

namespace muster::rendezvous {
namespace {

/// HTTP/2's preface; gRPC gets a connection when all of it is there, since it would wait for the
/// rest without end.
constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// So much of it tells it from POST, PUT and PATCH.
constexpr std::size_t kTellingBytes = 3;

constexpr char kTlsHandshake = 0x16;

/// What gRPC sets on connections that it accepts itself.
constexpr std::chrono::seconds kGrpcUserTimeout{20};

}  // namespace

/// Looks at the first bytes and leaves them where they are.
void Server::Loop::identify(Link& link) {
  std::array<char, kPreface.size()> first;
  const auto peeked = posix::peek_now(link.socket.get(), first);
  if (peeked.end == posix::Moved::End::WouldBlock) return;
  if (peeked.end != posix::Moved::End::None) return close(link);
  const std::string_view begun(first.data(), peeked.bytes);
  const char byte = begun.front();
  if (byte == kMagicByte) {
    link.stage = Link::Stage::Opening;
    receive(link);
  } else if (byte == 'P' && begun == kPreface.substr(0, begun.size())) {
    // The end looks like bytes that are there: nothing more will come then.
    if (begun.size() == kPreface.size()) return hand_to_grpc(link);
    const bool is_telling = begun.size() >= kTellingBytes;
    const auto wanted = is_telling ? kPreface.size() : kTellingBytes;
    if (link.stage == Link::Stage::Preface && posix::has_ended(link.socket.get())) {
      return close(link);
    }
    link.stage = Link::Stage::Preface;
    posix::set_low_watermark(link.socket.get(), static_cast<int>(wanted));
  } else if (byte >= 'A' && byte <= 'Z') {
    hand_to_http(link);
  } else if (byte == kTlsHandshake) {
    refuse(link, "it begins a TLS handshake, which is not spoken here");
  } else if (store_) {
    hand_to_store(link);
  } else {
    refuse(link, byte == store::kKnockMagic.front()
                     ? "it knocks on the workers' store, which is not open here"
                     : "it may speak the c10d store's protocol, and no store is open here: the "
                       "workers' store is elsewhere, or no round runs");
  }
}

posix::Fd Server::Loop::hand_over(Link& link) {
  set_.remove(link.socket.get());
  return release(link);
}

void Server::Loop::hand_to_grpc(Link& link) {
  const auto peer = to_endpoint(link.peer);
  if (!on_grpc) return refuse(link, "it speaks gRPC, which this server does not serve");
  if (grpc_.size() >= kMaxGrpc) {
    return refuse(link, "the limit of gRPC connections is reached: " + std::to_string(kMaxGrpc));
  }
  const auto name = link.id.value;
  auto watched = posix::duplicate(link.socket.get());
  if (!watched) return refuse(link, watched.error().message);
  posix::set_low_watermark(link.socket.get(), 1);
  posix::set_user_timeout(link.socket.get(), kGrpcUserTimeout);
  auto socket = hand_over(link);
  const auto added = set_.add(watched->get(), 0, name);
  if (!added) {
    return refusals_.refused(std::chrono::steady_clock::now(), peer, added.error().message);
  }
  grpc_.emplace(name, *std::move(watched));
  on_grpc(std::move(socket), to_string(peer));
}

void Server::Loop::hand_to_http(Link& link) {
  posix::set_low_watermark(link.socket.get(), 1);
  const auto peer = to_endpoint(link.peer);
  const bool is_v6 = posix::local_address(link.socket.get()).family() == AF_INET6;
  if (!http_->serve(hand_over(link), is_v6)) {
    refusals_.refused(
        std::chrono::steady_clock::now(), peer,
        "the limit of HTTP connections is reached: " + std::to_string(HttpSessions::kMaxSessions));
  }
}

void Server::Loop::hand_to_store(Link& link) { store_->adopt(hand_over(link)); }

HttpReply Server::Loop::answer_http(const std::string& target) const {
  const auto path = std::string_view(target).substr(0, target.find('?'));
  if (path == "/healthz") {
    const auto counts = stats();
    return {
        .status = is_retiring_ ? 503U : 200U,
        .type = "application/json",
        .body = fmt::format("{{\"status\":\"{}\",\"version\":\"{}\",\"jobs\":{},"
                            "\"attendances\":{},\"connections\":{},\"store_connections\":{}}}\n",
                            is_retiring_ ? "stopping" : "ok", MUSTER_VERSION, core_.job_count(),
                            counts.attendances, counts.connections, counts.store.connections)};
  }
  return {.status = 404, .body = "not here; /healthz is\n"};
}

}  // namespace muster::rendezvous
