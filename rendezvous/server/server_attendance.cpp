#include "base/exit_codes.hpp"
#include "base/text.hpp"
#include "rendezvous/client/frames.hpp"
#include "rendezvous/client/handshake.hpp"
#include "rendezvous/client/secret.hpp"
#include "rendezvous/server/server_loop.hpp"
#include "rendezvous/store/buffer.hpp"

#include <chrono>

namespace muster::rendezvous {
namespace {

constexpr std::size_t kKeptBytes = 4 * 1024;  // Of an empty buffer of a link.

/// Waiting on one link that gets one message more: a frame of the longest kind (an Assignment, a
/// Verdict), and small ones behind it. With more it is closed: its agent comes back and is told
/// anew what holds. Less would close it, again and again, for a frame that we sent it ourselves.
constexpr std::size_t kUnsentBytes = kMaxFrameBytes + 64 * 1024;

/// Beginnings of frames, of all links together. The one that would exceed it closes.
constexpr std::size_t kBufferedBytes = 256 * 1024 * 1024;

}  // namespace

bool Server::Loop::receive(Link& link) {
  if (link.stage == Link::Stage::Unknown || link.stage == Link::Stage::Preface) {
    identify(link);
    return false;
  }
  const auto moved = posix::receive_now(link.socket.get(), received_);
  switch (moved.end) {
    case posix::Moved::End::WouldBlock:
      return true;
    case posix::Moved::End::Finished:
    case posix::Moved::End::Broken:
      close(link);
      return false;
    case posix::Moved::End::None:
      break;
  }
  if (link.stage == Link::Stage::Closing) return true;  // Read away: see Loop::flush.
  return digest(link, {received_.data(), moved.bytes});
}

bool Server::Loop::digest(Link& link, std::string_view fresh) {
  std::string_view input = fresh;
  std::string whole;
  if (!link.in.empty()) {
    whole = std::exchange(link.in, {});
    whole.append(fresh);
    input = whole;
  }
  if (!link.has_magic && !take_magic(link, input)) return false;
  while (link.has_magic) {
    const bool is_opening = link.stage == Link::Stage::Opening;
    const auto body = first_frame(input, is_opening ? kMaxOpenBytes : kMaxFrameBytes);
    if (!body) {
      refuse(link, body.error().message);
      return false;
    }
    if (!*body) break;
    input.remove_prefix(kFrameHeaderBytes + (*body)->size());
    auto frame = decode_client_frame(**body);
    if (!frame) {
      refuse(link, printable(frame.error().message));
      return false;
    }
    if (*frame && !take(link, **std::move(frame))) return false;
  }
  return keep_rest(link, input);
}

bool Server::Loop::take_magic(Link& link, std::string_view& input) {
  switch (compare_magic(input)) {
    case Magic::Partial:
      return true;
    case Magic::Ours:
      link.has_magic = true;
      input.remove_prefix(kMagic.size());
      return true;
    case Magic::OtherVersion: {
      const auto version = static_cast<unsigned char>(input[kMagic.size() - 1]);
      return reject(link, "this server (muster " MUSTER_VERSION ") speaks version " +
                              std::to_string(static_cast<unsigned char>(kMagic.back())) +
                              " of the rendezvous protocol, the node version " +
                              std::to_string(version) +
                              ": run the same release of muster on all nodes");
    }
    case Magic::Foreign:
      break;
  }
  refuse(link, "it begins as an agent does, and is none");
  return false;
}

bool Server::Loop::take(Link& link, ClientFrame frame) {
  return std::visit([&](auto& each) { return take(link, each); }, frame);
}

bool Server::Loop::take(Link& link, Open& open) {
  if (link.stage != Link::Stage::Opening) return out_of_turn(link);
  auto nonce = random_secret();
  if (!nonce) {
    refuse(link, nonce.error().message);
    return false;
  }
  link.nonces = std::make_unique<Nonces>(Nonces{std::move(open.nonce), *std::move(nonce)});
  link.stage = Link::Stage::Challenged;
  Challenge challenge;
  challenge.version = MUSTER_VERSION;
  challenge.nonce = link.nonces->server;
  challenge.asks_token = options_.token.has_value();
  if (options_.token) {
    challenge.proof = server_proof(*options_.token, link.nonces->client, link.nonces->server);
  }
  link.out += kMagic;
  send(link, challenge);
  return true;
}

bool Server::Loop::take(Link& link, Greeting& greeting) {
  if (link.stage != Link::Stage::Challenged) return out_of_turn(link);
  if (options_.token) {
    const auto wanted =
        greeting_proof(*options_.token, link.nonces->server, link.nonces->client, greeting.hello);
    if (!are_same_secret(greeting.proof, wanted)) {
      return reject(link, "the server asks for a token and node " + greeting.hello.name + " gave " +
                              (greeting.proof.empty() ? "none: " : "another: ") +
                              std::string(kSameToken));
    }
  }
  if (greeting.hello.settings.store_on_server && !may_keep_store(greeting.hello.job)) {
    return reject(link, "node " + greeting.hello.name + ": " + store_is_taken());
  }
  ++attendances_;
  link.stage = Link::Stage::Attending;
  link.is_known = true;
  links_.know(link);
  const auto local = posix::to_endpoint(posix::local_address(link.socket.get()));
  const auto id = link.id;
  feed(Rendezvous::Greeted{id, std::move(greeting.hello), to_endpoint(link.peer).host, local.host});
  const Link* const left = links_.find(id);
  return left != nullptr && left->stage == Link::Stage::Attending;
}

bool Server::Loop::take(Link& link, Parting& parting) {
  if (link.stage != Link::Stage::Challenged) return out_of_turn(link);
  if (options_.token) {
    const auto wanted =
        parting_proof(*options_.token, link.nonces->server, link.nonces->client, parting.farewell);
    if (!are_same_secret(parting.proof, wanted)) {
      return reject(link, "the server asks for a token, and the farewell came with " +
                              std::string(parting.proof.empty() ? "none: " : "another: ") +
                              std::string(kSameToken));
    }
  }
  link.stage = Link::Stage::Parting;
  link.is_known = true;
  auto incarnation = incarnation_of(parting.farewell.secret);
  feed(Rendezvous::Departed{link.id, std::move(parting.farewell), std::move(incarnation)});
  return false;
}

bool Server::Loop::take(Link& link, Unproven& unproven) {
  if (link.stage != Link::Stage::Challenged) return out_of_turn(link);
  refuse(link,
         "node " + printable(unproven.node) + " goes no further: " + printable(unproven.reason));
  return false;
}

bool Server::Loop::take(Link& link, AgentMessage& message) {
  if (link.stage != Link::Stage::Attending) return out_of_turn(link);
  const auto id = link.id;
  feed(Rendezvous::Heard{id, std::move(message)});
  const Link* const left = links_.find(id);
  return left != nullptr && left->stage == Link::Stage::Attending;
}

bool Server::Loop::out_of_turn(Link& link) {
  refuse(link, "a frame out of turn");
  return false;
}

bool Server::Loop::reject(Link& link, const std::string& text) {
  refusals_.refused(std::chrono::steady_clock::now(), to_endpoint(link.peer), printable(text));
  if (link.stage == Link::Stage::Opening) link.out += kMagic;
  const auto id = link.id;
  const ServerMessage refusal = Refusal{text, kUsage};
  send(link, refusal);
  if (Link* const left = links_.find(id)) see_off(*left);
  return false;
}

bool Server::Loop::keep_rest(Link& link, std::string_view rest) {
  if (buffered_ - link.accounted + rest.size() > kBufferedBytes) {
    refuse(link,
           "what has come of unfinished frames, of all connections together, would exceed "
           "the limit of " +
               std::to_string(kBufferedBytes) + " bytes");
    return false;
  }
  link.in.assign(rest);
  if (rest.empty()) store::empty(link.in, 0);
  const auto held = store::heap_bytes(link.in);
  buffered_ += held;
  buffered_ -= std::exchange(link.accounted, held);
  return true;
}

bool Server::Loop::has_room(Link& link) {
  const auto is_full = [&link] { return link.out.size() - link.sent > kUnsentBytes; };
  if (!is_full()) return true;
  const auto id = link.id;
  flush(link);
  if (links_.find(id) == nullptr) return false;
  if (!is_full()) return true;
  refuse(link, "it does not take what it is sent: more than " + std::to_string(kUnsentBytes) +
                   " bytes wait; it may come back");
  return false;
}

void Server::Loop::mark_dirty(Link& link) {
  if (std::exchange(link.is_dirty, true)) return;
  dirty_.push_back(link.id);
}

/// Sends as much as the kernel takes. Of one that is closing, the rest too: what it sends meanwhile
/// is read and thrown away, since closing with unread bytes would reset the connection and might
/// discard what is on its way.
void Server::Loop::flush(Link& link) {
  if (!link.out.empty()) {
    const auto due = std::string_view(link.out).substr(link.sent);
    const auto moved = posix::send_now(link.socket.get(), due);
    if (moved.end == posix::Moved::End::Broken) return close(link);
    link.sent += moved.bytes;
    if (link.sent == link.out.size()) {
      link.sent = 0;
      store::empty(link.out, 0);
    } else if (link.sent > kKeptBytes) {
      link.out.erase(0, std::exchange(link.sent, 0));
    }
  }
  if (link.out.empty() && link.stage == Link::Stage::Closing) {
    posix::finish_sending(link.socket.get());
    std::array<char, 4 * 1024> room;  // A frame of another's may still be in received_.
    const auto ignored = posix::receive_now(link.socket.get(), room);
    const bool is_over =
        ignored.end == posix::Moved::End::Finished || ignored.end == posix::Moved::End::Broken;
    if (is_over) return close(link);
  }
  set_interest(link);
}

void Server::Loop::set_interest(Link& link) {
  const std::uint32_t wanted = EPOLLIN | (link.out.empty() ? 0U : EPOLLOUT);
  if (wanted == link.interest) return;
  link.interest = wanted;
  static_cast<void>(set_.change(link.socket.get(), wanted, link.id.value));
}

}  // namespace muster::rendezvous
