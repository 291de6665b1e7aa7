// Whatever agents say, and in whatever order, the membership core goes on. An input is a list of
// deeds: a byte that says on which connection (its lower bits) and after how long (its upper ones),
// then a client's frame: what is heard there; one that is empty hangs up. Beside that no clock, so
// that an input always does the same. make_rendezvous_corpus.py writes the golden frames so.
#include "base/endpoint.hpp"
#include "rendezvous/client/frames.hpp"
#include "rendezvous/client/wire.hpp"
#include "rendezvous/core/rendezvous.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <variant>

namespace {

using namespace muster;
using namespace muster::rendezvous;
using namespace std::chrono_literals;

constexpr std::size_t kLinks = 8;
constexpr std::array<Duration, 8> kLaters{0ms, 1ms, 500ms, 2s, 6s, 13s, 61s, 3700s};
/// More at one instant would be for ever.
constexpr int kMostTicks = 1000;

void fail(const char* what) {
  std::fprintf(stderr, "the membership core went wrong: %s\n", what);
  std::abort();
}

class Server {
 public:
  explicit Server(bool first_here) : rendezvous_(settings(first_here)) {}

  void step(const Rendezvous::Event& event) {
    for (const auto& action : rendezvous_.step(now_, event)) {
      if (const auto* close = std::get_if<Rendezvous::Close>(&action)) open_.erase(close->link);
      const auto* send = std::get_if<Rendezvous::Send>(&action);
      if (send == nullptr) continue;
      if (!open_.contains(send->link)) fail("it speaks to a connection that is not there");
      if (const auto* directive = std::get_if<Directive>(&send->message))
        see(send->link, directive->order);
    }
  }

  void wait(Duration time) {
    const auto until = now_ + time;
    for (auto next = rendezvous_.next_deadline(); next && *next <= until;
         next = rendezvous_.next_deadline()) {
      ticks_ = *next <= now_ ? ticks_ + 1 : 0;
      if (ticks_ > kMostTicks) fail("it is woken for nothing, for ever");
      now_ = std::max(now_, *next);
      step(Rendezvous::Ticked{});
    }
    now_ = until;
    step(Rendezvous::Ticked{});
    (void)rendezvous_.jobs(now_);
  }

  void say(std::size_t place, ClientFrame frame) {
    auto& link = links_.at(place);
    if (auto* greeting = std::get_if<Greeting>(&frame)) {
      if (link.value != 0) hang_up(place);
      link = LinkId{++last_};
      open_.insert(link);
      jobs_[link] = greeting->hello.job;
      step(Rendezvous::Greeted{link, std::move(greeting->hello), "10.0.0.1", "10.0.0.2"});
    } else if (auto* parting = std::get_if<Parting>(&frame)) {
      const LinkId once{++last_};
      open_.insert(once);
      step(Rendezvous::Departed{once, parting->farewell, {parting->farewell.secret}});
      open_.erase(once);
    } else if (auto* message = std::get_if<AgentMessage>(&frame)) {
      if (link.value != 0 && open_.contains(link)) step(Rendezvous::Heard{link, *message});
    }
  }

  void hang_up(std::size_t place) {
    auto& link = links_.at(place);
    if (link.value == 0) return;
    const bool was_open = open_.erase(link) > 0;
    const auto gone = std::exchange(link, {});
    if (was_open) step(Rendezvous::Lost{gone});
  }

 private:
  static Rendezvous::Settings settings(bool first_here) {
    Rendezvous::Settings settings;
    settings.max_lease = 10s;
    settings.first_here = first_here;
    settings.limits.nodes = 64;
    settings.limits.jobs = 4;
    return settings;
  }

  void see(LinkId link, const Order& order) {
    const auto* assignment = std::get_if<Assignment>(&order);
    if (assignment == nullptr) return;
    if (assignment->world_size == 0 || assignment->nodes == 0) fail("a round of nobody");
    if (assignment->node_rank.value >= assignment->nodes) fail("a node rank beyond the nodes");
    if (assignment->rank_offset.value >= assignment->world_size) fail("a rank beyond the world");
    const auto given =
        worlds_[jobs_.at(link)].emplace(assignment->round, assignment->world_size).first->second;
    if (given != assignment->world_size) fail("two worlds of one round");
  }

  Rendezvous rendezvous_;
  TimePoint now_;
  int ticks_ = 0;
  std::array<LinkId, kLinks> links_{};
  std::uint64_t last_ = 0;
  std::set<LinkId> open_;
  std::map<LinkId, std::string> jobs_;
  std::map<std::string, std::map<RoundId, std::uint32_t>> worlds_;  // By job.
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  Server server((bytes[0] & 1) != 0);
  std::string_view left(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  while (left.size() > kFrameHeaderBytes) {
    const auto deed = static_cast<unsigned char>(left.front());
    left.remove_prefix(1);
    server.wait(kLaters.at(deed >> 5U));
    const std::size_t place = deed % kLinks;
    if ((deed & 8U) != 0) server.hang_up(place);
    const auto body = first_frame(left, kMaxFrameBytes);
    if (!body || !*body) break;
    const auto frame = decode_client_frame(**body);
    left.remove_prefix(kFrameHeaderBytes + (*body)->size());
    if (frame && *frame) server.say(place, std::move(**frame));
  }
  server.wait(100s);
  return 0;
}
