#include "base/posix/server_socket.hpp"
#include "rendezvous/client/farewell.hpp"
#include "rendezvous/client/frames.hpp"
#include "rendezvous/client/handshake.hpp"
#include "rendezvous/client/secret.hpp"
#include "rendezvous/store/knock.hpp"
#include "tests/rendezvous/server/agents.hpp"
#include "tests/rendezvous/store/wire.hpp"

#include <atomic>
#include <random>
#include <sys/socket.h>

#include <catch2/catch.hpp>

using namespace muster;
using namespace muster::rendezvous;
using namespace std::chrono_literals;

namespace {

bool serves_store(RawClient& client) {
  return client.send(kValidate + "\x0dping") && client.receive(4) == "ping";
}

}  // namespace

TEST_CASE("an agent is welcomed, assigned, and answered", "[server]") {
  ServerHost host;
  LineBench bench;
  const auto probe = greeted(bench, host, hello_of("a"));
  REQUIRE(bench.until([&] { return order_of<Assignment>(*probe) != nullptr; }));
  REQUIRE(probe->first<Welcome>() != nullptr);
  CHECK_FALSE(probe->first<Welcome>()->version.empty());
  CHECK(order_of<Assignment>(*probe)->world_size == 2);
  CHECK(probe->facts->local == "127.0.0.1");
  probe->line->send(Ping{2});
  REQUIRE(bench.until([&] { return probe->count<Pong>() == 2; }));
  CHECK(std::get<Pong>(probe->messages.back()).number == 2);
  CHECK(host.stats().attendances == 1);
  const auto jobs = host.on_loop([](auto& server) { return server.jobs(); });
  REQUIRE(jobs.size() == 1);
  CHECK(jobs[0].nodes.at(0).address == "127.0.0.1");
}

TEST_CASE("agents of one job meet, and a job ends for all", "[server]") {
  std::promise<std::string> ended;
  ServerHost host({.prepare = [&](Server& server) {
    server.on_ended([&](const std::string& job, const Verdict&) { ended.set_value(job); });
  }});
  LineBench bench;
  const auto a = greeted(bench, host, hello_of("a", 2));
  REQUIRE(bench.until([&] { return a->first<Waiting>() != nullptr; }));
  const auto b = greeted(bench, host, hello_of("b", 2));
  for (const auto* const each : {&a, &b}) {
    REQUIRE(bench.until([&] { return order_of<Assignment>(**each) != nullptr; }));
    const auto& assignment = *order_of<Assignment>(**each);
    CHECK(assignment.world_size == 4);
    (*each)->line->send(Report(Acknowledged{assignment.round}));
    (*each)->line->send(Report(Started{assignment.round}));
    (*each)->line->send(Report(Succeeded{assignment.round}));
    (*each)->line->send(Report(Empty{assignment.round, {}, {"127.0.0.1", 4001}}));
  }
  for (const auto* const each : {&a, &b}) {
    REQUIRE(bench.until([&] { return order_of<Verdict>(**each) != nullptr; }));
    CHECK(order_of<Verdict>(**each)->exit_code == 0);
    (*each)->line->send(Report(VerdictSeen{}));
  }
  for (const auto* const each : {&a, &b}) {
    CHECK(bench.until([&] { return (*each)->template first<Dismissal>() != nullptr; }));
  }
  auto job = ended.get_future();
  REQUIRE(job.wait_for(kLinePatience) == std::future_status::ready);
  CHECK(job.get() == "job");
}

TEST_CASE("the token is asked of both sides", "[server][token]") {
  ServerHost host({.token = "correct horse"});
  LineBench bench;
  const auto refused = [&](std::optional<std::string> token) -> Refusal {
    const auto probe = greeted(bench, host, hello_of("a"), std::move(token));
    REQUIRE(bench.until([&] { return probe->error.has_value(); }));
    REQUIRE(probe->first<Refusal>() != nullptr);
    CHECK(probe->messages.size() == 1);
    return *probe->first<Refusal>();
  };
  SECTION("the right one is let in") {
    const auto probe = greeted(bench, host, hello_of("a"), "correct horse");
    CHECK(bench.until([&] { return probe->first<Welcome>() != nullptr; }));
  }
  SECTION("none") {
    const auto refusal = refused(std::nullopt);
    CHECK(refusal.exit_code == 2);
    CHECK(refusal.message ==
          to_string(host.endpoint()) +
              " asks for a token and this node was given none: give --token-file (or "
              "MUSTER_TOKEN_FILE) with the same token to the server and to all nodes");
  }
  SECTION("another") {
    CHECK(refused("battery staple").message.find("has another token than this node") !=
          std::string::npos);
    CHECK(host.log_with("node a goes no further").find("has another token") != std::string::npos);
  }
  SECTION("a server without one is not taken for the one meant") {
    ServerHost open;
    const auto probe = greeted(bench, open, hello_of("a"), "correct horse");
    REQUIRE(bench.until([&] { return probe->error.has_value(); }));
    REQUIRE(probe->first<Refusal>() != nullptr);
    CHECK(probe->first<Refusal>()->message.find("has no token and this node was given one") !=
          std::string::npos);
    CHECK(open.stats().attendances == 0);
  }
  SECTION("a client that does not look at the challenge gets no further") {
    for (const auto& proof : {std::string(), std::string(32, 'x')}) {
      RawClient liar(host.port());
      REQUIRE(liar.send(std::string(kMagic) + framed(Open{"", std::string(32, 'n')}) +
                        framed(Greeting{hello_of("liar"), proof})));
      const auto got = everything_from(liar);
      CHECK(got.find("node liar gave " + std::string(proof.empty() ? "none" : "another")) !=
            std::string::npos);
      CHECK(host.log_with("node liar").find("warning") != std::string::npos);
    }
    CHECK(host.stats().attendances == 0);
  }
  SECTION("a farewell needs it too") {
    Farewell farewell{.job = "job", .secret = "secret of a", .round = {}, .reason = "killed"};
    const auto wrong = say_farewell(host.endpoint(), "battery staple", farewell, 5s);
    REQUIRE_FALSE(wrong);
    CHECK(wrong.error().code == Errc::InvalidArgument);
    CHECK(say_farewell(host.endpoint(), "correct horse", farewell, 5s));
  }
}

TEST_CASE("a farewell is acknowledged, and frees the ranks at once", "[server]") {
  ServerHost host;
  LineBench bench;
  auto hello = hello_of("a", 2);
  hello.settings.min_nodes = 1;
  const auto a = greeted(bench, host, hello);
  hello = hello_of("b", 2);
  hello.settings.min_nodes = 1;
  const auto b = greeted(bench, host, hello);
  REQUIRE(bench.until([&] { return order_of<Assignment>(*a) && order_of<Assignment>(*b); }));
  const auto round = order_of<Assignment>(*a)->round;
  for (const auto* const each : {&a, &b}) {
    (*each)->line->send(Report(Acknowledged{round}));
    (*each)->line->send(Report(Started{round}));
  }
  Farewell farewell{.job = "job", .secret = "secret of b", .round = round, .reason = "killed"};
  REQUIRE(say_farewell(host.endpoint(), std::nullopt, farewell, 5s));
  CHECK(bench.until([&] { return order_of<Stop>(*a) != nullptr; }));
}

TEST_CASE("a link that is replaced by a newer one of the same agent goes on there", "[server]") {
  ServerHost host;
  LineBench bench;
  const auto old = greeted(bench, host, hello_of("a"));
  REQUIRE(bench.until([&] { return order_of<Assignment>(*old) != nullptr; }));
  auto again = hello_of("a");
  again.ping = 5;
  again.held.round = order_of<Assignment>(*old)->round;
  again.held.highest = *again.held.round;
  again.held.nodes = 1;
  const auto fresh = greeted(bench, host, again);
  REQUIRE(bench.until([&] { return fresh->count<Pong>() == 1; }));
  fresh->line->send(Ping{6});
  CHECK(bench.until([&] { return fresh->count<Pong>() == 2; }));
}

TEST_CASE("another version is told which one is spoken", "[server]") {
  ServerHost host;
  RawClient newer(host.port());
  REQUIRE(newer.send("\xf5MUSTER\x09 whatever comes"));
  const auto got = everything_from(newer);
  std::size_t taken = 0;
  const auto answer = read_answer("server", got, taken);
  REQUIRE(answer);
  REQUIRE(*answer);
  const auto message = std::get<Refusal>(**answer).message;
  CHECK(
      message.find("speaks version 1 of the rendezvous protocol, the node version 9: run the same "
                   "release of muster on all nodes") != std::string::npos);
}

TEST_CASE("an agent that sends nonsense costs its own connection, with one line", "[server]") {
  ServerHost host;
  LineBench bench;
  const auto good = greeted(bench, host, hello_of("good"));
  const std::string opened = ::opened();
  const auto says = [&](const std::string& bytes, const std::string& line) {
    RawClient bad(host.port());
    REQUIRE(bad.send(bytes));
    CHECK(host.log_with(line).find("rendezvous server closed a connection peer=127.0.0.1:") !=
          std::string::npos);
    everything_from(bad);
  };
  says("\xf5MUSTARD", "it begins as an agent does, and is none");
  says(std::string(kMagic) + "\xff\xff\xff\xff", "a frame of 4294967295 bytes is longer");
  says(std::string(kMagic) + std::string("\0\0\0\0", 4), "a frame is empty");
  says(std::string(kMagic) + framed(AgentMessage(Ping{1})), "a frame out of turn");
  says(std::string(kMagic) + std::string("\0\0\0\3\xff\xff\xff", 7),
       "is no message of the attendance");
  says(opened + opened.substr(kMagic.size()), "a frame out of turn");
  says(opened + framed(AgentMessage(Ping{1})), "a frame out of turn");
  says(opened + framed(Greeting{hello_of("a"), ""}) + framed(Greeting{hello_of("b"), ""}),
       "a frame out of turn");
  auto bad = hello_of("bad");
  bad.job.assign(2000, 'j');
  says(opened + framed(Greeting{bad, ""}), "hello.job is longer than the limit of 512 bytes");
  std::mt19937_64 random(11);
  for (int count = 0; count < 200; ++count) {
    RawClient noise(host.port());
    std::string bytes = count % 2 == 0 ? opened : std::string(kMagic);
    for (auto size = random() % 300; size > 0; --size) bytes += static_cast<char>(random());
    (void)noise.send(bytes);
    noise.finish_sending();
    everything_from(noise);
  }
  good->line->send(Ping{2});
  CHECK(bench.until([&] { return good->count<Pong>() == 2; }));
  CHECK(host.until([](const auto& stats) { return stats.connections == 1; }));
}

TEST_CASE("a name with control characters does not reach the log as it is", "[server]") {
  ServerHost host({.token = "t"});
  RawClient bad(host.port());
  auto hello = hello_of("evil\n2026 error all is lost\x1b[2J");
  REQUIRE(bad.send(std::string(kMagic) + framed(Open{"", std::string(32, 'n')}) +
                   framed(Greeting{hello, ""})));
  const auto log = host.log_with("node evil");
  CHECK(log.find("evil\\x0a2026 error all is lost\\x1b[2J") != std::string::npos);
}

TEST_CASE("what an agent sends may come byte by byte", "[server]") {
  ServerHost host;
  RawClient slow(host.port());
  const auto bytes = std::string(kMagic) + framed(Open{"", std::string(32, 'n')}) +
                     framed(Greeting{hello_of("slow"), ""});
  for (const char each : bytes) REQUIRE(slow.send({&each, 1}));
  CHECK(host.until([](const auto& stats) { return stats.attendances == 1; }));
}

TEST_CASE("HTTP is answered on the same port", "[server][http]") {
  ServerHost host;
  const auto answer_to = [&](const std::string& request) {
    RawClient client(host.port());
    REQUIRE(client.send(request));
    return everything_from(client);
  };
  const std::string rest = " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  const auto healthy = answer_to("GET /healthz?x=1" + rest);
  CHECK(healthy.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(healthy.find("\"status\":\"ok\"") != std::string::npos);
  CHECK(healthy.find("\"jobs\":0") != std::string::npos);
  const auto head = answer_to("HEAD /healthz" + rest);
  CHECK(head.starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(head.find("status") == std::string::npos);
  CHECK(answer_to("GET /other" + rest).find("404 Not Found") != std::string::npos);
  CHECK(answer_to("GET /other" + rest).ends_with("not here; /healthz is\n"));
  CHECK(answer_to("POST /healthz" + rest).find("405 Method Not Allowed") != std::string::npos);
  CHECK(answer_to("PUT /healthz HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello").find("405") !=
        std::string::npos);
  CHECK(answer_to("GET nonsense\r\n\r\n").find("400 Bad Request") != std::string::npos);
  CHECK(answer_to("GET /" + std::string(10000, 'x') + rest).find("431 ") != std::string::npos);

  RawClient kept(host.port());
  for (int count = 0; count < 3; ++count) {
    REQUIRE(kept.send("GET /x HTTP/1.1\r\nHost: x\r\n\r\n"));
    std::string got;
    while (!got.ends_with("not here; /healthz is\n")) got += kept.receive(1);
    CHECK(got.starts_with("HTTP/1.1 404"));
  }

  host.on_loop([](auto& server) { server.retire(); });
  CHECK(answer_to("GET /healthz" + rest).starts_with("HTTP/1.1 503 "));
}

TEST_CASE("gRPC is handed over when its preface is there, with no byte taken", "[server][grpc]") {
  constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  std::promise<std::pair<std::string, std::string>> handed;
  std::atomic<int> count = 0;
  ServerHost host({.prepare = [&](Server& server) {
    server.on_grpc([&](posix::Fd socket, std::string peer) {
      std::array<char, 100> room;
      const auto got = posix::receive_now(socket.get(), room);
      ++count;
      handed.set_value({std::string(room.data(), got.bytes), std::move(peer)});
    });
  }});
  RawClient lone(host.port());
  REQUIRE(lone.send("P"));
  RawClient put(host.port());
  REQUIRE(put.send("P"));
  RawClient client(host.port());
  for (const char each : kPreface) REQUIRE(client.send({&each, 1}));
  auto result = handed.get_future();
  REQUIRE(result.wait_for(kLinePatience) == std::future_status::ready);
  const auto [bytes, peer] = result.get();
  CHECK(bytes == kPreface);
  CHECK(peer.starts_with("127.0.0.1:"));
  REQUIRE(put.send("UT / HTTP/1.1\r\nConnection: close\r\n\r\n"));
  CHECK(everything_from(put).starts_with("HTTP/1.1 405"));
  lone.finish_sending();
  CHECK(lone.is_closed_by_peer());
  CHECK(count == 1);

  ServerHost without;
  RawClient refused(without.port());
  REQUIRE(refused.send(kPreface));
  CHECK(refused.is_closed_by_peer());
  CHECK(without.log_with("it speaks gRPC, which this server does not serve").find("warning") == 0);
}

TEST_CASE("c10d clients find an open store on a standing server", "[server][store]") {
  ServerHost host;
  RawClient client(host.port());
  CHECK(serves_store(client));
  RawClient oldest(host.port());
  REQUIRE(oldest.send(wire(kv::Add{"init/", 1}, store::Dialect::A)));
  CHECK(oldest.receive(8) == wire_number(1));
  CHECK(host.stats().store.connections == 2);
  CHECK(host.stats().connections == 0);
}

TEST_CASE("an embedded server's store is open for a job that wants it, and its nodes only",
          "[server][store]") {
  ServerHost host({.serves_store = false});
  {
    RawClient early(host.port());
    REQUIRE(early.send(kValidate));
    CHECK(early.is_closed_by_peer());
    CHECK(host.log_with("no store is open here").find("warning") == 0);
  }
  LineBench bench;
  auto hello = hello_of("a");
  hello.settings.store_on_server = true;
  hello.addresses = {"127.0.0.1", "10.9.9.9"};
  const auto probe = greeted(bench, host, hello);
  REQUIRE(bench.until([&] { return order_of<Assignment>(*probe) != nullptr; }));
  RawClient worker(host.port());
  CHECK(serves_store(worker));

  // A stop ends the round; when the last old worker is gone the store is, with its connections.
  const auto round = order_of<Assignment>(*probe)->round;
  probe->line->send(Report(Acknowledged{round}));
  probe->line->send(Report(Started{round}));
  probe->line->send(Report(Succeeded{round}));
  probe->line->send(Report(Empty{round, {}, {"127.0.0.1", 4001}}));
  CHECK(worker.is_closed_by_peer());
}

TEST_CASE("a TLS handshake is told from a store's client", "[server]") {
  ServerHost host;
  RawClient client(host.port());
  REQUIRE(client.send(std::string("\x16\x03\x01\x02\x00", 5)));
  CHECK(client.is_closed_by_peer());
  CHECK(host.log_with("TLS handshake, which is not spoken here").find("warning") == 0);
}

TEST_CASE("a command reaches the job, and is answered", "[server]") {
  ServerHost host;
  const auto outcome_of = [&](const std::string& job, Command command) {
    std::promise<Result<std::string>> answered;
    host.on_loop([&](Server& server) {
      server.command(job, std::move(command),
                     [&](Result<std::string> result) { answered.set_value(std::move(result)); });
    });
    auto result = answered.get_future();
    REQUIRE(result.wait_for(kLinePatience) == std::future_status::ready);
    return result.get();
  };
  CHECK(outcome_of("no such job", StopJob{}).error().code == Errc::NotFound);
  LineBench bench;
  const auto probe = greeted(bench, host, hello_of("a"));
  REQUIRE(bench.until([&] { return order_of<Assignment>(*probe) != nullptr; }));
  CHECK(outcome_of("job", StopJob{}));
  CHECK(bench.until([&] { return order_of<Stop>(*probe) != nullptr; }));
}

TEST_CASE("a server that stops closes its port and its connections", "[server]") {
  ServerHost host;
  LineBench bench;
  const auto probe = greeted(bench, host, hello_of("a"));
  REQUIRE(bench.until([&] { return probe->first<Welcome>() != nullptr; }));
  host.on_loop([](auto& server) { server.stop(); });
  REQUIRE(bench.until([&] { return probe->error.has_value(); }));
  CHECK(probe->error->code == Errc::Unavailable);
  CHECK(posix::bind_tcp(host.endpoint()));
  std::promise<Result<std::string>> answered;
  host.on_loop([&](Server& server) {
    server.command("job", StopJob{},
                   [&](Result<std::string> result) { answered.set_value(result); });
  });
  CHECK(answered.get_future().get().error().code == Errc::Cancelled);
}
