#include "rendezvous/store/knock.hpp"
#include "rendezvous/store/loop.hpp"

#include <chrono>

namespace muster::store {
namespace {

/// How often at most one address is reported as turned away: its client tries again and again.
constexpr std::chrono::minutes kTurnedAwayAgain{1};
/// Beyond, whoever is reported may be reported again sooner.
constexpr std::size_t kMaxTurnedAway = 1024;

bool are_same(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  unsigned difference = 0;
  for (std::size_t at = 0; at < one.size(); ++at) {
    difference |= static_cast<unsigned char>(one[at]) ^ static_cast<unsigned char>(other[at]);
  }
  return difference == 0;
}

}  // namespace

void Server::Loop::on_turned_away(std::function<void(const std::string&)> handler) {
  on_turned_away_ = std::move(handler);
}

/// The first bytes of a connection: of a client that may come in, or of somebody who knocks.
bool Server::Loop::let_in(Connection& connection, std::string_view fresh) {
  const char first = connection.in.empty() ? fresh.front() : connection.in.front();
  if (first == kKnockMagic.front()) return hear_knock(connection, fresh);
  if (!door_.admits(connection.peer.address)) {
    turn_away(connection);
    return false;
  }
  connection.is_inside = true;
  return digest(connection, fresh);
}

bool Server::Loop::hear_knock(Connection& connection, std::string_view fresh) {
  constexpr std::size_t kHead = kKnockMagic.size() + 1;
  std::string& heard = connection.in;
  // What stands behind the knock is not its business.
  heard.append(
      fresh.substr(0, kHead + kMaxKnockSecret - std::min(heard.size(), kHead + kMaxKnockSecret)));
  settle_account(connection);
  const auto magic = std::string_view(heard).substr(0, kKnockMagic.size());
  if (magic != kKnockMagic.substr(0, magic.size())) {
    refuse(connection, "it begins as a knock does, and is none");
    return false;
  }
  const std::size_t secret =
      heard.size() < kHead ? kMaxKnockSecret : static_cast<unsigned char>(heard[kHead - 1]);
  if (heard.size() < kHead + secret) {
    if (!connection.partial_since) begin_partial(connection);
    return true;
  }
  const bool is_welcome = !door_.secret.empty() &&
                          are_same(std::string_view(heard).substr(kHead, secret), door_.secret);
  if (is_welcome) door_.admitted.insert(connection.peer.address);
  connection.out = knock_answer(is_welcome);
  dismiss(connection);
  return false;
}

void Server::Loop::turn_away(Connection& connection) {
  const auto host = to_endpoint(connection.peer).host;
  const auto& address = connection.peer.address;
  const auto told = turned_away_.find(address);
  const bool is_news = told == turned_away_.end() || now() - told->second >= kTurnedAwayAgain;
  if (is_news) {
    if (turned_away_.size() >= kMaxTurnedAway) turned_away_.clear();
    turned_away_[address] = now();
    refusals_.refused(now(), to_endpoint(connection.peer),
                      "the address is none of the job's nodes; --store-allow " + host +
                          " (or a network, or any) admits it");
  }
  dismiss(connection);
  if (is_news && on_turned_away_) on_turned_away_(host);
}

}  // namespace muster::store
