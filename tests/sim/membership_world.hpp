#pragma once

#include "agent/core/attendee.hpp"
#include "agent/core/worker_group.hpp"
#include "rendezvous/core/rendezvous.hpp"
#include "tests/sim/membership_sim.hpp"
#include "tests/sim/membership_truth.hpp"
#include "tests/sim/virtual_time.hpp"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace muster::sim {

using agent::Attendee;
using agent::WorkerGroup;
using rendezvous::LinkId;
using rendezvous::Rendezvous;

/// The state of one schedule: with a standing server, or one that is embedded in a node's launcher
/// and lives and dies with that. Its parts: the network (membership_network.cpp), the server
/// (membership_server.cpp), the nodes (membership_node.cpp) with their workers
/// (membership_workers.cpp), and what goes wrong (membership_faults.cpp).
class World {
 public:
  World(std::uint64_t seed, Planted planted, std::ostream* trace);
  Outcome run();

 private:
  /// Of a line that was hung up before it was dialled.
  static constexpr std::size_t kNoLink = ~std::size_t{0};

  /// A machine: its clock, and its path to and from all others.
  struct Host {
    Clock clock;
    bool up = true;
    TimePoint out_cut_until{};  // What it sends waits until then.
    TimePoint in_cut_until{};   // What it is sent.
  };

  /// A stalled party does nothing; what comes waits. It is stalled between two of its deeds: also
  /// between reading its clock and what follows from that.
  struct Stall {
    bool on = false;
    Duration next{};        // For so long before the next action,
    bool at_spawn = false;  // that is a Spawn.
  };

  struct Worker {
    RoundId round;
    std::uint32_t rank = 0;
    std::uint64_t serial = 0;  // 0: there is none.
    bool runs = false;         // Executes its program: not killed yet.
    bool obeys = true;
    bool killable = true;
    int asked = 0;           // By this signal.
    std::uint64_t step = 0;  // Told by its beacon.
  };

  using Deed =
      std::variant<Attendee::Event, Attendee::Action, WorkerGroup::Event, WorkerGroup::Action>;

  /// One launcher: agent and keeper.
  struct Node {
    Node(Attendee::Settings attendee_settings, WorkerGroup::Settings group_settings)
        : attendee(std::move(attendee_settings)),
          settings(group_settings),
          group(std::in_place, group_settings) {}

    std::size_t number = 0;
    std::size_t host = 0;
    Incarnation incarnation;
    Attendee attendee;
    WorkerGroup::Settings settings;
    std::optional<WorkerGroup> group;

    bool agent_lives = false;  // Until it starts.
    bool keeper_lives = true;
    Stall stall;
    bool busy = false;
    std::deque<Deed> todo;           // Follows from what is being dealt with.
    std::deque<Deed> inbox;          // From outside.
    std::optional<TimePoint> armed;  // True time of the next look at the clock.
    std::optional<TimePoint> page;   // The keeper's page: by the host's clock.
    TimePoint keeper_stalled_until{};
    TimePoint last_deed;          // By the host's clock: an agent's tick, for a planted fault.
    bool lease_was_good = false;  // When the last step was decided, for a planted fault.
    std::uint64_t newest_ping = 0;
    bool embeds = false;  // The server is in its process.
    std::vector<Worker> workers;
    std::vector<std::size_t> links;  // By line.
    std::optional<Assignment> knocking;
    std::optional<RoundId> hosts_store;
    std::uint16_t port = 1;
    std::optional<RoundId> stopped;          // The newest that it was told to stop.
    bool served = false;                     // It was in a round.
    TimePoint troubled_until{};              // Cut off, or stalled.
    bool signalled = false;                  // By its user, or an operator.
    bool crashed = false;                    // Some part of it was.
    bool told_alone = false;                 // A verdict of its own, as it left.
    std::optional<TimePoint> knows_verdict;  // The job's: from then on.
    std::optional<Attendee::Leave> left;
    bool over = false;  // Nothing of it is left.
  };

  struct Link {
    std::size_t node = 0;
    Attendee::Line line;
    std::uint64_t server = 0;
    bool agent_open = true;
    bool server_open = true;
    bool lossy = false;     // A middlebox reset it: what is under way is lost.
    TimePoint to_server{};  // The last arrival there: streams keep their order.
    TimePoint to_agent{};
    Incarnation greeted;
  };

  struct Server {
    std::size_t host = 0;
    std::uint64_t instance = 0;
    std::unique_ptr<Rendezvous> core;  // nullptr: it is down.
    Stall stall;
    bool busy = false;
    std::deque<Rendezvous::Event> inbox;
    std::deque<Rendezvous::Action> todo;
    std::optional<TimePoint> armed;
    TimePoint stalled_until{};
    TimePoint ticked_at{};
    unsigned ticks = 0;    // Then.
    TimePoint bound_at{};  // True time.
    bool store_open = false;
    bool knows_verdict = false;
    std::map<Incarnation, TimePoint> known;  // Greeted here, and when first.
    std::set<Incarnation> farewells;
    std::set<RoundId> failed_rounds;  // For a planted fault.
  };

  // Set-up.
  std::size_t add_host();
  std::size_t add_node(std::size_t host);
  void start_node(std::size_t number);
  Hello hello_of(const Node& node);

  // The network.
  Duration latency();
  TimePoint passage(TimePoint last, TimePoint cut_until);
  void dial(std::size_t node, Attendee::Line line, TimePoint patience_ends);
  void send_to_server(std::size_t link, AgentMessage message);
  void arrive_at_server(std::size_t link, const AgentMessage& message);
  void send_to_agent(std::size_t link, ServerMessage message);
  void arrive_at_agent(std::size_t link, const ServerMessage& message);
  void close_from_agent(std::size_t link);
  void close_from_server(std::size_t link, const std::string& why);
  void reset(std::size_t link);
  void lose(std::size_t link);
  void say_farewell(std::size_t node, std::optional<RoundId> round, TimePoint until);
  bool is_local(const Node& node) const;
  TimePoint out_cut_of(const Node& node) const;
  TimePoint in_cut_of(const Node& node) const;
  bool is_cut(const Node& node) const;

  // The server.
  void bind_server();
  void crash_server();
  void tell_server(Rendezvous::Event event);
  void run_server();
  void step_server(const Rendezvous::Event& event);
  void arm_server();
  void act(const Rendezvous::Send& send);
  void act(const Rendezvous::Acknowledge& acknowledge);
  void act(const Rendezvous::Close& close);
  void act(const Rendezvous::Answer& answer);
  void act(const Rendezvous::Note& note);
  void act(const Rendezvous::OpenStore& open);
  void act(const Rendezvous::CloseStore& close);
  void act(const Rendezvous::Ended& ended);
  void plant_in_greeting(Hello& hello) const;
  void decide_at_the_first_failure(LinkId link, const Failed& failed);
  void see_whether_survivors_are_told();
  void look_whether_survivors_were_told();

  // The nodes.
  TimePoint clock_of(const Node& node) const { return hosts_[node.host].clock.read(now()); }
  void tell_node(Node& node, Deed event);
  void run_node(Node& node);
  void arm_node(Node& node);
  void do_deed(Node& node, const Attendee::Event& event);
  void do_deed(Node& node, const Attendee::Action& action);
  void do_deed(Node& node, const WorkerGroup::Event& event);
  void do_deed(Node& node, const WorkerGroup::Action& action);
  void act(Node& node, const Attendee::Dial& dial);
  void act(Node& node, const Attendee::HangUp& hang_up);
  void act(Node& node, const Attendee::Transmit& transmit);
  void act(Node& node, const Attendee::Renew& renew);
  void act(Node& node, const Attendee::HalfLease& half);
  void act(Node& node, const Attendee::Fence& fence);
  void act(Node& node, const Attendee::Deliver& deliver);
  void act(Node& node, const Attendee::Say& say);
  void act(Node& node, const Attendee::Leave& leave);
  void act(Node& node, const WorkerGroup::HostStore& host);
  void act(Node& node, const WorkerGroup::Knock& knock);
  void act(Node& node, const WorkerGroup::StopKnocking& stop);
  void act(Node& node, const WorkerGroup::Spawn& spawn);
  void act(Node& node, const WorkerGroup::Signal& signal);
  void act(Node& node, const WorkerGroup::SignalTree& signal);
  void act(Node& node, const WorkerGroup::KillTree& kill);
  void act(Node& node, const WorkerGroup::Send& send);
  void act(Node& node, const WorkerGroup::EndRound& end);
  void act(Node& node, const WorkerGroup::GiveUp& give_up);
  void act(Node& node, const WorkerGroup::TellWorkers& tell);
  void knock(std::size_t number, RoundId round);
  void grant_grace(Node& node);
  bool page_is_over(const Node& node) const;
  bool keeper_is_stalled(const Node& node) const { return now() < node.keeper_stalled_until; }
  void guard(std::size_t number);
  void kill_agent(Node& node);
  void undertake(std::size_t number, TimePoint until);
  void finish(Node& node);

  // The workers.
  void begin(Node& node, std::uint32_t index, const Assignment& assignment);
  void train(std::size_t node, std::uint32_t index, std::uint64_t serial);
  void tell_step(std::size_t node, std::uint32_t index, std::uint64_t serial, std::uint64_t step);
  void fail_by_itself(Node& node, std::uint32_t index);
  void end_worker(Node& node, std::uint32_t index, ExitStatus status, Cause cause);
  void mourn(RoundId round);
  void kill_tree(Node& node);
  Worker* find_worker(std::size_t node, std::uint32_t index, std::uint64_t serial);
  static bool has_workers(const Node& node);

  // What goes wrong.
  void plan_faults();
  void do_fault();
  void quieten();
  void kill_agent_alone(Node& node);
  void crash_host(Node& node);
  void come_back(std::size_t host, Duration after);
  void cut(Host& host, Duration time);
  void stall_node(Node& node, Duration time);
  void stall_server(Duration time);
  void command();
  void verdict_may_be_lost();
  Node* some_node();
  Node* some_running_node();

  [[nodiscard]] TimePoint now() const { return queue_.now(); }
  [[nodiscard]] bool planted(Planted fault) const { return planted_ == fault; }
  template <class... Words>
  void trace(const Words&... words) {
    if (trace_ == nullptr) return;
    *trace_ << std::chrono::duration<double>(now().time_since_epoch()).count() << "  ";
    (*trace_ << ... << words);
    *trace_ << "\n";
  }

  Chance chance_;
  Chance steps_;  // Of what workers tell: other schedules are as they were without.
  Planted planted_;
  std::ostream* trace_;
  EventQueue queue_;
  JobSettings settings_;
  Duration max_lease_{};
  std::string launch_tag_;
  Duration work_{};  // Of one round, when nothing goes wrong.
  Duration grace_{};
  int preempt_signal_ = 0;
  bool embedded_ = false;     // The server is in the process of the launcher on its host.
  bool tells_steps_ = false;  // Workers have beacons.
  bool spiky_ = false;        // Some messages take very long.
  TimePoint quiet_at_{};      // Faults stop.
  bool quiet_ = false;
  Truth truth_;
  std::vector<Host> hosts_;
  std::deque<Node> nodes_;
  std::deque<Link> links_;
  std::uint64_t farewell_links_ = 1'000'000;
  std::map<std::uint64_t, std::size_t> farewell_of_;  // By link: the node.
  std::set<std::size_t> acknowledged_;                // Nodes whose farewell was.
  std::uint64_t next_command_ = 1;
  std::uint64_t next_serial_ = 1;
  Server server_;
  bool dies_of_the_verdict_ = false;  // The server, when it has told some of it.
  bool another_job_ = false;          // Begins under the same id: no longer our concern.
  Outcome outcome_;
};

}  // namespace muster::sim
