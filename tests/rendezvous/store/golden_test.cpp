#include "tests/rendezvous/store/golden_file.hpp"
#include "tests/rendezvous/store/store_host.hpp"

#include <map>
#include <set>

#include <catch2/catch.hpp>

using muster::store::Dialect;

namespace {

/// Which cases each section of the fact sheet lets us answer otherwise.
const std::map<std::string, std::set<std::string>> kAllowedBy{
    {"1.3", {"G.list_keys"}},                     // The order is that of a hash map.
    {"1.5", {"D.legacy.raw_check_131073_keys"}},  // libuv's limits.
    {"1.7",                                       // Dialects told apart on one port.
     {"A.raw_unknown_opcode9", "A.probe_with_new_handshake", "B.probe_with_new_handshake",
      "D.legacy.raw_no_validate"}},
    {"2.1",  // The empty value for GET of a missing key.
     {"A.get_after_desync", "A.raw_get_missing", "B.raw_get_missing",
      "B.raw_multi_get_with_missing", "D.legacy.raw_get_missing",
      "D.legacy.raw_multi_get_with_missing"}},
    {"2.8",  // WATCH_KEY.
     {"A.raw_watch_register", "A.raw_watch_event_create", "A.raw_watch_event_update",
      "A.raw_watch_event_compare_set", "A.raw_watch_event_delete", "A.raw_watch_event_add_create"}},
    {"2.10", {"G.legacy.raw_queue_push"}},  // Queues are libuv's alone.
    {"6",                                   // Defects that are not to be copied.
     {"D.libuv.raw_validate_split", "D.libuv.raw_no_validate", "D.libuv.raw_wrong_magic",
      "D.libuv.raw_http", "G.libuv.raw_ping_without_validate", "G.libuv.raw_queue_stale_waiter"}},
};

/// How the recorded requests are sent.
enum class Pieces { Whole, Bytes };

/// Replays one section against a fresh server.
class Replay {
 public:
  Replay(char dialect, const std::string& mode, Pieces pieces)
      : dialect_(dialect), mode_(mode), pieces_(pieces), host_(options(dialect, mode)) {
    connect(0);
    connect_other(other_);
    connect_other(fence_);
  }

  void play(const GoldenCase& golden, const std::vector<GoldenStep>& steps,
            const GoldenException* exception) {
    INFO("case " << golden.name << ", server " << mode_);
    bool differs = false;
    std::size_t answer = 0;
    for (std::size_t at = 0; at <= golden.records.size(); ++at) {
      prepare(steps, at);
      if (at == golden.records.size()) break;
      const auto& record = golden.records[at];
      if (record.kind == GoldenRecord::Kind::Sent) {
        send(client(record.connection), record.bytes);
        pass_fence();
        continue;
      }
      std::string wanted = text_of(record);
      if (exception != nullptr) {
        REQUIRE(answer < exception->answers.size());
        const auto& other = exception->answers[answer];
        if (other != "=" && other != wanted) {
          differs = true;
          wanted = other;
        }
      }
      ++answer;
      expect(record.connection, wanted);
      // The recorded connection was gone after that, whatever ours did.
      if (record.kind == GoldenRecord::Kind::Closed) gone_.insert(record.connection);
    }
    if (exception != nullptr) {
      INFO("the exception must say something else than the record, for each answer");
      CHECK(differs);
      CHECK(answer == exception->answers.size());
    }
    pass_fence();
    for (auto& [number, each] : clients_) {
      INFO("connection " << number << " must have got nothing more");
      CHECK((gone_.contains(number) || each->is_quiet()));
    }
    for (const int number : gone_) clients_.erase(number);
    gone_.clear();
  }

 private:
  static muster::store::ServerOptions options(char dialect, const std::string& mode) {
    muster::store::ServerOptions options;
    if (mode == "fixed") options.dialect = static_cast<Dialect>(dialect - 'A');
    return options;
  }

  static std::string text_of(const GoldenRecord& record) {
    if (record.kind == GoldenRecord::Kind::Closed) return "EOF";
    if (record.kind == GoldenRecord::Kind::Nothing) return "NONE";
    return to_hex(record.bytes);
  }

  void prepare(const std::vector<GoldenStep>& steps, std::size_t at) {
    for (const auto& step : steps) {
      if (step.before_record != at || (step.mode != "*" && step.mode != mode_)) continue;
      INFO("setup: " << step.act << " " << step.connection << " " << to_hex(step.bytes));
      if (step.act == "other") {
        REQUIRE(other_->send(step.bytes));
      } else if (step.act == "expect_other") {
        REQUIRE(to_hex(other_->receive(step.bytes.size())) == to_hex(step.bytes));
      } else if (step.act == "send") {
        REQUIRE(client(step.connection).send(step.bytes));
      } else if (step.act == "expect") {
        REQUIRE(to_hex(client(step.connection).receive(step.bytes.size())) == to_hex(step.bytes));
      } else if (step.act == "fresh") {
        connect(step.connection);
      } else if (step.act == "bare") {
        clients_[step.connection] = std::make_unique<RawClient>(host_.port());
      } else {
        REQUIRE(step.act == "finish");
        client(step.connection).finish_sending();
      }
      pass_fence();
    }
  }

  void expect(int connection, const std::string& wanted) {
    if (wanted == "EOF") {
      CHECK(client(connection).is_closed_by_peer());
      gone_.insert(connection);
    } else if (wanted == "NONE") {
      CHECK(client(connection).is_quiet());
    } else {
      CHECK(to_hex(client(connection).receive(wanted.size() / 2)) == wanted);
    }
  }

  void send(RawClient& to, std::string_view bytes) {
    if (pieces_ == Pieces::Whole) {
      to.send(bytes);
      return;
    }
    // The server may close before all of it is sent: what it answers is judged, not this.
    for (const char byte : bytes) {
      if (!to.send({&byte, 1})) return;
      pass_fence();
    }
  }

  RawClient& client(int number) {
    if (!clients_.contains(number)) connect(number);
    return *clients_[number];
  }

  void connect(int number) {
    clients_[number] = std::make_unique<RawClient>(host_.port());
    if (dialect_ >= 'C') clients_[number]->send(validate_);
  }

  void connect_other(std::unique_ptr<RawClient>& other) {
    other = std::make_unique<RawClient>(host_.port());
    if (dialect_ >= 'C') other->send(validate_);
  }

  /// Until the server has executed all that was sent, and sent what followed: it takes what is
  /// ready in order, and sends to those that were woken at the end of a turn, so that two turns are
  /// enough.
  void pass_fence() {
    for (int turn = 0; turn < 2; ++turn) {
      const char check = dialect_ >= 'C' ? 5 : 4;
      REQUIRE(fence_->send(std::string(1, check) + std::string(8, '\0')));
      REQUIRE(fence_->receive(1) == std::string(1, '\0'));
    }
  }

  const std::string validate_ = from_hex("00cef7853c");
  char dialect_;
  std::string mode_;
  Pieces pieces_;
  StoreHost host_;
  std::map<int, std::unique_ptr<RawClient>> clients_;
  std::set<int> gone_;
  std::unique_ptr<RawClient> other_;
  std::unique_ptr<RawClient> fence_;
};

std::size_t replay_all(const std::string& mode, Pieces pieces) {
  const auto setup = read_golden_setup();
  const auto exceptions = read_golden_exceptions();
  std::set<std::pair<std::string, std::string>> used;
  std::size_t cases = 0;
  for (const auto& section : read_golden_file()) {
    INFO(section.title);
    Replay replay(section.cases.front().name.front(), mode, pieces);
    for (const auto& golden : section.cases) {
      const auto steps = setup.find(golden.name);
      const auto exception = exceptions.find({golden.name, mode});
      if (exception != exceptions.end()) used.insert(exception->first);
      replay.play(golden, steps == setup.end() ? std::vector<GoldenStep>{} : steps->second,
                  exception == exceptions.end() ? nullptr : &exception->second);
      ++cases;
    }
  }
  for (const auto& [name, exception] : exceptions) {
    INFO("exception " << name.first << " " << name.second << " is of no case");
    CHECK((name.second != mode || used.contains(name)));
  }
  return cases;
}

constexpr std::size_t kGoldenCases = 195;

}  // namespace

TEST_CASE("every golden case is answered as recorded where each connection shows its dialect",
          "[store][golden]") {
  CHECK(replay_all("detect", Pieces::Whole) == kGoldenCases);
}

TEST_CASE("every golden case is answered as recorded where the dialect is fixed",
          "[store][golden]") {
  CHECK(replay_all("fixed", Pieces::Whole) == kGoldenCases);
}

TEST_CASE("every golden case is answered as recorded where each byte comes alone",
          "[store][golden]") {
  CHECK(replay_all("fixed", Pieces::Bytes) == kGoldenCases);
}

TEST_CASE("no exception from the golden cases lacks the fact sheet's leave", "[store][golden]") {
  for (const auto& [name, exception] : read_golden_exceptions()) {
    INFO("exception " << name.first << " of section " << exception.section);
    const auto allowed = kAllowedBy.find(exception.section);
    REQUIRE(allowed != kAllowedBy.end());
    CHECK(allowed->second.contains(name.first));
    CHECK((name.second == "detect" || name.second == "fixed"));
  }
}
