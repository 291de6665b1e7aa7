#include "tests/rendezvous/server/agents.hpp"

#include <catch2/catch.hpp>

using namespace muster;
using namespace muster::rendezvous;
using namespace std::chrono_literals;

TEST_CASE("half a frame holds up nobody", "[server]") {
  ServerHost host;
  LineBench bench;
  RawClient half(host.port());
  const auto whole = std::string(kMagic) + framed(Open{"", std::string(32, 'n')});
  REQUIRE(half.send(std::string_view(whole).substr(0, whole.size() - 1)));
  const auto good = greeted(bench, host, hello_of("good"));
  REQUIRE(bench.until([&] { return good->first<Welcome>() != nullptr; }));
  REQUIRE(half.send(std::string_view(whole).substr(whole.size() - 1)));
  CHECK(half.receive(kMagic.size()) == kMagic);
}

TEST_CASE("an agent that does not read is cut off, and may come back", "[server]") {
  ServerHost host;
  LineBench bench;
  RawClient slow({.receive_buffer = 4096});
  slow.connect(host.port());
  REQUIRE(slow.send(std::string(kMagic) + framed(Open{"", std::string(32, 'n')}) +
                    framed(Greeting{hello_of("slow"), ""})));
  std::string pings;
  for (std::uint64_t number = 2; number < 3000; ++number)
    pings += framed(AgentMessage(Ping{number}));
  bool is_cut = false;
  for (int count = 0; count < 10000 && !is_cut; ++count) is_cut = !slow.send(pings);
  CHECK(is_cut);
  CHECK(host.log_with("it does not take what it is sent").find("127.0.0.1") != std::string::npos);
  auto hello = hello_of("slow");
  hello.ping = 100'000'000;  // Numbers never restart within an incarnation.
  const auto again = greeted(bench, host, hello);
  CHECK(bench.until([&] { return again->first<Pong>() != nullptr; }));
}

TEST_CASE("connections beyond the limit are closed, those within go on", "[server]") {
  ServerHost host({.connections = 8});
  std::vector<std::unique_ptr<RawClient>> held;
  for (int count = 0; count < 5; ++count) {
    held.push_back(std::make_unique<RawClient>(host.port()));
    REQUIRE(held.back()->send(kMagic));
  }
  RawClient beyond(host.port());
  CHECK(beyond.is_closed_by_peer());
  CHECK(host.log_with("limit of connections from one address is reached: 5").find("warning") == 0);
  REQUIRE(held[0]->send(framed(Open{"", std::string(32, 'n')})));
  CHECK(held[0]->receive(kMagic.size()) == kMagic);
}

TEST_CASE("a frame that is longer than what the kernel takes reaches its agent", "[server]") {
  constexpr std::uint32_t kNodes = 20;
  ServerHost host({.send_buffer = 4096});
  LineBench bench;
  const auto hello = [](std::uint32_t node) {
    auto made = hello_of("n" + std::to_string(node), kNodes);
    made.node_rank = NodeRank{node};
    for (int count = 0; count < 250; ++count) {
      made.addresses.push_back("fd00:1111:2222:3333:4444:5555:" + std::to_string(1000 + node) +
                               ":" + std::to_string(1000 + count));
    }
    return made;
  };
  RawClient first({.receive_buffer = 4096});
  first.connect(host.port());
  REQUIRE(first.send(opened() + framed(Greeting{hello(0), ""})));
  std::vector<std::unique_ptr<LineProbe>> others;
  for (std::uint32_t node = 1; node < kNodes; ++node) {
    others.push_back(greeted(bench, host, hello(node)));
  }
  REQUIRE(bench.until([&] { return order_of<Assignment>(*others.front()) != nullptr; }));
  // Its Assignment, with all those addresses, waits. It asks for more, and is heard before another.
  REQUIRE(first.send(framed(AgentMessage(Ping{2}))));
  others.front()->line->send(Ping{2});
  REQUIRE(bench.until([&] { return others.front()->count<Pong>() == 2; }));

  std::string got = first.receive(kMagic.size());
  std::optional<Assignment> assignment;
  std::uint64_t answered = 0;
  while (!assignment || answered < 2) {
    const auto head = first.receive(kFrameHeaderBytes);
    REQUIRE(head.size() == kFrameHeaderBytes);
    std::size_t length = 0;
    for (const char each : head) length = length << 8 | static_cast<unsigned char>(each);
    const auto body = first.receive(length);
    REQUIRE(body.size() == length);
    const auto frame = decode_server_frame(body);
    REQUIRE(frame);
    const auto* const message = std::get_if<ServerMessage>(&**frame);
    if (message == nullptr) continue;
    if (const auto* const pong = std::get_if<Pong>(message)) answered = pong->number;
    if (const auto* const directive = std::get_if<Directive>(message)) {
      if (const auto* const order = std::get_if<Assignment>(&directive->order)) {
        CHECK(length > 150'000);
        assignment = *order;
      }
    }
  }
  CHECK(assignment->admitted.size() > 250UL * kNodes);
}
