// Conversations of real PyTorch clients with real PyTorch servers, recorded byte by byte in the
// store's golden.txt: our client must send the same bytes, and understand the same answers.

#include "rendezvous/store_client/store_client.hpp"
#include "tests/rendezvous/store_client/fake_server.hpp"

#include <fstream>
#include <map>
#include <sstream>

#include <catch2/catch.hpp>

using namespace std::chrono_literals;

namespace muster::store_client {
namespace {

using Strings = std::vector<std::string>;

struct Line {
  bool from_client;
  std::string bytes;
};

/// The lines of each case between one client and its server, in order.
std::map<std::string, std::vector<Line>> read_golden() {
  std::ifstream file("../store/golden.txt");
  REQUIRE(file);
  std::map<std::string, std::vector<Line>> cases;
  std::string text;
  while (std::getline(file, text)) {
    if (text.empty() || text.starts_with('#')) continue;
    std::istringstream fields(text);
    std::string name, direction, hex, connection, origin;
    fields >> name >> direction >> hex >> connection >> origin;
    const bool is_ours =
        connection == "0" && origin == "captured-client" && hex != "EOF" && hex != "NONE";
    if (is_ours) cases[name].push_back({direction == "C>S", bytes(hex)});
  }
  return cases;
}

/// Plays the server's lines, and notes what the client sent otherwise.
FakeServer::Script playing(const std::vector<Line>& lines, std::string& complaint) {
  return [&lines, &complaint](Peer& peer) {
    for (const auto& [from_client, expected] : lines) {
      if (!from_client) {
        peer.write(expected);
      } else if (const auto got = peer.read(expected.size()); got != expected) {
        complaint = "sent otherwise after " + std::to_string(got.size()) + " bytes";
        return;
      }
    }
    if (const auto more = peer.stay_silent(); !more.empty())
      complaint = "sent more than was expected";
  };
}

void expect(bool good) { CHECK(good); }

template <class T, class Expected>
void expect(const Result<T>& result, const Expected& expected) {
  UNSCOPED_INFO((result ? std::string() : result.error().message));
  REQUIRE(result);
  CHECK(*result == expected);
}

void expect_timeout(const Result<void>& result) {
  REQUIRE_FALSE(result);
  CHECK(result.error().code == Errc::Timeout);
}

const std::map<std::string, std::function<void(StoreClient&)>> kCalls{
    {"set_k1_v1", [](auto& s) { expect(s.set("k1", "v1").has_value()); }},
    {"set_empty_value", [](auto& s) { expect(s.set("empty", "").has_value()); }},
    {"get_k1", [](auto& s) { expect(s.get("k1"), "v1"); }},
    {"add_ctr_5", [](auto& s) { expect(s.add("ctr", 5), 5); }},
    {"add_ctr_minus7", [](auto& s) { expect(s.add("ctr", -7), -2); }},
    {"get_ctr", [](auto& s) { expect(s.get("ctr"), "-2"); }},
    {"check_ready", [](auto& s) { expect(s.check("k1"), true); }},
    {"check_not_ready", [](auto& s) { expect(s.check(Strings{"k1", "nokey"}), false); }},
    {"check_zero_keys", [](auto& s) { expect(s.check(Strings{}), true); }},
    {"compare_set_create_missing_empty_expected",
     [](auto& s) { expect(s.compare_set("cs", "", "first"), "first"); }},
    {"compare_set_match",
     [](auto& s) { expect(s.compare_set("cs", "first", "second"), "second"); }},
    {"compare_set_mismatch",
     [](auto& s) { expect(s.compare_set("cs", "wrong", "third"), "second"); }},
    {"compare_set_missing_nonempty_expected",
     [](auto& s) { expect(s.compare_set("cs2", "exp", "des"), "exp"); }},
    {"num_keys", [](auto& s) { expect(s.num_keys(), 5); }},
    {"delete_existing", [](auto& s) { expect(s.delete_key("k1"), true); }},
    {"delete_missing", [](auto& s) { expect(s.delete_key("k1"), false); }},
    {"wait_already_present", [](auto& s) { expect(s.wait(Strings{"ctr", "cs"}).has_value()); }},
    {"wait_two_missing_one_present",
     [](auto& s) { expect(s.wait(Strings{"late1", "late2", "ctr"}).has_value()); }},
    {"wait_timeout_1s", [](auto& s) { expect_timeout(s.wait("never", 50ms)); }},
    {"append_new", [](auto& s) { expect(s.append("ap", "ab").has_value()); }},
    {"append_again", [](auto& s) { expect(s.append("ap", "cd").has_value()); }},
    {"get_appended", [](auto& s) { expect(s.get("ap"), "abcd"); }},
    {"multi_set",
     [](auto& s) {
       const std::vector<std::pair<std::string, std::string>> entries{{"m1", "A"}, {"m2", "BB"}};
       expect(s.multi_set(entries).has_value());
     }},
    {"multi_get", [](auto& s) { expect(s.multi_get(Strings{"m1", "m2"}), Strings{"A", "BB"}); }},
    {"multi_get_no_keys", [](auto& s) { expect(s.multi_get(Strings{}), Strings{}); }},
    {"queue_len", [](auto& s) { expect(s.queue_len("q"), 1); }},
    {"queue_pop_nonblock_empty", [](auto& s) { expect(s.queue_try_pop("q"), std::nullopt); }},
    {"list_keys",
     [](auto& s) {
       const auto keys = s.list_keys();
       REQUIRE(keys);
       expect(std::ranges::count(*keys, "m1") == 1);
       expect(
           std::ranges::none_of(*keys, [](const auto& key) { return key.find('/') != key.npos; }));
     }},
    {"barrier_ws1", [](auto& s) { expect(s.barrier("b1", 1).has_value()); }},
    {"barrier_ws2_timeout", [](auto& s) { expect_timeout(s.barrier("b2", 2, 50ms)); }},
    {"get_b2", [](auto& s) { expect(s.get("b2"), "1"); }},
    {"prefix_barrier_ws1", [](auto& s) { expect(s.under("pre").barrier("bb", 1).has_value()); }},
    {"prefix_barrier_ws2_timeout",
     [](auto& s) { expect_timeout(s.under("pre").barrier("b2", 2, 50ms)); }},
};

}  // namespace

TEST_CASE("our client sends what PyTorch's client sends, and understands the answers",
          "[store_client][golden]") {
  const auto golden = read_golden();
  std::map<char, int> played;
  for (const auto& [name, lines] : golden) {
    const auto call = kCalls.find(name.substr(name.find('.') + 1));
    if (call == kCalls.end()) continue;
    INFO(name);
    const auto dialect = static_cast<Dialect>(name.front() - 'A');
    std::string complaint;
    {
      FakeServer server(speaking(dialect, playing(lines, complaint)));
      auto store =
          StoreClient::connect(server.endpoint(), {.call_timeout = 10s, .dialect = dialect});
      REQUIRE(store);
      call->second(*store);
    }
    CHECK(complaint.empty());
    ++played[name.front()];
  }
  // So that a changed file of cases can't make this pass by playing none.
  CHECK(played['A'] >= 15);
  CHECK(played['B'] >= 20);
  CHECK(played['C'] >= 3);
  CHECK(played['D'] >= 20);
  CHECK(played['E'] >= 2);
  CHECK(played['G'] >= 6);
}

}  // namespace muster::store_client
