#pragma once

#include "agent/core/attendee.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <catch2/catch.hpp>

namespace muster::agent {

constexpr Duration kLease = std::chrono::seconds(10);

/// An attendee with a lease of 10 s, and a server that answers only when the test says so. Lines
/// are dialled and connected by hand or, with `reachable`, at once.
class AttendeeSim {
 public:
  AttendeeSim()
      : attendee(
            {.hello = {.job = "j",
                       .incarnation = {"me"},
                       .settings = {.lease = kLease, .join_timeout = std::chrono::seconds(60)}},
             .server = "head:29400",
             .seed = 1}) {
    perform(attendee.start(now));
  }

  void feed(const Attendee::Event& event) { perform(attendee.step(now, event)); }
  void hear(ServerMessage message) { hear_on(voice, std::move(message)); }
  void hear_on(Attendee::Line line, ServerMessage message) {
    Attendee::Received received;
    received.line = line;
    received.message = std::move(message);
    feed(std::move(received));
  }
  void report(Report report) { feed(Attendee::Reported{std::move(report)}); }
  void connect(Attendee::Line line) { feed(Attendee::Connected{line}); }
  void drop(Attendee::Line line, std::string why = "reset") {
    feed(Attendee::Dropped{line, std::move(why)});
  }
  void advance(Duration by) {
    const auto until = now + by;
    while (attendee.next_deadline() && *attendee.next_deadline() <= until) {
      now = std::max(now, *attendee.next_deadline());
      feed(Attendee::Ticked{});
    }
    now = until;
  }
  /// Answers the newest ping and lets time pass, again and again.
  void advance_answered(Duration by) {
    for (const auto until = now + by; now < until;) {
      hear(Pong{newest_ping});
      advance(std::min<Duration>(until - now, std::chrono::seconds(1)));
    }
    hear(Pong{newest_ping});
  }

  /// Connects, is welcomed, and its Hello is answered.
  void join() {
    connect(dialled.back());
    hear(Welcome{"1"});
    hear(Pong{newest_ping});
  }
  Assignment assignment(std::uint64_t number) const {
    Assignment given;
    given.round = {1, number};
    given.attempt = static_cast<std::uint32_t>(number) - 1;
    given.restarts = 2;
    given.nodes = 3;
    return given;
  }
  void order(Order order) { order_quoting(newest_ping, std::nullopt, std::move(order)); }
  void order_quoting(std::uint64_t ping, std::optional<Duration> right, Order order) {
    order_on(voice, ping, right, std::move(order));
  }
  // Step by step: g++ 12 takes variants of variants that are built in one expression for
  // uninitialised.
  void order_on(Attendee::Line line, std::uint64_t ping, std::optional<Duration> right,
                Order order) {
    Directive directive;
    directive.ping = ping;
    directive.right = right;
    directive.order = std::move(order);
    hear_on(line, std::move(directive));
  }

  Attendee attendee;
  TimePoint now{};
  Attendee::Line voice;
  std::uint64_t newest_ping = 0;
  std::vector<Attendee::Line> dialled;
  std::vector<Attendee::Line> hung_up;
  std::vector<Hello> hellos;
  std::vector<TimePoint> pings;
  std::vector<Report> reports;  // Since the newest Hello, and on its line.
  std::vector<AgentMessage> sent;
  std::optional<TimePoint> lease_ends;
  int half_leases = 0;
  std::vector<std::string> fences;
  std::vector<Order> orders;
  std::vector<std::string> said;
  std::optional<Attendee::Leave> left;

 private:
  void perform(const std::vector<Attendee::Action>& actions) {
    for (const auto& action : actions) std::visit([this](const auto& what) { act(what); }, action);
  }
  void act(const Attendee::Dial& dial) { dialled.push_back(dial.line); }
  void act(const Attendee::HangUp& hang_up) { hung_up.push_back(hang_up.line); }
  void act(const Attendee::Transmit& transmit) {
    sent.push_back(transmit.message);
    if (const auto* ping = std::get_if<Ping>(&transmit.message)) {
      CHECK(ping->number == ++newest_ping);
      pings.push_back(now);
      return;
    }
    const auto& report = std::get<Report>(transmit.message);
    if (const auto* hello = std::get_if<Hello>(&report)) {
      CHECK(hello->ping == ++newest_ping);
      voice = transmit.line;
      hellos.push_back(*hello);
      reports.clear();
    } else {
      reports.push_back(report);
    }
    CHECK(transmit.line == voice);
  }
  void act(const Attendee::Renew& renew) { lease_ends = renew.ends; }
  void act(const Attendee::HalfLease&) { ++half_leases; }
  void act(const Attendee::Fence& fence) { fences.push_back(fence.reason); }
  void act(const Attendee::Deliver& deliver) { orders.push_back(deliver.order); }
  void act(const Attendee::Say& say) { said.push_back(say.text); }
  void act(const Attendee::Leave& leave) { left = leave; }
};

template <class T>
std::size_t count(const std::vector<Report>& reports) {
  return static_cast<std::size_t>(
      std::count_if(reports.begin(), reports.end(),
                    [](const Report& report) { return std::holds_alternative<T>(report); }));
}

}  // namespace muster::agent
