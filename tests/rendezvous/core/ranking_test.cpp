#include "rendezvous/core/ranking.hpp"

#include "rendezvous/core/address.hpp"
#include "tests/rendezvous/core/job_harness.hpp"

#include <algorithm>
#include <set>

#include <catch2/catch.hpp>

using namespace muster;
using namespace muster::rendezvous;
using namespace std::chrono_literals;
using test::nodes;
using test::Sim;

namespace {

Contender node(const std::string& name, const std::string& address = "") {
  Contender contender;
  contender.incarnation = {name};
  contender.machine = "machine-" + name;
  contender.address = address;
  return contender;
}

PastPlace past(const std::string& name) { return {{name}, "machine-" + name}; }

/// The nodes' names by node rank.
std::string order(const std::vector<Contender>& contenders,
                  const std::vector<PastPlace>& places = {}) {
  std::string names;
  for (const auto index : rank_nodes(contenders, places).order)
    names += contenders[index].incarnation.value;
  return names;
}

}  // namespace

TEST_CASE("nodes stand by address in numeric order", "[rendezvous][ranking]") {
  CHECK(order({node("c", "10.0.0.10"), node("b", "10.0.0.9"), node("a", "9.200.0.1")}) == "abc");
  CHECK(order({node("c", "fe80::10"), node("b", "fe80::9"), node("a", "::ffff:10.0.0.1")}) ==
        "abc");
  CHECK(order({node("c", "2001:db8::1"), node("b", "2001:db8:0:0::"), node("a", "10.1.1.1")}) ==
        "abc");
}

TEST_CASE("the topology label comes before the address", "[rendezvous][ranking]") {
  auto far = node("c", "10.0.0.1");
  far.topology = "rack2";
  auto near = node("a", "10.0.0.2");
  auto near_too = node("b", "10.0.0.3");
  near.topology = near_too.topology = "rack1";
  CHECK(order({far, near, near_too}) == "abc");
}

TEST_CASE("addresses are told apart from names", "[rendezvous][ranking]") {
  CHECK(is_loopback("127.0.1.1"));
  CHECK(is_loopback("::1"));
  CHECK(is_loopback("localhost"));
  CHECK_FALSE(is_loopback("10.0.0.1"));
  CHECK_FALSE(is_loopback("127.example.org"));
  CHECK(is_unspecified("0.0.0.0"));
  CHECK(is_unspecified("::"));
  CHECK(is_unspecified(""));
  CHECK_FALSE(is_unspecified("host"));
  CHECK(address_key("fe80::1%eth0") != address_key("fe80::1%eth1"));
  CHECK(address_key("1:2:3") == address_key("1:2:3"));
  CHECK(address_key("::ffff:1.2.3.4") == address_key("1.2.3.4"));
}

TEST_CASE("who stays keeps its place, and newcomers take what is free", "[rendezvous][ranking]") {
  const std::vector places{past("a"), past("b"), past("c")};
  CHECK(order({node("x", "1.1.1.1"), node("c"), node("a")}, places) == "axc");
}

TEST_CASE("an agent that replaces another on its machine gets its place", "[rendezvous][ranking]") {
  const std::vector places{past("a"), past("b"), past("c")};
  auto successor = node("B", "10.0.0.9");
  successor.machine = "machine-b";
  CHECK(order({node("x", "1.1.1.1"), successor, node("c"), node("a")}, places) == "aBcx");
}

TEST_CASE("in a smaller round those behind move into the gaps", "[rendezvous][ranking]") {
  const std::vector places{past("a"), past("b"), past("c"), past("d")};
  CHECK(order({node("d"), node("c"), node("a")}, places) == "adc");
  CHECK(order({node("d"), node("c")}, places) == "cd");
}

TEST_CASE("a given node rank is honoured", "[rendezvous][ranking]") {
  auto first = node("a", "10.0.0.9");
  auto last = node("c", "10.0.0.1");
  first.given = NodeRank{0};
  last.given = NodeRank{2};
  CHECK(order({node("b", "10.0.0.5"), last, first}) == "abc");
  SECTION("also against a place of before") {
    CHECK(order({node("b"), last, first}, {past("b"), past("a"), past("c")}) == "abc");
  }
  SECTION("in a round that is too small for it, its order is kept") {
    CHECK(order({last, first}) == "ac");
  }
}

TEST_CASE("ranks are contiguous per node, whatever its number of workers",
          "[rendezvous][ranking]") {
  auto a = node("a", "1.0.0.1");
  auto b = node("b", "1.0.0.2");
  auto c = node("c", "1.0.0.3");
  a.slots = 2;
  b.slots = 5;
  c.slots = 1;
  const auto ranking = rank_nodes({c, b, a}, {});
  CHECK(ranking.world_size == 8);
  CHECK(ranking.ranks[0].rank_offset == Rank{0});
  CHECK(ranking.ranks[1].rank_offset == Rank{2});
  CHECK(ranking.ranks[2].rank_offset == Rank{7});
}

TEST_CASE("agents of one machine count their local ranks on", "[rendezvous][ranking]") {
  auto a = node("a", "1.0.0.1");
  auto b = node("b", "1.0.0.1");
  auto c = node("c", "1.0.0.2");
  b.machine = a.machine;
  a.slots = 2;
  b.slots = 3;
  c.slots = 4;
  const auto ranking = rank_nodes({a, b, c}, {});
  CHECK(ranking.ranks[0].local_rank_offset == LocalRank{0});
  CHECK(ranking.ranks[1].local_rank_offset == LocalRank{2});
  CHECK(ranking.ranks[0].local_world_size == 5);
  CHECK(ranking.ranks[1].local_world_size == 5);
  CHECK(ranking.ranks[2].local_rank_offset == LocalRank{0});
  CHECK(ranking.ranks[2].local_world_size == 4);
}

TEST_CASE("role ranks count within a role, in the order of node ranks", "[rendezvous][ranking]") {
  auto a = node("a", "1.0.0.1");
  auto b = node("b", "1.0.0.2");
  auto c = node("c", "1.0.0.3");
  a.role = c.role = "trainer";
  b.role = "reader";
  a.slots = 2;
  b.slots = 3;
  const auto ranking = rank_nodes({a, b, c}, {});
  CHECK(ranking.ranks[0].role_rank_offset == 0);
  CHECK(ranking.ranks[1].role_rank_offset == 0);
  CHECK(ranking.ranks[2].role_rank_offset == 2);
  CHECK(ranking.ranks[0].role_world_size == 3);
  CHECK(ranking.ranks[1].role_world_size == 3);
}

TEST_CASE("a node that returns to its machine's place keeps all others where they are",
          "[rendezvous][ranking][job]") {
  Sim sim(nodes(3, 3));
  for (const auto* name : {"a", "b", "c"}) sim.join(name);
  const auto before = sim["c"].assignment().node_rank;
  sim.farewell("b");
  sim.join("b");
  REQUIRE(sim["c"].assignments.size() == 2);
  CHECK(sim["c"].assignment().node_rank == before);
  CHECK(sim["b"].assignment().node_rank == NodeRank{1});
}

TEST_CASE("two agents of one machine share it, and keep their places",
          "[rendezvous][ranking][job]") {
  Sim sim(nodes(3, 3));
  for (const auto* name : {"a", "b", "c"}) {
    sim.add(name).hello.machine = name == std::string("c") ? "other" : "same";
    sim.greet(name);
  }
  CHECK(sim["b"].assignment().local_rank_offset == LocalRank{1});
  CHECK(sim["a"].assignment().local_world_size == 2);
  sim.farewell("a");
  sim.add("d").hello.machine = "same";
  sim.greet("d");
  CHECK(sim["d"].assignment().node_rank == NodeRank{0});
  CHECK(sim["b"].assignment().node_rank == NodeRank{1});
}

TEST_CASE("workers meet at node rank 0's store", "[rendezvous][ranking][job]") {
  Sim sim(nodes(2, 2));
  SECTION("at the address that it gives") {
    sim.join("a");
    sim.join("b");
    CHECK(sim["b"].assignment().master == sim["a"].hello.store);
  }
  SECTION("at the address that its connection comes from, where it gives none") {
    sim.add("a").hello.store = {"0.0.0.0", 1234};
    sim.greet("a");
    sim.join("b");
    CHECK(sim["b"].assignment().master == Endpoint{"10.0.0.1", 1234});
  }
  SECTION("the server's own node at the address by which its peers found it") {
    auto& own = sim.add("a");
    own.hello.store = {"127.0.0.1", 1234};
    own.peer = own.local = "127.0.0.1";
    own.hello.hosts_server = true;
    own.hello.node_rank = NodeRank{0};
    sim.greet("a");
    sim.join("b");
    CHECK(sim["b"].assignment().master == Endpoint{"10.0.0.100", 1234});
  }
  SECTION("on loopback where all nodes are") {
    for (const auto* name : {"a", "b"}) {
      auto& agent = sim.add(name);
      agent.hello.store = {"127.0.0.1", 1234};
      agent.peer = agent.local = "127.0.0.1";
      sim.greet(name);
    }
    CHECK(sim["b"].assignment().master == Endpoint{"127.0.0.1", 1234});
  }
  SECTION("where the user said, whatever that is") {
    auto& own = sim.add("a");
    own.hello.store = {"127.0.0.1", 1234};
    own.hello.store_is_fixed = true;
    sim.greet("a");
    sim.join("b");
    CHECK(sim["b"].assignment().master == Endpoint{"127.0.0.1", 1234});
  }
}

TEST_CASE("only node rank 0 is told all addresses", "[rendezvous][ranking][job]") {
  Sim sim(nodes(2, 2));
  sim.add("a").hello.addresses = {"192.168.0.1", "10.0.0.1"};
  sim.greet("a");
  sim.add("b").hello.addresses = {"192.168.0.2"};
  sim.greet("b");
  CHECK(sim["a"].assignment().admitted ==
        std::vector<std::string>{"10.0.0.1", "10.0.0.2", "192.168.0.1", "192.168.0.2"});
  CHECK(sim["b"].assignment().admitted.empty());
}

TEST_CASE("a second claim to a node rank waits for the first's end", "[rendezvous][ranking][job]") {
  Sim sim(nodes(2, 2));
  for (const auto* name : {"a", "b", "c"}) {
    sim.add(name).hello.node_rank = NodeRank{name == std::string("a") ? 0U : 1U};
    sim.greet(name);
  }
  CHECK(sim["b"].assignment().node_rank == NodeRank{1});
  CHECK(sim["c"].assignments.empty());
  CHECK(sim["c"].waits.back().find("node rank 1 is that of node b (10.0.0.2)") !=
        std::string::npos);
  SECTION("which is its farewell") {
    sim.farewell("b");
    CHECK(sim["c"].assignment().node_rank == NodeRank{1});
  }
  SECTION("which is its lease's end") {
    sim.freeze("b");
    sim.advance(12499ms);
    CHECK(sim["c"].assignments.empty());
    CHECK_FALSE(sim["c"].refusal);
    sim.advance(1ms);
    CHECK(sim["c"].assignment().node_rank == NodeRank{1});
  }
  SECTION("and is refused when both live on") {
    sim.advance(12500ms);
    REQUIRE(sim["c"].refusal);
    CHECK(sim["c"].refusal->exit_code == 2);
    CHECK(sim["c"].refusal->message ==
          "--node-rank 1 of node c (10.0.0.3) is that of node b (10.0.0.2) as well: give each its "
          "own");
    CHECK(sim["b"].stops.empty());
  }
}

TEST_CASE("a node rank beyond max is refused at the door", "[rendezvous][ranking][job]") {
  Sim sim(nodes(1, 2));
  sim.add("a").hello.node_rank = NodeRank{2};
  sim.greet("a");
  REQUIRE(sim["a"].refusal);
  CHECK(sim["a"].refusal->exit_code == 2);
}
