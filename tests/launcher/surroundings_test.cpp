#include "launcher/surroundings/surroundings.hpp"

#include "launcher/relaunch.hpp"
#include "tests/launcher/command_line.hpp"

#include <algorithm>
#include <utility>

namespace muster::launcher {
namespace {

using Words = std::vector<std::string>;

/// Task `task` of a step of two nodes, as Slurm 22.05 sets it, and more.
Environment slurm(int task, Environment more = {}) {
  const auto number = std::to_string(task);
  more.merge(Environment{{"SLURM_JOB_ID", "4711"},
                         {"SLURM_STEP_ID", "2"},
                         {"SLURM_STEP_NODELIST", "h[0-1]"},
                         {"SLURM_STEP_NUM_NODES", "2"},
                         {"SLURM_STEP_NUM_TASKS", "2"},
                         {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                         {"SLURM_NODEID", number},
                         {"SLURM_PROCID", number},
                         {"SLURM_LOCALID", "0"},
                         {"SLURM_JOB_NODELIST", "h[0-1]"},
                         {"SLURM_JOB_NUM_NODES", "2"},
                         {"SLURM_JOB_CPUS_PER_NODE", "8(x2)"},
                         {"SLURM_CPUS_ON_NODE", "8"},
                         {"SLURM_LAUNCH_NODE_IPADDR", "10.9.9.9"},
                         {"SLURMD_NODENAME", "h" + number}});
  return more;
}

/// A batch script in an allocation of two nodes.
Environment batch(Environment more = {}) {
  more.merge(Environment{{"SLURM_JOB_ID", "4711"},
                         {"SLURM_JOB_NODELIST", "h[0-1]"},
                         {"SLURM_JOB_NUM_NODES", "2"},
                         {"SLURM_JOB_CPUS_PER_NODE", "8,4"},
                         {"SLURM_PROCID", "0"},
                         {"SLURM_NODEID", "0"},
                         {"SLURMD_NODENAME", "h0"}});
  return more;
}

bool has_notice(const Options& options, const std::string& part) {
  INFO(part);
  for (const auto& notice : options.notices) UNSCOPED_INFO(notice);
  return std::ranges::any_of(
      options.notices, [&part](const auto& each) { return each.find(part) != std::string::npos; });
}

void meets_nobody(const Options& options) {
  CHECK_FALSE(options.meeting);
  CHECK_FALSE(options.node_rank);
  CHECK_FALSE(options.relaunch);
  CHECK(options.launch_tag.empty());
  CHECK(options.nproc == 1);
}

}  // namespace

TEST_CASE("in a step of Slurm's no flag is needed", "[launcher][surroundings]") {
  const auto options = options_of({"x"}, slurm(1, {{"SLURM_GPUS_ON_NODE", "4"}}));
  CHECK(options.job.min_nodes == 2);
  CHECK(options.job.max_nodes == 2);
  CHECK(options.node_rank == NodeRank{1});
  REQUIRE(options.meeting);
  CHECK(options.meeting->server == Endpoint{"h0", 22269});  // 20000 + (4711 + 2 * 3779) % 10000
  CHECK_FALSE(options.job.store_on_server);
  CHECK(options.meeting->is_elsewhere);
  CHECK_FALSE(options_of({"x"}, slurm(0)).meeting->is_elsewhere);
  CHECK(options.rdzv_id == "4711.2");
  CHECK(options.launch_tag == "4711.2.0");
  CHECK(options.nproc == 4);
  CHECK(options.nproc_origin == "SLURM_GPUS_ON_NODE 4");
  CHECK(has_notice(options,
                   "from Slurm: 4 workers (SLURM_GPUS_ON_NODE), 2 nodes (SLURM_STEP_NUM_TASKS), "
                   "node rank 1 (SLURM_PROCID), endpoint h0:22269 (the first of "
                   "SLURM_STEP_NODELIST), id 4711.2 (SLURM_JOB_ID)"));
  CHECK(options.warnings.empty());
}

TEST_CASE("a restart by Slurm is another launch of the same job", "[launcher][surroundings]") {
  const auto options = options_of({"x"}, slurm(0, {{"SLURM_RESTART_COUNT", "3"}}));
  CHECK(options.rdzv_id == "4711.2");
  CHECK(options.launch_tag == "4711.2.3");
}

TEST_CASE("steps of one job that run at once have ports of their own", "[launcher][surroundings]") {
  std::set<std::uint16_t> ports;
  for (int step = 0; step < 100; ++step) {
    const auto port =
        options_of({"x"}, slurm(0, {{"SLURM_STEP_ID", std::to_string(step)}})).meeting->server.port;
    CHECK(port >= kFirstPort);
    CHECK(port < kFirstPort + kPorts);
    ports.insert(port);
  }
  CHECK(ports.size() == 100);
}

TEST_CASE("flags and their variables go before the surroundings", "[launcher][surroundings]") {
  const auto options = options_of({"--rdzv-backend=c10d", "--rdzv-endpoint=m:7", "--node-rank=0",
                                   "--rdzv-id=j", "--nproc-per-node=3", "x"},
                                  slurm(1, {{"SLURM_GPUS_ON_NODE", "4"}}));
  CHECK(options.meeting->server == Endpoint{"m", 7});
  CHECK(options.node_rank == NodeRank{0});
  CHECK(options.rdzv_id == "j");
  CHECK(options.nproc == 3);
  CHECK(options.job.max_nodes == 2);
  CHECK(has_notice(options, "--node-rank 0, but SLURM_PROCID is 1"));

  const auto by_variable =
      options_of({"x"}, slurm(1, {{"PET_MASTER_ADDR", "m"}, {"PET_RDZV_ID", ""}}));
  CHECK(by_variable.meeting->server == Endpoint{"m", 29500});
  CHECK(by_variable.job.store_on_server);
  CHECK(by_variable.rdzv_id == "4711.2");

  const auto port_only = options_of({"--master-port=1234", "x"}, slurm(1));
  CHECK(port_only.meeting->server == Endpoint{"h0", 1234});
  CHECK(port_only.job.store_on_server);
  CHECK(port_only.meeting->is_elsewhere);
}

TEST_CASE("--nnodes against Slurm's number", "[launcher][surroundings]") {
  SECTION("more than there are can't come up") {
    CHECK(error_of({"--nnodes=4", "x"}, slurm(0))
              .starts_with("--nnodes 4, but Slurm's step has 2 nodes (SLURM_STEP_NUM_TASKS)"));
  }
  SECTION("unless the others come to an endpoint that is given") {
    const auto options = options_of({"--nnodes=4", "--rdzv-endpoint=m", "x"}, slurm(1));
    CHECK_FALSE(options.node_rank);
    CHECK(options.launch_tag.empty());
    CHECK(options.rdzv_id == "none");
    CHECK(has_notice(options, "--nnodes 4, but Slurm's step has 2 nodes"));
  }
  SECTION("a range that allows more is for others to join") {
    const auto options = options_of({"--nnodes=1:4", "x"}, slurm(1));
    CHECK(options.job.max_nodes == 4);
    CHECK(options.job.prefer == 2);
    CHECK(options.meeting->server.host == "h0");
    CHECK_FALSE(options.node_rank);
    CHECK(options.launch_tag.empty());
  }
  SECTION("a range up to it makes do with fewer") {
    const auto options = options_of({"--nnodes=1:2", "x"}, slurm(1));
    CHECK(options.node_rank == NodeRank{1});
    CHECK(options.launch_tag == "4711.2.0");
    CHECK(options.job.prefer == 2);
  }
  SECTION("fewer leaves spares") {
    const auto options =
        options_of({"--nnodes=2", "x"}, slurm(2, {{"SLURM_STEP_NODELIST", "h[0-2]"},
                                                  {"SLURM_STEP_NUM_NODES", "3"},
                                                  {"SLURM_STEP_NUM_TASKS", "3"}}));
    CHECK_FALSE(options.node_rank);
    CHECK(options.launch_tag == "4711.2.0");
    CHECK(has_notice(options,
                     "--nnodes 2, but Slurm's step has 3 nodes (SLURM_STEP_NUM_TASKS): 1 "
                     "of them stand by"));
  }
  SECTION("one is a job of its own") {
    const auto options = options_of({"--nnodes=1", "x"}, slurm(1));
    meets_nobody(options);
    CHECK(has_notice(options, "--nnodes 1, but Slurm's step has 2 nodes"));
  }
  SECTION("standalone asks nobody") {
    meets_nobody(options_of({"--standalone", "x"}, slurm(1, {{"SLURM_STEP_NODELIST", "["}})));
  }
}

TEST_CASE("with one node nothing changes", "[launcher][surroundings]") {
  const Environment step{{"SLURM_JOB_ID", "4711"},         {"SLURM_STEP_ID", "0"},
                         {"SLURM_STEP_NODELIST", "h1"},    {"SLURM_STEP_NUM_NODES", "1"},
                         {"SLURM_STEP_NUM_TASKS", "1"},    {"SLURM_PROCID", "0"},
                         {"SLURM_JOB_NODELIST", "h[0-1]"}, {"SLURM_JOB_NUM_NODES", "2"}};
  meets_nobody(options_of({"x"}, step));
  meets_nobody(options_of({"x"}, {{"SLURM_JOB_ID", "4711"}, {"SLURM_JOB_NUM_NODES", "1"}}));
  meets_nobody(options_of({"x"}, {{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}}));
  const auto others = options_of({"--nnodes=2", "--rdzv-endpoint=m", "--node-rank=1", "x"}, step);
  CHECK(others.launch_tag.empty());  // Each node in a step of its own.
  CHECK(others.rdzv_id == "none");
}

TEST_CASE("a loopback endpoint for several machines is refused", "[launcher][surroundings]") {
  for (const std::string host : {"localhost", "127.0.0.1", "127.0.1.1", "[::1]", "a.localhost"}) {
    INFO(host);
    CHECK(error_of({"--rdzv-backend=c10d", "--rdzv-endpoint=" + host + ":7", "x"}, slurm(0))
              .starts_with("--rdzv-endpoint " + host +
                           ":7 is another one on each machine, but Slurm's step has 2 nodes"));
  }
  CHECK(error_of({"x"}, slurm(0, {{"PET_MASTER_ADDR", "localhost"}}))
            .starts_with("PET_MASTER_ADDR localhost is another one on each machine"));
  CHECK(error_of({"--nnodes=4", "--rdzv-endpoint=localhost", "x"}, slurm(0))
            .starts_with("--rdzv-endpoint localhost is another one on each machine"));
  CHECK(options_of({"--nnodes=2", "--rdzv-endpoint=localhost:7", "x"}).meeting);
}

TEST_CASE("one task a GPU: each is a node of one worker", "[launcher][surroundings]") {
  const Environment tasks{{"SLURM_STEP_NUM_TASKS", "5"},
                          {"SLURM_STEP_TASKS_PER_NODE", "2,3"},
                          {"SLURM_PROCID", "4"},
                          {"SLURM_GPUS_ON_NODE", "3"},
                          {"CUDA_VISIBLE_DEVICES", "2"}};
  const auto options = options_of({"x"}, slurm(1, tasks));
  CHECK(options.job.max_nodes == 5);
  CHECK(options.node_rank == NodeRank{4});
  CHECK(options.nproc == 1);
  CHECK(options.surroundings.launchers_here == 3);
  CHECK(has_notice(options, "CUDA_VISIBLE_DEVICES=2 shows each of the 3 launchers here one GPU"));
  CHECK(has_notice(options, "srun --gpu-bind=none"));
  CHECK(has_notice(options_of({"--nproc-per-node=3", "x"}, slurm(1, tasks)),
                   "--nproc-per-node 3, and Slurm has started 3 launchers on this machine"));
}

TEST_CASE("fewer processors than there could be are warned of", "[launcher][surroundings]") {
  const auto one = options_of({"x"}, slurm(0, {{"SLURM_CPUS_ON_NODE", "3"}}));
  REQUIRE(one.warnings.size() == 1);
  CHECK(one.warnings.front() ==
        "Slurm's step has 3 processors here (SLURM_CPUS_ON_NODE) for 1 worker, of 8 that the job "
        "has: give srun --cpus-per-task=8, which it does not take from sbatch");
  CHECK(options_of({"x"}, slurm(0, {{"SLURM_CPUS_ON_NODE", "4"}})).warnings.empty());
  const auto few = options_of({"--nproc-per-node=9", "x"}, slurm(0));
  REQUIRE(few.warnings.size() == 1);
  CHECK(
      few.warnings.front().ends_with("for 9 workers: give sbatch --cpus-per-task a higher number"));
}

TEST_CASE("outside of a step srun is to start one launcher on each node",
          "[launcher][surroundings]") {
  CHECK(options_of({"x"}, batch()).relaunch ==
        Words{"srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--cpus-per-task=4"});
  // GPUs that were asked for by task are asked for by node.
  for (const auto& [tasks, gpus] : std::map<std::string, std::string>{
           {"2(x2)", "--gpus-per-node=4"}, {"2,1", "--cpus-per-task=4"}}) {
    for (const std::string each : {"2", "a100:2"}) {
      CHECK(
          options_of({"x"}, batch({{"SLURM_TASKS_PER_NODE", tasks}, {"SLURM_GPUS_PER_TASK", each}}))
              .relaunch->back() == gpus);
    }
  }
  // The shell of salloc is in a step, but one that has no number.
  CHECK(options_of({"x"}, batch({{"SLURM_STEP_ID", "4294967290"}})).relaunch);
  // Variables of the step in which sbatch was called.
  CHECK(options_of({"x"}, batch({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NODELIST", "login"}}))
            .relaunch);
  CHECK(options_of({"x"}, batch({{"SLURM_STEP_ID", "0"},
                                 {"SLURM_STEP_NODELIST", "h0"},
                                 {"SLURM_STEP_TASKS_PER_NODE", "1"},
                                 {"SLURM_TASKS_PER_NODE", "1(x2)"}}))
            .relaunch);
  CHECK(options_of({"--nnodes=1:2", "x"}, batch()).relaunch);
  CHECK(options_of({"--nnodes=2:9", "x"}, batch()).relaunch);
  CHECK(error_of({"--nnodes=5", "x"}, batch()) == "--nnodes 5, but Slurm's allocation has 2 nodes");
  CHECK(error_of({"--nnodes=0", "x"}, batch()).starts_with("--nnodes: '0' is not a number"));
  CHECK(error_of({"x"}, batch({{kRelaunchedVariable, "4711"}}))
            .starts_with("Slurm's allocation has 2 nodes, and srun has started muster already"));
  CHECK(options_of({"x"}, batch({{kRelaunchedVariable, "4710"}})).relaunch);

  meets_nobody(options_of({"--nnodes=1", "x"}, batch()));
  meets_nobody(options_of({"--standalone", "x"}, batch()));
  for (const auto& words : {Words{"--nnodes=2", "--rdzv-endpoint=h0", "x"},
                            Words{"--nnodes=2", "--master-addr=h0", "--node-rank=0", "x"}}) {
    const auto options = options_of(words, batch());
    CHECK_FALSE(options.relaunch);
    CHECK(options.meeting);
  }
}

TEST_CASE("what sbatch was told of tasks is not passed on to launchers",
          "[launcher][surroundings]") {
  const BareAllocation allocation{.job = "4711", .nodes = 2, .cpus = 0, .gpus = 0};
  CHECK(srun_words(allocation, 2).size() == 4);
  CHECK(srun_environment({"A=1", "SLURM_GPUS_PER_TASK=1", "SLURM_EXPORT_ENV=NONE", "SLURM_NTASKS=8",
                          "MUSTER_RELAUNCHED=1"},
                         allocation) ==
        Words{"A=1", "SLURM_NTASKS=8", "SLURM_DISABLE_STATUS=1", "MUSTER_RELAUNCHED=4711"});
  CHECK(as_typed({"a", "b c", "", "it's"}) == "a 'b c' '' 'it'\\''s'");
}

TEST_CASE("a variable of Slurm's that makes no sense is named", "[launcher][surroundings]") {
  const auto error = [](Environment more) { return error_of({"x"}, slurm(1, std::move(more))); };
  CHECK(error({{"SLURM_STEP_NODELIST", "h[0-"}}).starts_with("SLURM_STEP_NODELIST: 'h[0-' is no"));
  CHECK(error({{"SLURM_STEP_NUM_TASKS", "two"}})
            .starts_with("SLURM_STEP_NUM_TASKS: 'two' is no number"));
  CHECK(error({{"SLURM_STEP_NUM_NODES", "3"}}) ==
        "SLURM_STEP_NODELIST has 2 nodes, but SLURM_STEP_NUM_NODES says 3");
  CHECK(error({{"SLURM_PROCID", "2"}}) ==
        "SLURM_PROCID is 2, but SLURM_STEP_NUM_TASKS counts 2 from 0");
}

TEST_CASE("Slurm's topology plug-in tells neighbours", "[launcher][surroundings]") {
  CHECK(options_of({"x"}, slurm(1, {{"SLURM_TOPOLOGY_ADDR", "s0.s4.h1"}})).topology == "s0.s4");
  CHECK(options_of({"x"}, slurm(1, {{"SLURM_TOPOLOGY_ADDR", "h1"}})).topology.empty());
}

TEST_CASE("a worker's own muster is no node of the outer job", "[launcher][surroundings]") {
  meets_nobody(options_of({"x"}, slurm(1, {{"TORCHELASTIC_RUN_ID", "outer"}})));
  meets_nobody(options_of({"x"}, batch({{"TORCHELASTIC_RUN_ID", "outer"}})));
}

TEST_CASE("each process of an mpirun is a node", "[launcher][surroundings]") {
  const Environment ompi{{"OMPI_COMM_WORLD_SIZE", "8"},
                         {"OMPI_COMM_WORLD_RANK", "5"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                         {"PMIX_NAMESPACE", "prterun-h0-7@1"}};
  const auto with = [](Environment base, Environment more) {
    more.merge(base);
    return more;
  };
  SECTION("on machines that the scheduler lists") {
    for (const auto& [variable, list] : Environment{{"SLURM_JOB_NODELIST", "n[1-2]"},
                                                    {"LSB_MCPU_HOSTS", "n1 4 n2 4"},
                                                    {"LSB_HOSTS", "n1 n1 n2 n2"},
                                                    {"PBS_NODEFILE", "/nodes"}}) {
      auto machine = machine_with(0);
      machine.read_file = [](const std::string& path) -> Result<std::string> {
        CHECK(path == "/nodes");
        return "n1\nn1\nn2\n";
      };
      const auto options = options_of({"x"}, with(ompi, {{variable, list}}), machine);
      CHECK(options.job.max_nodes == 8);
      CHECK(options.node_rank == NodeRank{5});
      CHECK(options.meeting->server == Endpoint{"n1", port_for("prterun-h0-7@1")});
      CHECK(options.rdzv_id == "prterun-h0-7@1");
      CHECK(options.nproc == 1);
    }
  }
  SECTION("on one machine") {
    const auto options = options_of({"x"}, with(ompi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "8"}}));
    CHECK(options.meeting->server.host == "127.0.0.1");
    CHECK(options.job.max_nodes == 8);
  }
  SECTION("on machines that nobody names") {
    CHECK(error_of({"x"}, ompi) ==
          "OMPI_COMM_WORLD_SIZE 8: the nodes have no place to meet: Open MPI does not say on which "
          "machines: give "
          "--rdzv-endpoint HOST (one of them) and --rdzv-id ID, the same for all");
    const auto options = options_of({"--rdzv-backend=c10d", "--rdzv-endpoint=n1", "x"}, ompi);
    CHECK(options.meeting->server == Endpoint{"n1", 29400});
    CHECK(options.node_rank == NodeRank{5});
  }
  SECTION("within a step that only started its daemons") {
    CHECK(options_of({"x"}, with(ompi, slurm(1))).job.max_nodes == 8);
  }
  SECTION("others") {
    const auto mpich = options_of({"x"}, {{"PMI_SIZE", "3"},
                                          {"PMI_RANK", "1"},
                                          {"MPI_LOCALNRANKS", "3"},
                                          {"PBS_JOBID", "12.server"}});
    CHECK(mpich.node_rank == NodeRank{1});
    CHECK(mpich.rdzv_id == "12.server");
    CHECK(error_of({"x"}, {{"PMI_SIZE", "3"}, {"PMI_RANK", "1"}, {"MPI_LOCALNRANKS", "3"}})
              .find("--rdzv-id ID") != std::string::npos);
    const auto pals = options_of(
        {"x"},
        {{"PMI_SIZE", "4"}, {"PALS_RANKID", "2"}, {"PMI_LOCAL_SIZE", "4"}, {"PALS_APID", "a-b"}});
    CHECK(pals.node_rank == NodeRank{2});
    CHECK(pals.rdzv_id == "a-b");
    const auto flux = options_of({"x"}, {{"FLUX_JOB_SIZE", "2"},
                                         {"FLUX_JOB_NNODES", "1"},
                                         {"FLUX_TASK_RANK", "1"},
                                         {"FLUX_JOB_ID", "f1"}});
    CHECK(flux.node_rank == NodeRank{1});
    CHECK(flux.rdzv_id == "f1");
    const auto jsrun = options_of({"x"}, {{"JSM_NAMESPACE_SIZE", "2"},
                                          {"JSM_NAMESPACE_RANK", "0"},
                                          {"JSM_NAMESPACE_LOCAL_SIZE", "2"},
                                          {"LSB_JOBID", "9"}});
    CHECK(jsrun.node_rank == NodeRank{0});
    CHECK(jsrun.rdzv_id == "9");
  }
}

TEST_CASE("pods and machines of a cloud are nodes", "[launcher][surroundings]") {
  SECTION("SkyPilot") {
    const auto options = options_of({"x"}, {{"SKYPILOT_NODE_IPS", "10.0.0.1\n10.0.0.2"},
                                            {"SKYPILOT_NODE_RANK", "1"},
                                            {"SKYPILOT_NUM_NODES", "2"},
                                            {"SKYPILOT_NUM_GPUS_PER_NODE", "8"},
                                            {"SKYPILOT_TASK_ID", "sky-1"}});
    CHECK(options.meeting->server == Endpoint{"10.0.0.1", port_for("sky-1")});
    CHECK(options.node_rank == NodeRank{1});
    CHECK(options.nproc == 8);
    CHECK(options.rdzv_id == "sky-1");
  }
  SECTION("LeaderWorkerSet") {
    const auto options = options_of(
        {"x"},
        {{"LWS_LEADER_ADDRESS", "g-0.g.ns"}, {"LWS_GROUP_SIZE", "4"}, {"LWS_WORKER_INDEX", "3"}});
    CHECK(options.meeting->server == Endpoint{"g-0.g.ns", port_for("g-0.g.ns")});
    CHECK(options.job.max_nodes == 4);
    CHECK(options.node_rank == NodeRank{3});
  }
  SECTION("Kubeflow counts pods as ranks") {
    const Environment pod{{"RANK", "1"},
                          {"WORLD_SIZE", "3"},
                          {"MASTER_ADDR", "j-master-0"},
                          {"MASTER_PORT", "23456"},
                          {"HOSTNAME", "j-worker-0"}};
    const auto options = options_of({"--nproc-per-node=2", "x"}, pod);
    CHECK(options.job.max_nodes == 3);
    CHECK(options.nproc == 2);
    CHECK(options.node_rank == NodeRank{1});
    CHECK(options.meeting->server == Endpoint{"j-master-0", 23456});
    CHECK(options.job.store_on_server);
    CHECK(has_notice(options, "RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT: read as Kubeflow"));
    auto newer = pod;
    newer.merge(Environment{{"PET_NNODES", "3"}, {"PET_NODE_RANK", "1"}, {"PET_MASTER_ADDR", "m"}});
    newer["WORLD_SIZE"] = "6";
    const auto by_flags = options_of({"--nproc-per-node=2", "x"}, newer);
    CHECK(by_flags.job.max_nodes == 3);
    CHECK(by_flags.meeting->server == Endpoint{"m", 29500});
    CHECK(has_notice(by_flags, "MASTER_PORT: not read, as they count pods"));
    auto master = pod;
    master["RANK"] = "0";
    master["MASTER_ADDR"] = "localhost";
    master["HOSTNAME"] = "j-master-0";
    CHECK(options_of({"x"}, master).meeting->server.host == "j-master-0");
  }
  SECTION("Volcano") {
    const auto options = options_of({"x"}, {{"VC_MASTER_HOSTS", "j-master-0.j"},
                                            {"VC_WORKER_HOSTS", "j-worker-0.j,j-worker-1.j"},
                                            {"VC_TASK_INDEX", "1"},
                                            {"HOSTNAME", "j-worker-1"}});
    CHECK(options.job.max_nodes == 3);
    CHECK(options.node_rank == NodeRank{2});
    CHECK(options.meeting->server.host == "j-master-0.j");
    const auto plugin = options_of({"x"}, {{"VC_TASK_INDEX", "0"},
                                           {"RANK", "1"},
                                           {"WORLD_SIZE", "2"},
                                           {"MASTER_ADDR", "j-master-0.j"},
                                           {"MASTER_PORT", "23456"},
                                           {"HOSTNAME", "j-w-0"}});
    CHECK(plugin.meeting->server == Endpoint{"j-master-0.j", 23456});
    CHECK(plugin.node_rank == NodeRank{1});
  }
  SECTION("lists of hosts with this one beside it") {
    const Environment sm{{"SM_HOSTS", R"(["algo-1", "algo-2"])"},
                         {"SM_CURRENT_HOST", "algo-2"},
                         {"SM_NUM_GPUS", "8"},
                         {"TRAINING_JOB_NAME", "t"}};
    const auto options = options_of({"x"}, sm);
    CHECK(options.meeting->server == Endpoint{"algo-1", port_for("t")});
    CHECK(options.node_rank == NodeRank{1});
    CHECK(options.nproc == 8);
    auto wrong = sm;
    wrong["SM_CURRENT_HOST"] = "algo-3";
    CHECK(error_of({"x"}, wrong) == "SM_CURRENT_HOST: 'algo-3' is not in SM_HOSTS");
    wrong["SM_HOSTS"] = "[algo-1]";
    CHECK(error_of({"x"}, wrong).starts_with("SM_HOSTS: '[algo-1]' is no list of hosts"));
    const auto plain =
        options_of({"--rdzv-id=i", "x"}, {{"FARM_HOSTS", "a,b,c"}, {"FARM_CURRENT_HOST", "c"}});
    CHECK(plain.node_rank == NodeRank{2});
    CHECK(plain.meeting->server == Endpoint{"a", port_for("i")});
    meets_nobody(options_of({"x"}, {{"ALLOWED_HOSTS", "a,b"}, {"HOSTNAME", "a"}}));
  }
  SECTION("an indexed job does not say how many it has") {
    const Environment pod{{"JOB_COMPLETION_INDEX", "2"}, {"HOSTNAME", "train-2"}};
    auto machine = machine_with(0);
    machine.read_file = [](const std::string&) -> Result<std::string> {
      return "127.0.0.1\tlocalhost\n10.1.1.7\ttrain-2.svc.ns.svc.cluster.local\ttrain-2\n";
    };
    const auto alone = options_of({"x"}, pod, machine);
    meets_nobody(alone);
    CHECK(has_notice(alone, "Kubernetes' job does not say how many nodes it has: --nnodes does"));
    const auto options = options_of({"--nnodes=4", "x"}, pod, machine);
    CHECK(options.meeting->server ==
          Endpoint{"train-0.svc.ns.svc.cluster.local", port_for("train")});
    CHECK(options.node_rank == NodeRank{2});
    CHECK(options.rdzv_id == "train");
    CHECK(error_of({"--nnodes=4", "x"}, pod).find("FIRST_POD.SERVICE") != std::string::npos);
    auto set = pod;
    set["JOBSET_NAME"] = "set";
    CHECK(options_of({"--nnodes=4", "x"}, set).meeting->server.host == "train-0.set");
  }
}

TEST_CASE("another launcher's ranks are never read as workers", "[launcher][surroundings]") {
  const auto options = options_of({"x"}, {{"RANK", "1"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}});
  meets_nobody(options);
  CHECK(has_notice(options, "RANK, WORLD_SIZE, LOCAL_RANK: not read"));
  CHECK(has_notice(options_of({"x"}, {{"RANK", "1"}, {"TORCHELASTIC_RUN_ID", "outer"}}),
                   "RANK: those of an outer torchrun or muster"));
  CHECK(options_of({"x"}).notices.empty());
}

}  // namespace muster::launcher
