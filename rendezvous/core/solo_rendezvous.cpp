#include "rendezvous/core/solo_rendezvous.hpp"

#include <utility>

namespace muster::rendezvous {
namespace {

constexpr LinkId kLink{1};
constexpr auto kLoopback = "127.0.0.1";

Rendezvous::Settings core_settings(std::uint64_t seed) {
  Rendezvous::Settings settings;
  settings.first_here = true;
  settings.seed = seed;
  return settings;
}

}  // namespace

SoloRendezvous::SoloRendezvous(Settings settings)
    : settings_(settings), rendezvous_(core_settings(settings.seed)) {}

std::vector<Order> SoloRendezvous::step(TimePoint now, const Report& report) {
  const auto* offered = std::get_if<Hello>(&report);
  if (offered == nullptr) return feed(now, Rendezvous::Heard{kLink, report});
  auto hello = *offered;
  hello.incarnation = {"solo"};
  hello.ping = 1;
  hello.settings = JobSettings{};
  hello.settings.max_restarts = settings_.max_restarts;
  hello.settings.max_restarts_without_progress = settings_.max_restarts_without_progress;
  hello.settings.restart_backoff = settings_.restart_backoff;
  hello.settings.lease = Duration::zero();
  return feed(now, Rendezvous::Greeted{kLink, std::move(hello), kLoopback, kLoopback});
}

std::vector<Order> SoloRendezvous::tick(TimePoint now) { return feed(now, Rendezvous::Ticked{}); }

std::vector<Order> SoloRendezvous::feed(TimePoint now, const Rendezvous::Event& event) {
  std::vector<Order> orders;
  for (auto& action : rendezvous_.step(now, event)) {
    auto* send = std::get_if<Rendezvous::Send>(&action);
    auto* directive = send == nullptr ? nullptr : std::get_if<Directive>(&send->message);
    if (directive != nullptr) orders.push_back(std::move(directive->order));
  }
  return orders;
}

}  // namespace muster::rendezvous
