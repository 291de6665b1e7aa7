#include "launcher/apply.hpp"
#include "launcher/flags.hpp"
#include "launcher/text.hpp"
#include "tests/launcher/command_line.hpp"

#include <algorithm>
#include <random>
#include <stdexcept>

namespace muster::launcher {
namespace {

using namespace std::chrono_literals;
using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("without flags the defaults hold", "[launcher][options]") {
  const auto options = options_of({"train.py", "--lr", "1"});
  CHECK(options.nproc == 1);
  CHECK(options.nproc_origin == "default");
  CHECK(options.job.max_restarts == 0);
  CHECK_FALSE(options.rdzv_id);
  CHECK(options.role == "default");
  CHECK(options.master == Endpoint{"127.0.0.1", 0});
  CHECK(options.worker_store == WorkerStore::Agent);
  CHECK_FALSE(options.log_dir);
  CHECK(options.stopping.grace == 30s);
  CHECK(options.pass_local_rank == PassLocalRank::No);
  CHECK(options.log_level == spdlog::level::info);
  CHECK(options.invoked_as == "/opt/bin/muster");
  CHECK(options.notices.empty());
  CHECK(options.script == "train.py");
  CHECK(options.script_args == Words{"--lr", "1"});
}

TEST_CASE("the number of workers can be left to the machine", "[launcher][options]") {
  CHECK(options_of({"--nproc-per-node", "cpu", "x"}).nproc == 3);
  CHECK(options_of({"--nproc-per-node", "auto", "x"}).nproc == 3);
  CHECK(options_of({"--nproc-per-node", "auto", "x"}, {}, machine_with(8)).nproc == 8);
  CHECK(options_of({"--nproc-per-node", "gpu", "x"}, {}, machine_with(8)).nproc == 8);
  CHECK(options_of({"--nproc-per-node", "cpu", "x"}, {}, machine_with(8)).nproc == 3);
  CHECK(options_of({"--nproc-per-node=gpu", "x"}, {}, machine_with(8)).nproc_origin ==
        "--nproc-per-node gpu");
  CHECK(options_of({"x"}, {{"PET_NPROC_PER_NODE", "2\n"}}).nproc_origin == "PET_NPROC_PER_NODE 2");
}

TEST_CASE("only the GPUs that CUDA shows are counted", "[launcher][options]") {
  const auto count = [](const std::string& visible) {
    return options_of({"--nproc-per-node=auto", "x"}, {{"CUDA_VISIBLE_DEVICES", visible}},
                      machine_with(4))
        .nproc;
  };
  CHECK(count("0,1") == 2);
  CHECK(count("3") == 1);
  CHECK(count("0,7,1") == 1);  // CUDA stops at the first that makes no sense.
  CHECK(count("GPU-aa,GPU-bb") == 2);
  CHECK(count("") == 3);  // None, so the processors.
  CHECK(count("-1,0") == 3);
  CHECK(count("1,1") == 3);  // Named twice: CUDA hides all.
  CHECK(count("GPU-aa,GPU-aa") == 3);
  CHECK(error_of({"--nproc-per-node=gpu", "x"}, {{"CUDA_VISIBLE_DEVICES", "9"}}, machine_with(4))
            .find("CUDA_VISIBLE_DEVICES='9'") != std::string::npos);
}

TEST_CASE("a machine is asked only what a flag wants to know", "[launcher][options]") {
  const auto refuse = []() -> std::uint32_t { throw std::logic_error("the machine was asked"); };
  const Machine secretive{.cpus = refuse, .nvidia_devices = refuse};
  CHECK(options_of({"--nproc-per-node=2", "x"}, {}, secretive).nproc == 2);
}

TEST_CASE("flags of ours have variables of ours", "[launcher][options]") {
  const Environment environment{
      {"MUSTER_WORKER_STORE", "torch"}, {"MUSTER_PASS_LOCAL_RANK", "dash"},
      {"MUSTER_LOG_LEVEL", "debug"},    {"MUSTER_REPORT", "end.json"},
      {"PET_LOG_LEVEL", "off"},         {"LOGLEVEL", "ERROR"}};
  const auto options = options_of({"x"}, environment);
  CHECK(options.worker_store == WorkerStore::Torch);
  CHECK(options.pass_local_rank == PassLocalRank::Dash);
  CHECK(options.log_level == spdlog::level::debug);
  CHECK(options.report == "end.json");
  CHECK(options.report_origin == "MUSTER_REPORT");
  const auto over = options_of(
      {"--worker-store=agent", "--pass-local-rank", "--log-level", "warn", "x"}, environment);
  CHECK(over.worker_store == WorkerStore::Agent);
  CHECK(over.pass_local_rank == PassLocalRank::Underscore);
  CHECK(over.log_level == spdlog::level::warn);
}

TEST_CASE("a report that is named by an empty text is none", "[launcher][options]") {
  CHECK(options_of({"--report=", "x"}, {{"MUSTER_REPORT", "end.json"}}).report.empty());
}

TEST_CASE("LOGLEVEL is read as torchrun reads it, and never refused", "[launcher][options]") {
  CHECK(options_of({"x"}, {{"LOGLEVEL", "WARNING"}}).log_level == spdlog::level::warn);
  CHECK(options_of({"x"}, {{"LOGLEVEL", "FATAL"}}).log_level == spdlog::level::critical);
  CHECK(options_of({"x"}, {{"LOGLEVEL", "NOTSET"}}).log_level == spdlog::level::info);
  const auto odd = options_of({"x"}, {{"LOGLEVEL", "loud"}});
  CHECK(odd.log_level == spdlog::level::info);
  CHECK(odd.notices == Words{"LOGLEVEL: 'loud' is no log level that muster knows: info is used"});
}

TEST_CASE("times have units, seconds where none is said", "[launcher][options]") {
  const auto timeout = [](const std::string& text) {
    return options_of({"--shutdown-timeout=" + text, "x"}).stopping.grace;
  };
  CHECK(timeout("5") == 5s);
  CHECK(timeout("500ms") == 500ms);
  CHECK(timeout("30s") == 30s);
  CHECK(timeout("2m") == 120s);
  CHECK(timeout("1h") == 3600s);
  CHECK(timeout("0") == 0s);
}

TEST_CASE("torchrun's variable for the grace counts below its flag", "[launcher][options]") {
  const Environment environment{{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "7"}};
  CHECK(options_of({"x"}, environment).stopping.grace == 7s);
  CHECK(options_of({"--shutdown-timeout=5", "x"}, environment).stopping.grace == 5s);
  CHECK(error_of({"x"}, {{"TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "soon"}})
            .starts_with("TORCH_ELASTIC_SHUTDOWN_TIMEOUT: 'soon' is not a time: give "));
}

TEST_CASE("streams are chosen for all or by local rank, also beyond 9", "[launcher][options]") {
  const auto options = options_of({"--nproc-per-node=16", "-r", "0:1,12:3", "-t2", "x"});
  CHECK(options.redirects.of({0}) == Streams::Out);
  CHECK(options.redirects.of({1}) == Streams::None);
  CHECK(options.redirects.of({12}) == Streams::Both);
  CHECK(options.tee.of({15}) == Streams::Err);
  CHECK(options.notices.empty());
}

TEST_CASE("local ranks that nobody has are said, not refused", "[launcher][options]") {
  const auto options =
      options_of({"--nproc-per-node=2", "-r0:1,2:1", "-t9:3", "--local-ranks-filter=1,5", "x"});
  CHECK(options.notices == Words{"--redirects names local rank 2, but the highest is 1",
                                 "--tee names local rank 9, but the highest is 1",
                                 "--local-ranks-filter names local rank 5, but the highest is 1"});
}

TEST_CASE("ranks are filtered by number and range, on the node and in the job",
          "[launcher][options]") {
  const auto output = options_of({"--nproc-per-node=16", "--local-ranks-filter=0,5-7",
                                  "--ranks-filter", "8-70000", "x"})
                          .output;
  CHECK(output.local_ranks_filter->text() == "0,5-7");
  CHECK(output.ranks_filter->text() == "8-70000");
  CHECK_FALSE(options_of({"--ranks-filter=", "x"}).output.ranks_filter);
  for (const std::string wrong : {"a", "3-1", "-1", "1-", "1-2-3", "65536"}) {
    CHECK(error_of({"--local-ranks-filter=" + wrong, "x"})
              .starts_with("--local-ranks-filter: '" + wrong + "' is not a list of local ranks"));
  }
}

TEST_CASE("the prefix is the flag's, or its variable's, or torchrun's other variable's",
          "[launcher][options]") {
  const std::string other = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE";
  const std::string own = "PET_LOG_LINE_PREFIX_TEMPLATE";
  const auto prefix = [](const Words& flags, const Environment& environment) {
    Words words = flags;
    words.insert(words.end(), {"--tee=3", "x"});
    return options_of(words, environment).output.prefix;
  };
  CHECK_FALSE(prefix({}, {{other, ""}}));
  CHECK(prefix({}, {{other, "o"}}) == "o");
  CHECK(prefix({}, {{other, "o"}, {own, "p"}}) == "p");
  CHECK(prefix({"--log-line-prefix-template=f"}, {{other, "o"}, {own, "p"}}) == "f");
  CHECK(prefix({"--log-line-prefix-template="}, {{other, "o"}, {own, "p"}}) == "o");
  CHECK(options_of({"--log-line-prefix-template=f", "x"}).notices ==
        Words{"--log-line-prefix-template has no effect without --tee or --fold"});
  CHECK(options_of({"x"}, {{other, "o"}}).notices.empty());
}

TEST_CASE("copies of lines need a folder, and texts that are not empty", "[launcher][options]") {
  const auto output = options_of({"--duplicate-stdout-filters=a,,b,c", "--tee=3", "--log-dir=d",
                                  "--duplicate-stderr-filters=Error", "x"})
                          .output;
  CHECK(output.stdout_filters == Words{"a,b", "c"});
  CHECK(output.stderr_filters == Words{"Error"});
  CHECK(error_of({"--duplicate-stderr-filters=a", "--tee=3", "x"}) ==
        "--duplicate-stderr-filters needs a folder for the file with the copies: give --log-dir "
        "DIR");
  CHECK(error_of({"--duplicate-stdout-filters=a", "--log-dir=/dev/null", "x"})
            .starts_with("--duplicate-stdout-filters needs a folder"));
  CHECK(error_of({"--duplicate-stdout-filters=a,", "x"})
            .starts_with("--duplicate-stdout-filters: 'a,' is not a list of texts"));
  CHECK(options_of({"--duplicate-stdout-filters=a", "--log-dir=d", "x"}).notices.size() == 1);
}

TEST_CASE("sizes of log files have units", "[launcher][options]") {
  const auto size = [](const std::string& text) {
    return options_of({"--log-max-size=" + text, "-r3", "x"}).output.log_max_size;
  };
  CHECK(size("4096") == 4096);
  CHECK(size("1K") == 1024);
  CHECK(size("100M") == 100 * 1024 * 1024);
  CHECK(size("2GiB") == 2LL * 1024 * 1024 * 1024);
  CHECK(size("1tb") == 1LL << 40);
  for (const std::string wrong : {"", "0", "-1", "1X", "M", "1.5G", "1 MB x", "99999999T"}) {
    CHECK(error_of({"--log-max-size=" + wrong, "x"})
              .starts_with("--log-max-size: '" + wrong + "' is not a size: give bytes above 0"));
  }
  CHECK(options_of({"--log-max-size=1K", "x"}).notices.size() == 1);
  CHECK(options_of({"--log-keep=3", "-r3", "x"}).notices ==
        Words{"--log-keep has no effect without --log-max-size"});
  CHECK(options_of({"--log-keep=3", "--log-max-size=1K", "-r3", "x"}).output.log_keep == 3U);
}

TEST_CASE("shared memory is cleaned where that is wanted", "[launcher][options]") {
  CHECK_FALSE(options_of({"x"}).clean_shm);
  CHECK(options_of({"--clean-shm", "x"}).clean_shm);
  CHECK(options_of({"x"}, {{"MUSTER_CLEAN_SHM", "1"}}).clean_shm);
  CHECK_FALSE(options_of({"x"}, {{"MUSTER_CLEAN_SHM", "0"}}).clean_shm);
}

TEST_CASE("who reads the input: all, none or one", "[launcher][options]") {
  const auto input = [](const std::string& text) {
    return options_of({"--stdin=" + text, "x"}).output.input;
  };
  CHECK(options_of({"x"}).output.input.to == agent::InputPlan::To::Inherited);
  CHECK(input("all").to == agent::InputPlan::To::All);
  CHECK(input("none").to == agent::InputPlan::To::None);
  CHECK(input("12").to == agent::InputPlan::To::One);
  CHECK(input("12").rank == Rank{12});
  CHECK(error_of({"--stdin=some", "x"}) ==
        "--stdin: 'some' is not a reader of the input: give all, none, or the rank of one worker");
  CHECK(error_of({"--stdin=-1", "x"}).starts_with("--stdin: '-1' is not a reader"));
}

TEST_CASE("JSON lines are of one rank, and have no prefix", "[launcher][options]") {
  CHECK(options_of({"--log-format=json", "x"}).output.log_format == LogFormat::Json);
  CHECK(options_of({"--log-format", "text", "x"}).output.log_format == LogFormat::Text);
  CHECK(options_of({"x"}, {{"MUSTER_FOLD", "1"}}).output.fold);
  CHECK(error_of({"--log-format=xml", "x"}) ==
        "--log-format: 'xml' is not a log format: give text or json");
  CHECK(error_of({"--log-format=json", "--fold", "x"}) ==
        "--fold and --log-format json exclude each other: a JSON line is of one rank");
  CHECK(options_of({"--log-format=json", "--tee=3", "--log-line-prefix-template=f", "x"}).notices ==
        Words{"--log-line-prefix-template has no effect on JSON lines"});
}

TEST_CASE("a log folder of /dev/null means no files", "[launcher][options]") {
  const auto options =
      options_of({"--log-dir=/dev/null", "-r3", "-t1", "--local-ranks-filter=0", "x"});
  CHECK_FALSE(options.log_dir);
  CHECK(options.redirects == StreamMap{});
  CHECK(options.tee == StreamMap{});
  CHECK_FALSE(options.output.local_ranks_filter);
  CHECK(options.notices.size() == 1);
  CHECK(options_of({"--log-dir=/dev/null", "x"}).notices.empty());
}

TEST_CASE("what has no meaning is accepted and said", "[launcher][options]") {
  const auto options = options_of({"--monitor-interval=5", "--start-method", "fork", "x"});
  REQUIRE(options.notices.size() == 2);
  CHECK(options.notices[0].starts_with("--monitor-interval has no meaning here"));
  CHECK(options.notices[1].starts_with("--start-method has no meaning here"));
}

TEST_CASE("a standalone job takes a free port whatever was given", "[launcher][options]") {
  const auto options = options_of({"--standalone", "--master-port=29500", "x"});
  CHECK(options.master.port == 0);
  CHECK(options.notices == Words{"--standalone takes a free port: port 29500 is not used"});
}

TEST_CASE("an address may stand in brackets", "[launcher][options]") {
  CHECK(options_of({"--master-addr=[::1]", "x"}).master.host == "::1");
  CHECK(options_of({"--master-addr=fe80::1%eth0", "x"}).master.host == "fe80::1%eth0");
  CHECK(options_of({"--master-addr=node7.cluster", "x"}).master.host == "node7.cluster");
}

TEST_CASE("an empty job id asks for a random one", "[launcher][options]") {
  const auto options = options_of({"--rdzv-id=", "x"});
  CHECK_FALSE(options.rdzv_id);
  CHECK(options.notices == Words{"--rdzv-id is empty: the job gets a random id"});
}

TEST_CASE("a job id can not lead its folder elsewhere", "[launcher][options]") {
  CHECK(options_of({"--rdzv-id=../../etc", "x"}).rdzv_id == "../../etc");
  CHECK(folder_name("../../etc") == "_._.._etc");
  CHECK(folder_name("..") == "_.");
  CHECK(folder_name("/") == "_");
  CHECK(folder_name("") == "_");
  CHECK(folder_name("-rf *") == "_rf__");
  CHECK(folder_name("a\nb\xff") == "a_b_");
  CHECK(folder_name("run-7.b@x:1,2=3+4") == "run-7.b@x:1,2=3+4");
  CHECK(folder_name(std::string(5000, 'x')).size() == 200);
}

TEST_CASE("help and the version go to stdout", "[launcher][options]") {
  for (const auto& words :
       {Words{"-h"}, Words{"--help", "--bogus"}, Words{"--nproc-per-node=0", "-h"},
        Words{"--bogus", "-h"}, Words{"--rdzv-backend", "c10d", "-h"}, Words{"--role", "-h"},
        Words{"--nproc", "-h"}, Words{"--pass-local-rank", "dash", "-mh"}}) {
    const auto parsed = parse(words);
    const auto& now = std::get<ExitNow>(parsed);
    CHECK(now.code == 0);
    CHECK(now.err.empty());
    for (const Flag& flag : flags()) {
      INFO(flag.name);
      const auto form = long_option(flag) + (flag.takes == Takes::MaybeValue ? "[=" : " ");
      CHECK((now.out.find(form) != std::string::npos) == (flag.owner != Owner::NotYet));
    }
  }
  CHECK(error_of({"--bogus", "x.py", "--help"}) == "unknown flag '--bogus'");
  CHECK(std::get<ExitNow>(parse({"--bogus", "--version"})).out.starts_with("muster "));
  const auto version = std::get<ExitNow>(parse({"--version"}));
  CHECK(version.code == 0);
  CHECK(version.out.starts_with("muster "));
}

TEST_CASE("every flag that is there does something", "[launcher][options]") {
  for (const Flag& flag : flags()) {
    INFO(flag.name);
    const bool does = flag.owner != Owner::NotYet && flag.takes != Takes::Over;
    CHECK(can_apply(flag.name) == does);
  }
}

TEST_CASE("every flag of torchrun that is not there is refused as such", "[launcher][options]") {
  for (const Flag& flag : flags()) {
    if (flag.owner != Owner::NotYet) continue;
    const std::string said = " a flag of torchrun that this version of muster does not have yet: ";
    for (const auto& spelling : long_options(flag)) {
      CHECK(error_of({spelling, "1", "x.py"}).starts_with(long_option(flag) + " is" + said));
    }
    const auto name = variable_name(flag);
    if (name.empty()) continue;
    CHECK(error_of({"x.py"}, {{name, "1"}}).starts_with(name + " stands for" + said));
  }
}

TEST_CASE("flags that are not there are named all at once", "[launcher][errors]") {
  const std::string said = "of torchrun that this version of muster does not have yet: ";
  CHECK(error_of(
            {"--virtual_local_rank", "--event_log_handler=x", "--nproc_per_node=2", "train.py"}) ==
        "--event-log-handler and --virtual-local-rank are flags " + said + "leave them out");
  CHECK(error_of({"--numa-binding=node", "x.py"}, {{"PET_SIGNALS_TO_HANDLE", "SIGTERM"}}) ==
        "--numa-binding and PET_SIGNALS_TO_HANDLE are flags, or stand for flags, " + said +
            "leave out or unset them");
  CHECK(error_of({"x.py"}, {{"PET_EVENT_LOG_HANDLER", "console"}}) ==
        "PET_EVENT_LOG_HANDLER stands for a flag " + said + "unset it");
  CHECK(error_of({"--logs-specs"}) == "--logs-specs is a flag " + said + "leave it out");
}

TEST_CASE("the style of --pass-local-rank stands behind a =", "[launcher][errors]") {
  CHECK(error_of({"--pass_local_rank", "dash", "x.py"}) ==
        "--pass_local_rank takes its value behind a '=': write --pass_local_rank=dash (for a "
        "program of that name --pass_local_rank=underscore dash)");
  CHECK(error_of({"--pass-local-rank", "underscore"}).find("write --pass-local-rank=underscore") !=
        std::string::npos);
  CHECK(options_of({"--pass-local-rank", "dash.py"}).script == "dash.py");
  CHECK(options_of({"--pass-local-rank=underscore", "dash"}).script == "dash");
}

TEST_CASE("what became the rule is no flag", "[launcher][errors]") {
  for (const std::string word : {"--use-env", "--use_env"}) {
    CHECK(error_of({word, "x.py"}) ==
          "unknown flag '" + word +
              "': it is always so here, workers find their rank in LOCAL_RANK; a script that wants "
              "--local_rank=N gets it by --pass-local-rank");
  }
}

TEST_CASE("a bad value is named with its origin and with what is right", "[launcher][errors]") {
  const std::vector<std::pair<Words, std::string>> table{
      {{"--nproc-per-node", "0", "x"},
       "--nproc-per-node: '0' is not a number of workers: give an integer from 1 to 65536"},
      {{"--nproc-per-node=-1", "x"},
       "--nproc-per-node: '-1' is not a number of workers: give an integer from 1 to 65536"},
      {{"--nproc-per-node=99999999999999999999", "x"},
       "--nproc-per-node: '99999999999999999999' is not a number of workers: give an integer from "
       "1 "
       "to 65536, gpu, cpu, or auto (the GPUs, or else the processors)"},
      {{"--nproc-per-node=xpu", "x"},
       "--nproc-per-node: 'xpu' is not a number of workers: give an integer from 1 to 65536, gpu, "
       "cpu, or auto (the GPUs, or else the processors)"},
      {{"--nproc-per-node=gpu", "x"},
       "--nproc-per-node: no GPU was found: no /dev/nvidia0, /dev/nvidia1... here; give a number, "
       "cpu or auto"},
      {{"--max_restarts=-1", "x"},
       "--max-restarts: '-1' is not a number of restarts: give an integer from 0 to 2147483647"},
      {{"-r4", "x"},
       "--redirects: '4' is not a choice of streams: give 0 (none), 1 (stdout), 2 (stderr), 3 "
       "(both), or local ranks with one each: 0:3,1:2"},
      {{"-t", "70000:1", "x"},
       "--tee: '70000:1' is not a choice of streams: give 0 (none), 1 (stdout), 2 (stderr), 3 "
       "(both), or local ranks with one each: 0:3,1:2"},
      {{"--local-ranks-filter=0,,1", "x"},
       "--local-ranks-filter: '0,,1' is not a list of local ranks: give integers or ranges "
       "with commas: 0,2-5"},
      {{"--master-port=65536", "x"},
       "--master-port: '65536' is not a port: give an integer from 0 to 65535 (0: any free port)"},
      {{"--master-addr=", "x"},
       "--master-addr: '' is not an address: give a host name or an address; the port is "
       "--master-port"},
      {{"--master-addr=http://h", "x"},
       "--master-addr: 'http://h' is not an address: give a host name or an address; the port is "
       "--master-port"},
      {{"--master-addr=h\xc2\x9b", "x"},
       "--master-addr: 'h\\xc2\\x9b' is not an address: give a host name or an address; the port "
       "is "
       "--master-port"},
      {{"--master-addr=[::1]:29500", "x"},
       "--master-addr: '[::1]:29500' has a port: give it with --master-port"},
      {{"--shutdown-timeout=5 s", "x"},
       "--shutdown-timeout: '5 s' is not a time: give seconds (30), or an integer with a unit "
       "(500ms, 30s, 5m, 1h), at most a year"},
      {{"--shutdown-timeout=9000h", "x"},
       "--shutdown-timeout: '9000h' is not a time: give seconds (30), or an integer with a unit "
       "(500ms, 30s, 5m, 1h), at most a year"},
      {{"--worker-store=rank0", "x"},
       "--worker-store: 'rank0' is not a host of the store: give agent (muster itself) or torch "
       "(rank 0)"},
      {{"--pass-local-rank=yes", "x"},
       "--pass-local-rank: 'yes' is not a spelling: give underscore (--local_rank=N) or dash "
       "(--local-rank=N)"},
      {{"--log-level=loud", "x"},
       "--log-level: 'loud' is not a log level: give trace, debug, info, warn, error or off"},
      {{"--report=-", "x"},
       "--report: '-' is not a file: give a name; the workers' own output would stand around it on "
       "stdout"},
      {{"--monitor-interval=0", "x"},
       "--monitor-interval: '0' is not an interval: give seconds above 0 (it has no meaning here)"},
      {{"-m", "--no-python", "x"},
       "--no-python and --module (or PET_MODULE) exclude each other: a module needs Python"},
      {{}, "the script is missing: name the program that the workers run"},
      {{"--role"}, "--role needs a value (NAME)"},
      {{"--role=a\x1b[31m\n", "--max-restarts=\xff\n"},
       "the script is missing: name the program that "
       "the workers run"},
      {{"--max-restarts=\xff\nx", "x"},
       "--max-restarts: '\\xff\\x0ax' is not a number of restarts: give an integer from 0 to "
       "2147483647"},
  };
  for (const auto& [words, message] : table) {
    CHECK(error_of(words) == message);
  }
  CHECK(error_of({"x"}, {{"PET_STANDALONE", "yes"}}) ==
        "PET_STANDALONE: 'yes' is not a switch: give 1 for on, 0 for off, or unset it");
  CHECK(error_of({"x"}, {{"PET_MASTER_PORT", "tcp"}})
            .starts_with("PET_MASTER_PORT: 'tcp' is not a port: give "));
}

TEST_CASE("the nearest flag is suggested for one that is unknown", "[launcher][errors]") {
  const std::vector<std::pair<std::string, std::string>> table{
      {"--nproc-per-nodes=4", "--nproc-per-node"}, {"--nproc_per-node=4", "--nproc-per-node"},
      {"--NPROC-PER-NODE", "--nproc-per-node"},    {"-standalone", "--standalone"},
      {"--max-retarts", "--max-restarts"},         {"--stand-alone", "--standalone"},
      {"--noproc-per-node", "--nproc-per-node"},   {"--logdir=x", "--log-dir"},
  };
  for (const auto& [word, flag] : table) {
    CHECK(error_of({word, "x.py"}) ==
          "unknown flag " + in_quotes(word) + ": did you mean " + flag + "?");
  }
  CHECK(error_of({"--bogus", "x.py"}) == "unknown flag '--bogus'");
  CHECK(error_of({"--max-restarts 3", "x.py"}).ends_with("leave the quotes out"));
  CHECK(error_of({"--" + std::string(100000, 'x'), "x.py"}).starts_with("unknown flag '--xxx"));
}

TEST_CASE("arguments pass byte by byte", "[launcher][options]") {
  const std::string bytes = "\xff\xfe \t\n'\"$`\\\x01";
  const auto options =
      options_of({"--role=" + bytes, "--rdzv-id", bytes, bytes, "--", "--", bytes, "--role"});
  CHECK(options.role == bytes);
  CHECK(options.rdzv_id == bytes);
  CHECK(options.script == bytes);
  CHECK(options.script_args == Words{"--", bytes, "--role"});
}

TEST_CASE("values that look like anything arrive as they are", "[launcher][options]") {
  for (const std::string value :
       {"", "-x", "--", "--role", "[a,b]", "{}", "%%", "a=b", "\"q\"", "-5"}) {
    CHECK(options_of({"--role=first", "--role=" + value, "--standalone", "x"}).role == value);
  }
}

TEST_CASE("no command line and no environment breaks the parser", "[launcher][property]") {
  const auto seed = GENERATE(1U, 2U, 3U, 4U);
  std::mt19937 random(seed);
  const auto pick = [&random](std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random);
  };
  Words pieces{"--",
               "-",
               "",
               "=",
               "x.py",
               "-h",
               "-m",
               "-r",
               "-t",
               "0",
               "-1",
               "1:1",
               "0:3,1:2",
               " ",
               "gpu",
               "auto",
               "99999999999999999999",
               "30s",
               "\xff",
               "\n",
               "--n",
               "--log",
               "--=",
               "-=",
               "_",
               "1_0",
               "+",
               "a b",
               "-a b",
               "[x]",
               "--standalone=1",
               "-mr3",
               "-mmmmm",
               "yes"};
  Words names;
  for (const Flag& flag : flags()) {
    for (const auto& spelling : long_options(flag)) pieces.push_back(spelling);
    if (!variable_name(flag).empty()) names.push_back(variable_name(flag));
  }
  std::size_t accepted = 0;
  for (int round = 0; round < 3000; ++round) {
    Words words;
    for (auto left = pick(8); left > 0; --left) {
      std::string word = pieces[pick(pieces.size())];
      if (pick(3) == 0) word += pieces[pick(pieces.size())];
      if (pick(6) == 0 && !word.empty()) word[pick(word.size())] = static_cast<char>(pick(255) + 1);
      if (pick(8) == 0) word = word.substr(0, pick(word.size() + 1));
      words.push_back(word);
    }
    Environment environment;
    if (pick(4) == 0) environment[names[pick(names.size())]] = pieces[pick(pieces.size())];
    const auto parsed = parse(words, environment, machine_with(2));
    if (const auto* now = std::get_if<ExitNow>(&parsed)) {
      CHECK((now->code == 0 || now->code == 2));
      CHECK(now->err.empty() == (now->code == 0));
      continue;
    }
    ++accepted;
    const auto& options = std::get<Options>(parsed);
    CHECK(options.nproc >= 1);
    if (options.explain && options.script.empty()) continue;
    // The script and its arguments are the command line's end, but for a `--` between them.
    REQUIRE(options.script_args.size() < words.size());
    CHECK(std::equal(options.script_args.rbegin(), options.script_args.rend(), words.rbegin()));
    const auto before = words[words.size() - options.script_args.size() - 1];
    CHECK((before == options.script || before == "--"));
  }
  CHECK(accepted > 100);
}

}  // namespace muster::launcher
