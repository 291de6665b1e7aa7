#include "base/posix/server_socket.hpp"
#include "tests/rendezvous/server/agents.hpp"
#include "tests/rendezvous/store/wire.hpp"

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

TEST_CASE("the store's clients leave room for nodes", "[server]") {
  ServerHost host({.connections = 30});
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int count = 0; count < 10; ++count) {
    clients.push_back(std::make_unique<RawClient>(host.port()));
    REQUIRE(clients.back()->send(kValidate + "\x0dping"));
    REQUIRE(clients.back()->receive(4) == "ping");
  }
  RawClient beyond(host.port());
  REQUIRE(beyond.send(kValidate + "\x0dping"));
  CHECK(beyond.is_closed_by_peer());
  CHECK(host.log_with("the limit of all connections is reached: 10").find("warning") == 0);

  // 20 are left for all others, from however many addresses.
  std::vector<std::unique_ptr<RawClient>> agents;
  const auto from = [&](const char* address) {
    auto made = std::make_unique<RawClient>(host.port(), RawClient::Options{.from = address});
    REQUIRE(made->send(kMagic));
    return made;
  };
  for (int count = 0; count < 20; ++count) {
    agents.push_back(from(count % 2 == 0 ? "127.0.0.2" : "127.0.0.3"));
  }
  REQUIRE(host.until([](const auto& stats) { return stats.connections == 20; }));
  CHECK(from("127.0.0.4")->is_closed_by_peer());
  CHECK(host.log_with("the limit of all connections is reached: 30").find("warning") == 0);
  agents.pop_back();
  REQUIRE(host.until([](const auto& stats) { return stats.connections == 19; }));
  agents.push_back(from("127.0.0.4"));
  CHECK(host.until([](const auto& stats) { return stats.connections == 20; }));
}

TEST_CASE("gRPC's connections are counted until they end", "[server][grpc]") {
  constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  std::vector<posix::Fd> taken;  // On the loop.
  ServerHost host({.prepare = [&](Server& server) {
    server.on_grpc(
        [&](posix::Fd socket, const std::string&) { taken.push_back(std::move(socket)); });
  }});
  std::vector<std::unique_ptr<RawClient>> clients;
  const auto come = [&]() -> RawClient& {
    clients.push_back(std::make_unique<RawClient>(host.port()));
    REQUIRE(clients.back()->send(kPreface));
    return *clients.back();
  };
  for (std::size_t count = 1; count <= Server::kMaxGrpc; ++count) come();
  REQUIRE(host.until([](const auto& stats) { return stats.connections == Server::kMaxGrpc; }));
  CHECK(come().is_closed_by_peer());
  CHECK(host.log_with("the limit of gRPC connections is reached: 256").find("warning") == 0);
  CHECK(host.on_loop([&](auto&) { return taken.size(); }) == Server::kMaxGrpc);
  clients.pop_back();

  // One whose peer is gone is gRPC's until gRPC has ended it too.
  RawClient& first = *clients.front();
  first.finish_sending();
  host.on_loop([&](auto&) {
    posix::hang_up(taken.front().get());
    taken.erase(taken.begin());
  });
  REQUIRE(host.until([](const auto& stats) { return stats.connections == Server::kMaxGrpc - 1; }));
  CHECK(first.receive(1).empty());
  come();
  CHECK(host.until([&](const auto&) {
    return host.on_loop([&](auto&) { return taken.size(); }) == Server::kMaxGrpc;
  }));
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
