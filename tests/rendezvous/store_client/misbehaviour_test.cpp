// Servers that greet as a store and then behave as none: each call ends in time, with an error that
// names what was called, the key and the server.

#include "rendezvous/store_client/session.hpp"
#include "rendezvous/store_client/store_client.hpp"
#include "tests/rendezvous/store_client/fake_server.hpp"

#include <catch2/catch.hpp>

using namespace std::chrono_literals;

namespace muster::store_client {
namespace {

using Strings = std::vector<std::string>;

constexpr auto kTimeout = 200ms;   ///< For what has to time out.
constexpr auto kFarTimeout = 20s;  ///< For what must not.
constexpr auto kWaitOpcode = "06";

enum class Answer { None, Byte, Long };  ///< Nothing; one byte; more.

struct Named {
  std::string act;  ///< As the error begins.
  Repeat repeat;
  Answer answer;
  std::function<std::optional<Error>(StoreClient&, Duration)> call;
};

template <class T>
std::optional<Error> error_of(const Result<T>& result) {
  if (result) return std::nullopt;
  return result.error();
}

const std::vector<std::pair<std::string, std::string>> kEntries{{"k", "v"}, {"l", "v"}};

const std::vector<Named> kCalls{
    {"get 'k'", Repeat::Safe, Answer::Long,
     [](auto& s, Duration t) { return error_of(s.get("k", t)); }},
    {"get 'k' and 1 more", Repeat::Safe, Answer::Long,
     [](auto& s, Duration t) { return error_of(s.multi_get(Strings{"k", "l"}, t)); }},
    {"wait for 'k'", Repeat::Safe, Answer::Byte,
     [](auto& s, Duration t) { return error_of(s.wait("k", t)); }},
    {"check 'k'", Repeat::Safe, Answer::Byte,
     [](auto& s, Duration t) { return error_of(s.check("k", t)); }},
    {"add to 'k'", Repeat::Unsafe, Answer::Long,
     [](auto& s, Duration t) { return error_of(s.add("k", 1, t)); }},
    {"compare and set 'k'", Repeat::Unsafe, Answer::Long,
     [](auto& s, Duration t) { return error_of(s.compare_set("k", "", "v", t)); }},
    {"delete 'k'", Repeat::Unsafe, Answer::Long,
     [](auto& s, Duration t) { return error_of(s.delete_key("k", t)); }},
    {"count keys", Repeat::Safe, Answer::Long,
     [](auto& s, Duration t) { return error_of(s.num_keys(t)); }},
    {"list keys", Repeat::Safe, Answer::Long,
     [](auto& s, Duration t) { return error_of(s.list_keys(t)); }},
    {"push to queue 'k'", Repeat::Unsafe, Answer::Long,
     [](auto& s, Duration t) { return error_of(s.queue_push("k", "v", t)); }},
    {"pop from queue 'k'", Repeat::Unsafe, Answer::Long,
     [](auto& s, Duration t) { return error_of(s.queue_pop("k", t)); }},
    {"pop from queue 'k'", Repeat::Unsafe, Answer::Long,
     [](auto& s, Duration t) { return error_of(s.queue_try_pop("k", t)); }},
    {"measure queue 'k'", Repeat::Safe, Answer::Long,
     [](auto& s, Duration t) { return error_of(s.queue_len("k", t)); }},
    {"barrier 'k'", Repeat::Unsafe, Answer::Byte,
     [](auto& s, Duration t) { return error_of(s.barrier("k", 2, t)); }},
    {"barrier 'view/k'", Repeat::Unsafe, Answer::Long,
     [](auto& s, Duration t) { return error_of(s.under("view").barrier("k", 2, t)); }},
    {"ping", Repeat::Safe, Answer::Long, [](auto& s, Duration t) { return error_of(s.ping(t)); }},
    {"flush", Repeat::Unsafe, Answer::None,
     [](auto& s, Duration t) {
       REQUIRE(s.set("k", "v", t));
       return error_of(s.flush(t));
     }},
    {"flush", Repeat::Unsafe, Answer::None,
     [](auto& s, Duration t) {
       REQUIRE(s.append("k", "v", t));
       return error_of(s.flush(t));
     }},
    {"flush", Repeat::Unsafe, Answer::None,
     [](auto& s, Duration t) {
       REQUIRE(s.multi_set(kEntries, t));
       return error_of(s.flush(t));
     }},
};

/// Makes each call that `concerns` picks against a server that plays the script after its greeting,
/// and checks the error.
void check_calls(const FakeServer::Script& script,
                 const std::function<bool(const Named&)>& concerns,
                 const std::function<Errc(const Named&)>& code) {
  for (const auto& named : kCalls) {
    if (!concerns(named)) continue;
    FakeServer server(speaking(Dialect::G, script));
    auto store = StoreClient::connect(server.endpoint(), {.dialect = Dialect::G});
    REQUIRE(store);
    const Duration timeout =
        code(named) == Errc::Timeout ? Duration(kTimeout) : Duration(kFarTimeout);
    const auto started = std::chrono::steady_clock::now();
    const auto error = named.call(*store, timeout);
    INFO(named.act);
    CHECK(std::chrono::steady_clock::now() - started < 10 * kTimeout);
    REQUIRE(error);
    INFO(error->message);
    CHECK(error->message.starts_with(named.act + " at " + to_string(server.endpoint()) + ": "));
    CHECK(error->code == code(named));
    if (named.answer == Answer::None) CHECK(error->message.find(" 'k'") != std::string::npos);
  }
}

bool all(const Named&) { return true; }

}  // namespace

TEST_CASE("a server that falls silent ends each call at its deadline",
          "[store_client][misbehaviour]") {
  check_calls([](Peer& peer) { peer.stay_silent(); }, all,
              [](const Named&) { return Errc::Timeout; });
}

TEST_CASE("a server that answers text ends each call", "[store_client][misbehaviour]") {
  const auto script = [](Peer& peer) {
    peer.read(1);
    peer.write("HTTP/1.1 400 Bad Request\r\n\r\n");
    peer.stay_silent();
  };
  const auto is_answered = [](const Named& named) { return named.answer != Answer::None; };
  check_calls(script, is_answered, [](const Named&) { return Errc::Internal; });
}

TEST_CASE("a flush that is answered text names the write that it was for",
          "[store_client][misbehaviour]") {
  FakeServer server(speaking(Dialect::G, [](Peer& peer) {
    peer.read(bytes("01").size() + number(2).size() + 2 + number(1).size() + 1);
    peer.read(1);
    peer.write("HTTP/1.1 400 Bad Request\r\n\r\n");
    peer.stay_silent();
  }));
  auto store = StoreClient::connect(server.endpoint());
  REQUIRE(store);
  REQUIRE(store->set("k", "v"));
  const auto flushed = store->flush(kFarTimeout);
  REQUIRE_FALSE(flushed);
  CHECK(flushed.error().code == Errc::Internal);
  CHECK(flushed.error().message ==
        "flush at " + to_string(server.endpoint()) +
            ": set 'k' may not have been executed: another echo than PING's own");
}

TEST_CASE("a server that closes ends what can't be repeated, and is tried again otherwise",
          "[store_client][misbehaviour]") {
  check_calls([](Peer& peer) { peer.read(1); }, all,
              [](const Named& named) {
                return named.repeat == Repeat::Safe ? Errc::Timeout : Errc::Unavailable;
              });
}

TEST_CASE("half an answer ends each call at its deadline", "[store_client][misbehaviour]") {
  const auto script = [](Peer& peer) {
    while (peer.read(1) == bytes(kWaitOpcode)) {
      read_keys(peer);
      peer.write(bytes("00"));
    }
    peer.write(bytes("010000"));
    peer.stay_silent();
  };
  check_calls(
      script,
      [](const Named& named) {
        return named.answer == Answer::Long && named.act != "ping" &&
               named.act != "push to queue 'k'";
      },
      [](const Named&) { return Errc::Timeout; });
}

TEST_CASE("half an answer and a close is a lost connection", "[store_client][misbehaviour]") {
  const auto script = [](Peer& peer) {
    while (peer.read(1) == bytes(kWaitOpcode)) {
      read_keys(peer);
      peer.write(bytes("00"));
    }
    peer.write(bytes("01"));
  };
  check_calls(
      script,
      [](const Named& named) {
        return named.answer == Answer::Long && named.act != "ping" &&
               named.act != "push to queue 'k'";
      },
      [](const Named& named) {
        return named.repeat == Repeat::Safe ? Errc::Timeout : Errc::Unavailable;
      });
}

TEST_CASE("absurd counts and lengths are errors, and nothing is allocated for them",
          "[store_client][misbehaviour]") {
  const auto script = [](Peer& peer) {
    while (peer.read(1) == bytes(kWaitOpcode)) {
      read_keys(peer);
      peer.write(bytes("00"));
    }
    peer.write(bytes("ffffffffffffffff"));
    peer.stay_silent();
  };
  // A wait is answered properly, any 8 bytes are a sum, and a write is not answered at all.
  const auto concerns = [](const Named& named) {
    return named.answer != Answer::None && named.act != "wait for 'k'" &&
           named.act != "add to 'k'" && named.act != "barrier 'view/k'";
  };
  check_calls(script, concerns, [](const Named&) { return Errc::Internal; });
}

TEST_CASE("what a length claims past a sound count is bounded too",
          "[store_client][misbehaviour]") {
  struct Case {
    std::string answer;
    std::string said;
    std::function<std::optional<Error>(StoreClient&)> call;
  };
  const auto pop = [](StoreClient& store) {
    return error_of(store.queue_try_pop("k", kFarTimeout));
  };
  const auto list = [](StoreClient& store) { return error_of(store.list_keys(kFarTimeout)); };
  const auto known = GENERATE_COPY(
      Case{number(1) + number(1ULL << 62), "claims a value of 4611686018427387904 bytes", pop},
      Case{number(1) + number((64ULL << 20) + 1), "a reply may hold 67108864", list},
      // Each value is small enough, both are not.
      Case{number(2) + number(1) + "k" + number(64ULL << 20), "a reply may hold 67108863", list},
      Case{number(1ULL << 30), "claims to list 1073741824 keys", list});
  FakeServer server(speaking(Dialect::G, [&](Peer& peer) {
    peer.read(1);
    peer.write(known.answer);
    peer.stay_silent();
  }));
  auto store = StoreClient::connect(server.endpoint(), {.dialect = Dialect::G});
  REQUIRE(store);
  const auto error = known.call(*store);
  REQUIRE(error);
  CHECK(error->code == Errc::Internal);
  INFO(error->message);
  CHECK(error->message.find(known.said) != std::string::npos);
}

TEST_CASE("a large value that is promised but does not come costs no more than its time",
          "[store_client][misbehaviour]") {
  FakeServer server(speaking(Dialect::G, [](Peer& peer) {
    peer.read(1);
    read_keys(peer);
    peer.write(bytes("00"));
    peer.read(1);
    peer.write(number(64ULL << 20) + "a few bytes of it");
    peer.stay_silent();
  }));
  auto store = StoreClient::connect(server.endpoint(), {.dialect = Dialect::G});
  REQUIRE(store);
  CHECK(store->get("k", kTimeout).error().code == Errc::Timeout);
}

TEST_CASE("keys, values and lists beyond the limits are refused before anything is sent",
          "[store_client][misbehaviour]") {
  std::string sent;
  {
    FakeServer server(speaking(Dialect::G, [&](Peer& peer) { sent = peer.stay_silent(); }));
    auto store = StoreClient::connect(server.endpoint());
    REQUIRE(store);
    const std::string long_key(kMaxKeyBytes, 'k');  // With the "/" one byte too long.
    const std::string long_value(kMaxValueBytes + 1, 'v');
    const Strings many(kMaxKeys + 1);
    for (const auto& error :
         {store->set(long_key, "").error(), store->set("k", long_value).error(),
          store->append("k", long_value).error(), store->get(long_key).error(),
          store->add(long_key, 1).error(), store->wait(many).error(), store->check(many).error(),
          store->multi_get(many).error(), store->compare_set("k", "", long_value).error(),
          store->queue_push("q", long_value).error(), store->barrier("k", 0).error(),
          store->under(long_key).set("", "").error()}) {
      INFO(error.message);
      CHECK(error.code == Errc::InvalidArgument);
      CHECK(error.message.find(to_string(server.endpoint())) != std::string::npos);
    }
    CHECK(
        store->set(long_key, "").error().message.find("a key of 8193 bytes is longer than 8192") !=
        std::string::npos);
    CHECK(server.connections() == 1);
  }
  CHECK(sent.empty());
}

}  // namespace muster::store_client
