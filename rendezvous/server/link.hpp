#pragma once

#include "base/ids.hpp"
#include "base/posix/fd.hpp"
#include "base/posix/socket.hpp"
#include "rendezvous/core/job_view.hpp"
#include "rendezvous/store/connections.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

namespace muster::rendezvous {

/// What the two sides of a handshake gave each other to sign.
struct Nonces {
  std::string client;
  std::string server;
};

/// One connection to the server's port, as long as it is nobody else's. Ten thousand of them are at
/// rest most of the time: they hold no buffers then.
struct Link {
  enum class Stage : std::uint8_t {
    Unknown,     ///< Not enough has come to tell what it speaks.
    Preface,     ///< gRPC, if the rest of its preface comes.
    Opening,     ///< An agent's, as long as it has not sent its Open.
    Challenged,  ///< It has to say who it is.
    Attending,   ///< Its Hello was passed on to the core.
    Parting,     ///< Its farewell was.
    Closing,     ///< It gets what it is due, then the end. Nothing of it is read any more.
  };

  posix::Fd socket;
  LinkId id;
  store::Peer peer;
  Stage stage = Stage::Unknown;
  bool has_magic = false;
  bool is_stranger = true;     ///< Counted by its address.
  bool is_known = false;       ///< To the core, which has not closed it.
  bool is_dirty = false;       ///< In the list of those to send to at the end of the turn.
  std::uint32_t interest = 0;  ///< Epoll's, as set.

  std::string in{};           ///< The beginning of a frame.
  std::string out{};          ///< Due to the agent,
  std::size_t sent = 0;       ///< of which so much is gone.
  std::size_t accounted = 0;  ///< What `in` holds, as the total knows it.
  std::unique_ptr<Nonces> nonces{};
};

/// The connections, by name, and how many of each address have not said who they are. A name is
/// never used twice.
class Links {
 public:
  Link& open(posix::Fd socket, const store::Peer& peer);
  /// Out of the table; the socket is the caller's to close or to hand over.
  posix::Fd take(LinkId id);
  [[nodiscard]] Link* find(LinkId id) noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return links_.size(); }
  /// It has said who it is: the limits of its job count it from now on.
  void know(Link& link);
  [[nodiscard]] std::size_t strangers_from(const store::Peer& peer) const;

  template <class Visit>
  void for_each(Visit&& visit) {
    for (auto& [id, link] : links_) visit(link);
  }

 private:
  std::unordered_map<std::uint64_t, Link> links_;
  std::map<std::array<std::uint8_t, 16>, std::size_t> strangers_;
  std::uint64_t last_ = 0;
};

}  // namespace muster::rendezvous
