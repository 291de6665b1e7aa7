#include "tests/sim/membership_sim.hpp"

#include "tests/sim/membership_world.hpp"

#include <algorithm>
#include <csignal>

namespace muster::sim {
using namespace std::chrono_literals;
namespace {

/// After the faults stopped every wait ends within this: recovery, the join, cool-downs, the rounds
/// that follow one another.
constexpr Duration kPatience = 600s;

}  // namespace

World::World(std::uint64_t seed, Planted planted, std::ostream* trace)
    : chance_(seed), steps_(~seed), planted_(planted), trace_(trace), truth_(chance_.pick(4)) {
  links_.emplace_back();  // 0 is no link.
  constexpr Duration kLeases[] = {1s, 2s, 3s, 10s};
  const auto nodes = 1 + chance_.pick(5);
  settings_.min_nodes = 1 + chance_.pick(nodes);
  settings_.max_nodes = settings_.min_nodes + chance_.pick(nodes - settings_.min_nodes + 2);
  settings_.max_restarts = truth_.budget();
  settings_.lease = kLeases[chance_.pick(4)];
  settings_.join_timeout = 100s;
  if (chance_.one_in(4)) settings_.last_call = 2s;
  if (chance_.one_in(4)) settings_.prefer = nodes;
  if (chance_.one_in(5)) settings_.scale_up = ScaleUp::Never;
  if (chance_.one_in(4)) settings_.restart_backoff = 1s;
  tells_steps_ = steps_.one_in(3);
  if (tells_steps_) {
    settings_.max_restarts_without_progress = 2 + steps_.pick(2);
    truth_.limit_fruitless(*settings_.max_restarts_without_progress);
  }
  max_lease_ = chance_.one_in(4) ? 2 * settings_.lease : settings_.lease;
  if (chance_.one_in(2) || planted == Planted::IdFreeAtOnce) launch_tag_ = "launch 1";
  work_ = chance_.between(1s, 15s);
  grace_ = chance_.one_in(2) ? 1s : 8s;
  spiky_ = chance_.one_in(4);
  quiet_at_ = TimePoint{} + chance_.between(2s, 8 * settings_.lease + 10s);

  embedded_ = chance_.one_in(3);
  settings_.store_on_server = chance_.one_in(4);
  if (chance_.one_in(2)) preempt_signal_ = SIGUSR1;
  settings_.preempt_signal = static_cast<std::uint32_t>(preempt_signal_);
  server_.host = add_host();
  const auto together = chance_.one_in(2) ? 0s : 3s;
  for (std::uint32_t node = 0; node < nodes; ++node) {
    // Sometimes several launchers share a machine.
    const bool shares = node > 1 && chance_.one_in(8);
    const bool on_servers = node == 0 && embedded_;
    const auto number = add_node(on_servers ? server_.host
                                 : shares   ? hosts_.size() - 1
                                            : add_host());
    queue_.after(chance_.between(0s, together), [this, number] { start_node(number); });
  }
  if (!embedded_) queue_.after(chance_.between(0s, together), [this] { bind_server(); });
  dies_of_the_verdict_ = chance_.one_in(4);
  plan_faults();
}

std::size_t World::add_host() {
  constexpr std::int64_t kRate = 47'000;  // Two clocks differ by 9.9 % at most.
  const auto rate = chance_.one_in(3) ? kRate
                    : chance_.one_in(2)
                        ? -kRate
                        : static_cast<std::int64_t>(chance_.pick(2 * kRate)) - kRate;
  hosts_.push_back({Clock(chance_.between(1s, 100'000s), rate)});
  return hosts_.size() - 1;
}

std::size_t World::add_node(std::size_t host) {
  const auto number = nodes_.size();
  Attendee::Settings settings;
  settings.hello.job = "j";
  settings.hello.launch_tag = launch_tag_;
  settings.hello.incarnation = {"incarnation " + std::to_string(number)};
  settings.hello.machine = "machine " + std::to_string(host);
  settings.hello.name = "n" + std::to_string(number);
  settings.hello.slots = 1 + chance_.pick(2);
  settings.hello.role = "default";
  settings.hello.store = {"10.0.0." + std::to_string(host), 1};
  settings.hello.settings = settings_;
  settings.server = "server:29400";
  settings.seed = chance_();
  const bool embeds = embedded_ && host == server_.host;
  settings.hello.hosts_server = embeds;
  const WorkerGroup::Settings group{
      .workers = settings.hello.slots, .grace = grace_, .preempt_signal = preempt_signal_};
  auto& node = nodes_.emplace_back(std::move(settings), group);
  node.number = number;
  node.host = host;
  node.embeds = embeds;
  node.incarnation = {"incarnation " + std::to_string(number)};
  return number;
}

Outcome World::run() {
  const auto ends = quiet_at_ + kPatience;
  while (truth_.broken().empty() && !another_job_ && !queue_.empty()) {
    queue_.run_next();
    if (quiet_ && std::all_of(nodes_.begin(), nodes_.end(),
                              [](const Node& node) { return node.over || !node.agent_lives; }))
      break;
    if (now() > ends) {
      std::string text = "the job does not end:";
      for (const auto& node : nodes_) {
        if (node.agent_lives) text += " n" + std::to_string(node.number) + " is there;";
      }
      if (server_.core) {
        if (const auto view = server_.core->job(hosts_[server_.host].clock.read(now()), "j"))
          text += " the server is " + view->phase + ", " + view->reason;
      }
      truth_.breaks(text);
    }
  }
  if (!truth_.broken().empty()) {
    outcome_.broken =
        truth_.broken() + " (at " +
        std::to_string(std::chrono::duration<double>(now().time_since_epoch()).count()) + " s)";
    trace("BROKEN: ", outcome_.broken);
  }
  outcome_.rounds = static_cast<unsigned>(truth_.rounds());
  outcome_.ended = truth_.has_verdict();
  return outcome_;
}

Outcome simulate(std::uint64_t seed, Planted planted, std::ostream* trace) {
  return World(seed, planted, trace).run();
}

}  // namespace muster::sim
