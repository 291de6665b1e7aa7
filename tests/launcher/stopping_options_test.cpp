#include "command_line.hpp"

#include <chrono>
#include <csignal>

using namespace muster;
using namespace muster::launcher;
using namespace std::chrono_literals;

namespace {

using Words = std::vector<std::string>;
const Environment kSlurm{{"SLURM_JOB_ID", "7"}};

}  // namespace

TEST_CASE("without a scheduler nobody kills the launcher, and SIGTERM ends it",
          "[launcher][options]") {
  const auto stopping = options_of({"x"}).stopping;
  CHECK(stopping.grace == 30s);
  CHECK_FALSE(stopping.kill_after);
  CHECK_FALSE(stopping.sigterm_is_notice);
  CHECK(stopping.drain_timeout == 10s);
  CHECK_FALSE(stopping.success_skew);
  CHECK(stopping.forwarded == std::set{SIGUSR1, SIGUSR2});
}

TEST_CASE("under a scheduler all is over before it kills", "[launcher][options]") {
  for (const char* variable : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID",
                               "_CONDOR_JOB_AD", "KUBERNETES_SERVICE_HOST"}) {
    const auto options = options_of({"x"}, {{variable, "7"}});
    CHECK(options.stopping.grace == 25s);
    CHECK(options.stopping.kill_after == 30s);
    CHECK(options.stopping.kept_for_verdict == 5s);
    CHECK(options.stopping.sigterm_is_notice);
    CHECK(options.preemption.deadline == 20s);
    CHECK(options.notices.empty());
  }
  CHECK_FALSE(options_of({"x"}, {{"SLURM_JOB_ID", ""}}).stopping.kill_after);
}

TEST_CASE("--kill-after tells how long the scheduler waits", "[launcher][options]") {
  const auto stopping = options_of({"--kill-after=10m", "x"}, kSlurm).stopping;
  CHECK(stopping.grace == 595s);
  CHECK(stopping.kill_after == 600s);
  CHECK(options_of({"--kill-after=6", "x"}).stopping.grace == 5s);
  CHECK(options_of({"--kill-after=6", "--shutdown-timeout=2", "x"}).stopping.grace == 2s);
  CHECK(error_of({"--kill-after=0", "x"}).starts_with("--kill-after: '0' is not a time above 0"));
}

TEST_CASE("a grace that a scheduler does not leave is said", "[launcher][options]") {
  const auto options = options_of({"--shutdown-timeout=60", "x"}, kSlurm);
  CHECK(options.stopping.grace == 60s);  // For stops of other reasons.
  CHECK(options.notices ==
        Words{"--shutdown-timeout 60 s: after a signal to muster the workers have "
              "25 s, since Slurm kills it after 30 s; --kill-after tells another "
              "time"});
}

TEST_CASE("saving before the machine goes, and the stop after it, fit into what is left",
          "[launcher][options]") {
  SECTION("as long as is told, by the only one who knows") {
    const auto options = options_of({"--preempt-deadline=600", "x"}, kSlurm);
    CHECK(options.preemption.deadline == 600s);
    CHECK(options.stopping.kill_after == 630s);
    CHECK(options.stopping.grace == 25s);
    CHECK(options.notices.empty());
  }
  SECTION("no longer than whoever kills is said to wait") {
    const auto options = options_of({"--preempt-deadline=30", "--kill-after=30", "x"});
    CHECK(options.preemption.deadline == 20s);
    CHECK(options.stopping.kill_after == 30s);
    CHECK(options.notices.size() == 1);
    CHECK(options.job.preempt_deadline == 30s);  // What all nodes agree on stays.
  }
  SECTION("where both fit, both stand") {
    const auto options = options_of({"--preempt-deadline=5", "--kill-after=60", "x"});
    CHECK(options.preemption.deadline == 5s);
    CHECK(options.notices.empty());
  }
}

TEST_CASE("signals that are for the workers alone", "[launcher][options]") {
  const auto forwarded = [](const std::string& text) {
    return options_of({"--forward-signals=" + text, "x"}).stopping.forwarded;
  };
  CHECK(forwarded("hup,SIGALRM,34") == std::set{SIGUSR1, SIGUSR2, SIGHUP, SIGALRM, 34});
  for (const std::string bad : {"KILL", "STOP", "CHLD", "SEGV", "TSTP", "hup,nothing", "0", "99"}) {
    CHECK(error_of({"--forward-signals=" + bad, "x"})
              .starts_with("--forward-signals: '" + bad.substr(bad.find(',') + 1) +
                           "' is not a signal that can be passed on"));
  }
}
