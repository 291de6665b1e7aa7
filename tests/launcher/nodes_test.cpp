#include "launcher/settle.hpp"
#include "tests/launcher/command_line.hpp"

#include <algorithm>
#include <csignal>

namespace muster::launcher {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

/// A c10d job's flags, and more.
Words c10d(Words more) {
  Words words{"--rdzv-backend=c10d", "--rdzv-endpoint=h0"};
  words.insert(words.end(), more.begin(), more.end());
  words.emplace_back("x");
  return words;
}

bool has_notice(const Options& options, std::string_view start) {
  return std::ranges::any_of(options.notices,
                             [start](const auto& notice) { return notice.starts_with(start); });
}

}  // namespace

TEST_CASE("a lone node meets nobody", "[launcher][nodes]") {
  for (const Words& words :
       {Words{"x"}, Words{"--nnodes=1:1", "--node-rank=0", "x"},
        Words{"--master-addr=h0", "--master-port=1234", "x"},
        Words{"--rdzv-backend=static", "--rdzv-endpoint=h0:1234", "x"},
        Words{"--rdzv-backend=c10d", "x"},
        Words{"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "x"},
        Words{"--standalone", "--rdzv-backend=c10d", "--rdzv-endpoint=h0", "x"}}) {
    CHECK_FALSE(options_of(words).meeting);
  }
  CHECK(options_of({"--rdzv-endpoint=h0:1234", "x"}).master == Endpoint{"h0", 1234});
  CHECK(options_of({"--rdzv-endpoint=h0", "x"}).master == Endpoint{"h0", 29500});
  CHECK(options_of({"--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "x"}).master ==
        Endpoint{"127.0.0.1", 0});
  CHECK_FALSE(options_of({"x"}).rdzv_id);
}

TEST_CASE("an endpoint of c10d is where nodes meet, one node included", "[launcher][nodes]") {
  const auto one = options_of(c10d({}));
  REQUIRE(one.meeting);
  CHECK(one.meeting->server == Endpoint{"h0", 29400});
  CHECK(one.meeting->origin == "--rdzv-endpoint");
  CHECK(one.job.join_timeout == 600s);
  CHECK_FALSE(one.job.store_on_server);

  const auto several = options_of(
      {"--nnodes=2:8:2", "x"},
      {{"PET_RDZV_BACKEND", "c10d"}, {"PET_RDZV_ENDPOINT", "[fd00::1]:7"}, {"PET_RDZV_ID", "j"}});
  REQUIRE(several.meeting);
  CHECK(several.meeting->server == Endpoint{"fd00::1", 7});
  CHECK(several.meeting->origin == "PET_RDZV_ENDPOINT");
  CHECK(several.job.min_nodes == 2);
  CHECK(several.job.max_nodes == 8);
  CHECK(several.job.node_step == 2);
  CHECK(several.rdzv_id == "j");
}

TEST_CASE("a static job meets at the address of its store", "[launcher][nodes]") {
  const auto options =
      options_of({"--nnodes=2", "--node-rank=1", "--master-addr=h0", "--master-port=1234", "x"});
  REQUIRE(options.meeting);
  CHECK(options.meeting->server == Endpoint{"h0", 1234});
  CHECK(options.meeting->origin == "--master-addr");
  CHECK(options.node_rank == NodeRank{1});
  CHECK(options.job.store_on_server);
  CHECK(options.job.join_timeout == 900s);
  CHECK(options_of({"--nnodes=2", "--master-addr=h0", "x"}).meeting->server ==
        Endpoint{"h0", 29500});
  CHECK(options_of({"--nnodes=2", "--rdzv-endpoint=h1", "--master-addr=h0", "x"}).meeting->server ==
        Endpoint{"h1", 29500});
  CHECK_FALSE(options_of({"--nnodes=2", "--master-addr=h0", "--worker-store=torch", "x"})
                  .job.store_on_server);
}

TEST_CASE("a static job starts with all its nodes, and says so", "[launcher][nodes]") {
  const auto options = options_of({"--nnodes=1:4", "--master-addr=h0", "x"});
  CHECK(options.job.min_nodes == 4);
  CHECK(options.notices == Words{"--nnodes 1:4: a static job starts with all 4 nodes; "
                                 "--rdzv-backend c10d makes do with 1"});
}

TEST_CASE("nodes that meet share an id", "[launcher][nodes]") {
  CHECK(options_of(c10d({"--nnodes=2"})).rdzv_id == "none");
  CHECK(options_of(c10d({"--nnodes=2", "--rdzv-id=7"})).rdzv_id == "7");
  const auto options = options_of(c10d({"--nnodes=2", "--rdzv-id="}));
  CHECK(options.rdzv_id == "none");
  CHECK(options.notices ==
        Words{"--rdzv-id is empty: the job's id is 'none', the same on all nodes"});
}

TEST_CASE("nodes are taken in at once, at a checkpoint, or never", "[launcher][nodes]") {
  CHECK(options_of(c10d({})).job.scale_up == ScaleUp::Now);
  CHECK(options_of(c10d({"--scale-up=now"})).job.scale_up == ScaleUp::Now);
  CHECK(options_of(c10d({"--scale-up=checkpoint"})).job.scale_up == ScaleUp::Checkpoint);
}

TEST_CASE("a limit on attempts without progress that the restarts never reach is told of",
          "[launcher][nodes]") {
  CHECK(options_of({"--max-restarts=2", "--max-restarts-without-progress=3", "x"}).notices.empty());
  CHECK(options_of({"--max-restarts=1", "--max-restarts-without-progress=3", "x"}).notices ==
        Words{"--max-restarts-without-progress 3 has no effect: --max-restarts 1 allows 2 failed "
              "attempts"});
}

TEST_CASE("what says how nodes meet is read", "[launcher][nodes]") {
  const auto options = options_of(
      c10d({"--nnodes=1:4", "--lease=2500ms", "--prefer=3", "--scale-up=never",
            "--restart-backoff=5s", "--max-restarts=9", "--max-restarts-without-progress=3",
            "--local-addr=[fd00::2]", "--token-file=/t", "--port-range=30000-30009", "--iface=ib0",
            "--preempt-signal=usr1", "--preempt-deadline=1m", "--preempt-command=true"}));
  CHECK(options.job.lease == 2500ms);
  CHECK(options.job.prefer == 3);
  CHECK(options.job.scale_up == ScaleUp::Never);
  CHECK(options.job.restart_backoff == 5s);
  CHECK(options.job.max_restarts_without_progress == 3);
  CHECK(options.local_addr == "fd00::2");
  CHECK(options.token_file == "/t");
  CHECK(options.port_range == PortRange{30000, 30009});
  CHECK(options.iface == "ib0");
  CHECK(options.preemption.signal == SIGUSR1);
  CHECK(options.preemption.deadline == 60s);
  CHECK(options.preemption.command == "true");
  CHECK(options.preemption.is_asked_for);
  CHECK(options.notices.empty());
}

TEST_CASE("flags for several nodes are said to mean nothing to a lone one", "[launcher][nodes]") {
  const auto options = options_of({"--lease=5", "--local-addr=h0", "x"},
                                  {{"MUSTER_STORE_ALLOW", "any"}, {"PET_RDZV_CONF", "timeout=3"}});
  CHECK(options.notices == Words{"PET_RDZV_CONF has no meaning for a node that meets nobody",
                                 "--local-addr has no meaning for a node that meets nobody",
                                 "--lease has no meaning for a node that meets nobody",
                                 "MUSTER_STORE_ALLOW has no meaning for a node that meets nobody"});
}

TEST_CASE("networks add up, over words and commas", "[launcher][nodes]") {
  const auto count = [](const Words& more) { return options_of(c10d(more)).store_allow.size(); };
  CHECK(count({}) == 0);
  CHECK(count({"--store-allow=10.0.0.0/8,fd00::/8", "--store-allow", "192.0.2.7"}) == 3);
  CHECK(count({"--store-allow=any"}) == 1);
  CHECK(count({"--store-allow="}) == 0);
  CHECK(options_of(c10d({"--store-allow=10.0.0.0/8"})).store_allow.front().bits == 96 + 8);
}

TEST_CASE("the settings of torchrun's rendezvous are used, or said to mean nothing",
          "[launcher][nodes]") {
  const auto options = options_of(
      c10d({"--rdzv-conf= join_timeout = 5 ,last_call_timeout=500ms,is_host=Yes,timeout=9,"
            "close_timeout=3,keep_alive_interval=5,store_type=tcp,rank=1,join_timeuot=4,x=y"}));
  CHECK(options.job.join_timeout == 5s);
  CHECK(options.job.last_call == 500ms);
  CHECK(options.meeting->is_host == true);
  CHECK(
      options.notices ==
      Words{"--rdzv-conf close_timeout has no meaning here: closing waits for nothing",
            "--rdzv-conf keep_alive_interval has no meaning here: a node's lease decides: --lease",
            "--rdzv-conf rank has no meaning here: --node-rank says it, as with torchrun",
            "--rdzv-conf: 'join_timeuot' is no key that muster knows: it has no effect; did you "
            "mean join_timeout?",
            "--rdzv-conf: 'x' is no key that muster knows: it has no effect",
            "--rdzv-conf timeout has no meaning for c10d: join_timeout has"});
  const auto fixed =
      options_of({"--nnodes=2", "--master-addr=h0", "--rdzv-conf=timeout=30,is_host=0", "x"});
  CHECK(fixed.job.join_timeout == 30s);
  CHECK(fixed.meeting->is_host == false);
  CHECK(options_of({"--nnodes=2", "--master-addr=h0", "--rdzv-conf=timeout=30,join_timeout=7", "x"})
            .job.join_timeout == 7s);
}

TEST_CASE("a master that c10d does not use is said", "[launcher][nodes]") {
  const auto options = options_of(c10d({"--nnodes=2", "--master-addr=h0", "--master-port=1"}));
  CHECK(options.meeting->server == Endpoint{"h0", 29400});
  CHECK(has_notice(options, "--master-addr has no meaning for c10d"));
  CHECK(has_notice(options, "--master-port has no meaning for c10d"));
}

TEST_CASE("--standalone is one node, and says what it leaves out", "[launcher][nodes]") {
  const auto options =
      options_of({"--standalone", "--nnodes=1:3", "--rdzv-endpoint=h0:7", "--master-port=8", "x"});
  CHECK_FALSE(options.meeting);
  CHECK(options.job.max_nodes == 1);
  CHECK(options.master == Endpoint{"127.0.0.1", 0});
  CHECK(options.notices == Words{"--standalone is one node: --nnodes 1:3 counts as 1",
                                 "--standalone takes a free port: port 8 is not used",
                                 "--standalone meets nobody: --rdzv-endpoint has no effect"});
}

TEST_CASE("nodes that could never meet, or never be enough, are refused", "[launcher][errors]") {
  const std::string way_out =
      "give --rdzv-backend c10d and --rdzv-endpoint HOST[:PORT] (one of the nodes, or a musterd), "
      "or else --master-addr HOST, the same on all nodes";
  const std::string nodes =
      " is not a number of nodes: give N, MIN:MAX or MIN:MAX:STEP, where 0 < "
      "MIN <= MAX <= 20000 and 0 < STEP";
  const std::vector<std::pair<Words, std::string>> table{
      {{"--nnodes=2", "x"}, "--nnodes 2: the nodes have no place to meet: " + way_out},
      {{"--nnodes=1:4", "--rdzv-backend=c10d", "x"},
       "--nnodes 1:4: the nodes have no place to meet: " + way_out},
      {{"--nnodes=0", "x"}, "--nnodes: '0'" + nodes},
      {{"--nnodes=3:2", "x"}, "--nnodes: '3:2'" + nodes},
      {{"--nnodes=2:4:0", "x"}, "--nnodes: '2:4:0'" + nodes},
      {{"--nnodes=1:2:3:4", "x"}, "--nnodes: '1:2:3:4'" + nodes},
      {{"--nnodes=20001", "x"}, "--nnodes: '20001'" + nodes},
      {c10d({"--nnodes=5:7:4"}), "--nnodes: '5:7:4': no multiple of 4 lies between 5 and 7"},
      {{"--node-rank=1", "x"},
       "--node-rank: '1': the job has at most 1 node (--nnodes), so give 0"},
      {c10d({"--nnodes=2:4", "--node-rank=4"}),
       "--node-rank: '4': the job has at most 4 nodes (--nnodes), so give 0 to 3"},
      {c10d({"--node-rank=-1"}),
       "--node-rank: '-1' is not a node rank: give an integer from 0, below the number of nodes"},
      {{"--rdzv-backend=etcd-v2", "x"},
       "--rdzv-backend: 'etcd-v2' is not needed here: give c10d, with --rdzv-endpoint naming one "
       "of the nodes or a musterd"},
      {{"--rdzv-backend=mpi", "x"},
       "--rdzv-backend: 'mpi' is not a way to meet that muster has: give c10d or static"},
      {{"--rdzv-endpoint=http://h0:1", "x"},
       "--rdzv-endpoint: 'http://h0:1' is not an endpoint: give HOST or HOST:PORT, a name or an "
       "address, IPv6 in brackets: [fe80::1%eth0]:29400"},
      {{"--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=h0:0", "x"},
       "--rdzv-endpoint: port 0 is any free one, which the other nodes could not find: give one"},
      {{"--nnodes=2", "--master-addr=h0", "--master-port=0", "x"},
       "--master-addr: port 0 is any free one, which the other nodes could not find: give one"},
      {{"--standalone", "--nnodes=2", "x"},
       "--standalone is one node, but --nnodes 2 asks for more: leave --standalone out, and " +
           way_out},
      {c10d({"--nnodes=2:4", "--prefer=5"}),
       "--prefer: '5' is not a number of nodes that --nnodes allows: give an integer from 2 to 4"},
      {c10d({"--lease=0"}),
       "--lease: '0' is not a lease: give a time from 500ms to 1h: seconds (10), or an integer "
       "with a unit"},
      {{"--max-restarts-without-progress=1", "x"},
       "--max-restarts-without-progress: '1' is not a number of attempts to compare: give 2 or "
       "more (to end the job at its first failure, --max-restarts 0)"},
      {{"--max-restarts-without-progress=two", "x"},
       "--max-restarts-without-progress: 'two' is not a number of attempts to compare: give 2 or "
       "more (to end the job at its first failure, --max-restarts 0)"},
      {c10d({"--scale-up=later"}),
       "--scale-up: 'later' is not a time to take nodes in: give now, checkpoint or never"},
      {c10d({"--store-allow=10.0.0.0/33"}),
       "--store-allow: '10.0.0.0/33' is not a network: give 10.0.0.0/8, fd00::/8, an address, or "
       "any"},
      {c10d({"--port-range=5-4"}),
       "--port-range: '5-4' is not a range of ports: give LOW-HIGH, from 1 to 65535: 29500-29599"},
      {c10d({"--local-addr=h0:1"}),
       "--local-addr: 'h0:1' is not an address: give a host name or an address, without a port"},
      {c10d({"--preempt-signal=KILL"}),
       "--preempt-signal: 'KILL' is not a signal that a worker can catch: give a name or a number: "
       "SIGTERM, USR1, 10"},
      {c10d({"--rdzv-conf=join_timeout=0"}),
       "--rdzv-conf: join_timeout='0': give a time above 0: seconds (30), or 500ms, 30s, 5m, 1h"},
      {c10d({"--rdzv-conf=is_host=on"}), "--rdzv-conf: is_host='on': give true or false"},
      {c10d({"--rdzv-conf=store_type=file"}),
       "--rdzv-conf: store_type='file': give tcp, or leave it out: nodes meet over the network "
       "only"},
      {c10d({"--rdzv-conf=min_nodes=2"}),
       "--rdzv-conf min_nodes has a flag of its own: give --nnodes"},
      {c10d({"--rdzv-conf=a=1,"}),
       "--rdzv-conf: 'a=1,' is not a list of settings: give KEY=VALUE, with commas between them"},
  };
  for (const auto& [words, message] : table) CHECK(error_of(words) == message);
}

}  // namespace muster::launcher
