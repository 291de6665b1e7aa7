#include "base/posix/server_socket.hpp"
#include "base/posix/socket.hpp"
#include "rendezvous/client/farewell.hpp"
#include "rendezvous/client/frames.hpp"
#include "rendezvous/client/wire.hpp"
#include "tests/rendezvous/client/line_probe.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <thread>

#include <catch2/catch.hpp>

using namespace muster;
using namespace muster::rendezvous;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

namespace {

/// Accepts one connection after the other and does the same with each, on a thread of its own.
class Service {
 public:
  /// `serve` gets the accepted socket, which is blocking; it is closed afterwards.
  explicit Service(std::function<void(int)> serve, const std::string& host = "127.0.0.1")
      : serve_(std::move(serve)) {
    auto bound = posix::bind_tcp({host, 0});
    REQUIRE(bound);
    listener_ = *std::move(bound);
    REQUIRE(posix::listen_on(listener_.get()));
    auto stop = posix::make_pipe();
    REQUIRE(stop);
    stop_ = *std::move(stop);
    thread_ = std::thread([this] { run(); });
  }
  ~Service() {
    stop_.writer.reset();
    thread_.join();
  }
  [[nodiscard]] Endpoint endpoint() const {
    return posix::to_endpoint(posix::local_address(listener_.get()));
  }
  /// Until the test is over: for those that keep a connection and say nothing.
  void wait_for_end() const {
    pollfd ended{.fd = stop_.reader.get(), .events = POLLIN, .revents = 0};
    ::poll(&ended, 1, -1);
  }

 private:
  void run() {
    for (;;) {
      pollfd entries[2] = {{.fd = listener_.get(), .events = POLLIN, .revents = 0},
                           {.fd = stop_.reader.get(), .events = POLLIN, .revents = 0}};
      ::poll(entries, 2, -1);
      if (entries[1].revents != 0) return;
      const posix::Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (socket) serve_(socket.get());
    }
  }

  std::function<void(int)> serve_;
  posix::Fd listener_;
  posix::Pipe stop_;
  std::thread thread_;
};

void say(int socket, std::string_view bytes) {
  ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

std::string hear(int socket) {
  char room[4096];
  const auto size = ::recv(socket, room, sizeof room, 0);
  return {room, size > 0 ? static_cast<std::size_t>(size) : 0};
}

/// What the line says of a service, and how long it took.
std::pair<Error, Clock::duration> verdict_on(const Endpoint& endpoint) {
  LineBench bench;
  const auto begun = Clock::now();
  const auto probe = bench.dial({.server = endpoint});
  REQUIRE(bench.until([&] { return probe->error.has_value(); }));
  CHECK_FALSE(probe->facts);
  return {*probe->error, Clock::now() - begun};
}

}  // namespace

TEST_CASE("a foreign service is named within two seconds", "[line]") {
  SECTION("SSH sends its banner first") {
    const Service ssh([](int socket) { say(socket, "SSH-2.0-OpenSSH_9.2p1\r\n"), hear(socket); });
    const auto [error, took] = verdict_on(ssh.endpoint());
    CHECK(error.code == Errc::InvalidArgument);
    CHECK(error.message == to_string(ssh.endpoint()) +
                               " answers, but is no rendezvous server of muster but an SSH server: "
                               "it sent 'SSH-2.0-OpenSSH_9.2p1'; check --rdzv-endpoint, or end the "
                               "other service and try again");
    CHECK(took < 2s);
  }
  SECTION("HTTP complains about the request") {
    const Service http([](int socket) {
      hear(socket);
      say(socket, "HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    const auto [error, took] = verdict_on(http.endpoint());
    CHECK(error.code == Errc::InvalidArgument);
    CHECK(error.message.find("but an HTTP server: it sent 'HTTP/1.1 400 Bad Request'") !=
          std::string::npos);
    CHECK(took < 2s);
  }
  SECTION("one that accepts and says nothing") {
    Service* self = nullptr;
    Service silent([&self](int) { self->wait_for_end(); });
    self = &silent;
    const auto [error, took] = verdict_on(silent.endpoint());
    CHECK(error.code == Errc::Unavailable);
    CHECK(error.message.find("accepts connections, but says nothing: perhaps another service, such "
                             "as the c10d store of a torchrun") != std::string::npos);
    CHECK(took < 2s);
  }
  SECTION("one that accepts and closes") {
    const Service rude([](int) {});
    const auto [error, took] = verdict_on(rude.endpoint());
    CHECK(error.code == Errc::Unavailable);
    CHECK(error.message.find("closes them without a word") != std::string::npos);
  }
  SECTION("one that begins like a server of muster and goes on with nonsense") {
    const Service odd([](int socket) {
      say(socket, std::string(kMagic) + "\xff\xff\xff\xff");
      hear(socket);
    });
    const auto [error, took] = verdict_on(odd.endpoint());
    CHECK(error.code == Errc::InvalidArgument);
    CHECK(error.message.find("does not keep to the protocol: a frame of 4294967295 bytes") !=
          std::string::npos);
  }
  SECTION("one that begins and stops in the middle") {
    Service* self = nullptr;
    Service halting([&self](int socket) {
      say(socket, "\xf5MUS");
      self->wait_for_end();
    });
    self = &halting;
    const auto [error, took] = verdict_on(halting.endpoint());
    CHECK(error.code == Errc::InvalidArgument);
    CHECK(took < 2s);
  }
  SECTION("one of another version, which says so") {
    const Service newer([](int socket) {
      std::string bytes("\xf5MUSTER\x07");
      encode(ServerFrame(ServerMessage(Refusal{"too old", 2})), bytes);
      say(socket, bytes);
      hear(socket);
    });
    LineBench bench;
    const auto probe = bench.dial({.server = newer.endpoint()});
    REQUIRE(bench.until([&] { return probe->facts.has_value(); }));
    probe->line->send(Report(Hello{}));
    REQUIRE(bench.until([&] { return probe->error.has_value(); }));
    REQUIRE(probe->first<Refusal>() != nullptr);
    CHECK(probe->first<Refusal>()->message == "too old");
  }
  SECTION("one of another version that says nothing more") {
    const Service newer(
        [](int socket) { say(socket, "\xf5MUSTER\x07\xff\xff\xff\xff"), hear(socket); });
    const auto [error, took] = verdict_on(newer.endpoint());
    CHECK(error.message.find("speaks version 7 of the rendezvous protocol, this muster version 1: "
                             "run the same release of muster on all nodes") != std::string::npos);
  }
}

TEST_CASE("nobody on the endpoint is told with the address and the cause", "[line]") {
  auto bound = posix::bind_tcp({"127.0.0.1", 0});  // Bound, not listening: refused.
  REQUIRE(bound);
  const auto endpoint = posix::to_endpoint(posix::local_address(bound->get()));
  const auto [error, took] = verdict_on(endpoint);
  CHECK(error.code == Errc::Unavailable);
  CHECK(error.message == "connect to " + to_string(endpoint) + ": Connection refused");
}

TEST_CASE("a name is looked up off the loop, and one that is unknown is told", "[line]") {
  const auto [error, took] = verdict_on({"no-such-host.invalid", 29400});
  CHECK((error.code == Errc::NotFound || error.code == Errc::Unavailable));
  CHECK(error.message.find("look up host 'no-such-host.invalid'") != std::string::npos);
}

TEST_CASE("all addresses of a name are tried, and the one that serves is taken", "[line]") {
  // localhost is ::1 as well, where nobody listens.
  const Service server([](int socket) {
    std::string bytes(kMagic);
    encode(ServerFrame(Challenge{"1", std::string(32, 'n'), false, ""}), bytes);
    say(socket, bytes);
    hear(socket), hear(socket);
  });
  LineBench bench;
  const auto probe = bench.dial({.server = {"localhost", server.endpoint().port}});
  REQUIRE(bench.until([&] { return probe->facts || probe->error; }));
  REQUIRE(probe->facts);
  CHECK(probe->facts->peer == "127.0.0.1");
  CHECK(probe->facts->local == "127.0.0.1");
}

TEST_CASE("a line comes from the local address that it is given", "[line]") {
  const Service server([](int socket) {
    std::string bytes(kMagic);
    encode(ServerFrame(Challenge{"1", std::string(32, 'n'), false, ""}), bytes);
    say(socket, bytes);
    hear(socket), hear(socket);
  });
  LineBench bench;
  auto probe = bench.dial({.server = server.endpoint(), .local_address = "127.0.0.9"});
  REQUIRE(bench.until([&] { return probe->facts || probe->error; }));
  REQUIRE(probe->facts);
  CHECK(probe->facts->local == "127.0.0.9");
  probe.reset();

  auto wrong = bench.dial({.server = server.endpoint(), .local_address = "::1"});
  REQUIRE(bench.until([&] { return wrong->error.has_value(); }));
  CHECK(wrong->error->message ==
        to_string(server.endpoint()) + " has no address that can be reached from ::1");
}

TEST_CASE("an unreachable address ends with the patience", "[line]") {
  LineBench bench;
  // A full accept queue: connections stay in the middle. Not every kernel drops; a listener that
  // never answers ends likewise, by its silence.
  auto bound = posix::bind_tcp({"127.0.0.1", 0});
  REQUIRE(bound);
  REQUIRE(::listen(bound->get(), 0) == 0);
  const auto endpoint = posix::to_endpoint(posix::local_address(bound->get()));
  std::vector<std::unique_ptr<LineProbe>> probes;
  for (int count = 0; count < 4; ++count) {
    probes.push_back(bench.dial({.server = endpoint, .patience = 300ms}));
  }
  for (const auto& probe : probes) {
    REQUIRE(bench.until([&] { return probe->error.has_value(); }));
    CHECK(probe->error->code == Errc::Timeout);
    CHECK(probe->error->message == "connect to " + to_string(endpoint) + ": timed out");
  }
}

TEST_CASE("a line that is let go calls nobody any more", "[line]") {
  Service* self = nullptr;
  Service silent([&self](int) { self->wait_for_end(); });
  self = &silent;
  LineBench bench;
  auto probe = bench.dial({.server = silent.endpoint()});
  auto named = bench.dial({.server = {"localhost", silent.endpoint().port}});
  probe->line.reset();
  named->line.reset();
  bench.loop().run_for(100ms);
  CHECK_FALSE(probe->error);
  CHECK_FALSE(named->error);
}

TEST_CASE("a handler that destroys its line ends first", "[line]") {
  const Service server([](int socket) {
    std::string bytes(kMagic);
    encode(ServerFrame(Challenge{"1", std::string(32, 'n'), false, ""}), bytes);
    say(socket, bytes);
    hear(socket);  // The Open.
    hear(socket);  // The Hello.
    bytes.clear();
    encode(ServerFrame(ServerMessage(Welcome{"1"})), bytes);
    say(socket, bytes);
  });
  const std::string when = GENERATE("up", "message", "down");
  CAPTURE(when);
  LineBench bench;
  Logger logger{"line", std::make_shared<spdlog::sinks::null_sink_mt>()};
  std::unique_ptr<Line> line;
  std::optional<bool> is_whole;
  // What a handler holds is there until it has ended.
  const auto destroying = [&line, &is_whole, &when](const std::string& what) {
    return
        [&line, &is_whole, destroys = what == when, held = std::make_shared<int>(1)](const auto&) {
          if (!destroys) return;
          const std::weak_ptr<int> watched = held;
          line.reset();
          is_whole = !watched.expired();
        };
  };
  auto up = destroying("up");
  line = Line::dial(bench.loop(), {.server = server.endpoint()},
                    {.on_up =
                         [&line, &when, up = std::move(up)](const LineFacts& facts) {
                           if (when != "up") line->send(Report(Hello{}));
                           up(facts);
                         },
                     .on_message = destroying("message"),
                     .on_down = destroying("down")},
                    logger);
  REQUIRE(bench.until([&] { return is_whole.has_value(); }));
  CHECK(*is_whole);
}

TEST_CASE("what a stranger sends is shown as far as it can be printed", "[line]") {
  const Service odd([](int socket) {
    say(socket, "SSH-\x1b[2J\xff\xc3\xa4" + std::string(100, 'x') + "\n");
    hear(socket);
  });
  const auto [error, took] = verdict_on(odd.endpoint());
  CHECK(error.message.find("it sent 'SSH-\\x1b[2J\\xff\u00e4" + std::string(29, 'x') + "...'") !=
        std::string::npos);
}

TEST_CASE("a farewell that nobody takes ends with its patience", "[farewell]") {
  auto bound = posix::bind_tcp({"127.0.0.1", 0});
  REQUIRE(bound);
  const auto endpoint = posix::to_endpoint(posix::local_address(bound->get()));
  const auto begun = Clock::now();
  const auto said = say_farewell(endpoint, std::nullopt, Farewell{}, 300ms);
  REQUIRE_FALSE(said);
  CHECK(said.error().code == Errc::Timeout);
  CHECK(said.error().message == "say farewell to " + to_string(endpoint) + ": Connection refused");
  CHECK(Clock::now() - begun >= 300ms);
}
