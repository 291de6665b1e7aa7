#include "base/posix/process.hpp"

#include "base/posix/lease_page.hpp"

#include <poll.h>
#include <unistd.h>

#include <catch2/catch.hpp>

using namespace muster;
using posix::Process;
using posix::SpawnError;

namespace {

posix::Command shell(const std::string& script) {
  posix::Command command;
  command.path = "/bin/sh";
  command.argv = {"sh", "-c", script};
  command.environment = {"PATH=/usr/bin:/bin"};
  return command;
}

ExitStatus wait_for(Process& process) {
  pollfd ended{.fd = process.watch(), .events = POLLIN, .revents = 0};
  REQUIRE(::poll(&ended, 1, 30'000) == 1);
  const auto status = process.reap();
  REQUIRE(status);
  return *status;
}

}  // namespace

TEST_CASE("a stop is told once, and that the child goes on, neither as its end",
          "[posix][process]") {
  auto signals = posix::SignalSource::open({SIGCHLD}).value();
  const auto wait_for_signal = [&signals] {
    pollfd arrived{.fd = signals.descriptor(), .events = POLLIN, .revents = 0};
    REQUIRE(::poll(&arrived, 1, 30'000) == 1);
    REQUIRE(signals.next());
  };
  auto child = Process::spawn(shell("kill -STOP $$; exec sleep 1000"));
  REQUIRE(child);
  wait_for_signal();
  CHECK(child->stop_or_continue() == SIGSTOP);
  CHECK_FALSE(child->stop_or_continue());
  CHECK_FALSE(child->reap());
  child->signal(SIGCONT);
  wait_for_signal();
  CHECK(child->stop_or_continue() == SIGCONT);
  CHECK_FALSE(child->reap());
  child->signal(SIGKILL);
  CHECK(wait_for(*child) == ExitStatus{.signal = SIGKILL});
}

TEST_CASE("a child's end is told by its pidfd, code and signal apart", "[posix][process]") {
  auto exits = Process::spawn(shell("exit 5"));
  REQUIRE(exits);
  CHECK(wait_for(*exits) == ExitStatus{.code = 5});
  auto dies = Process::spawn(shell("kill -KILL $$"));
  REQUIRE(dies);
  CHECK(wait_for(*dies) == ExitStatus{.signal = SIGKILL});
}

TEST_CASE("a program that can't be executed fails the spawn, with the step and the cause",
          "[posix][process]") {
  auto command = shell("");
  command.path = "/nonexistent/program";
  const auto process = Process::spawn(command);
  REQUIRE_FALSE(process);
  CHECK(process.error().step == SpawnError::Step::Exec);
  CHECK(process.error().error == ENOENT);
  CHECK(process.error().message == "exec /nonexistent/program: No such file or directory");
}

TEST_CASE("an environment that is too large is refused with its largest variable",
          "[posix][process]") {
  auto command = shell("");
  command.environment.push_back("HUGE=" + std::string(131'072, 'x'));
  const auto process = Process::spawn(command);
  REQUIRE_FALSE(process);
  CHECK(process.error().error == E2BIG);
  CHECK(process.error().message.find("'HUGE' with 131077") != std::string::npos);
}

TEST_CASE("no worker starts once the lease has ended", "[posix][process]") {
  const auto page = posix::LeasePage::create();
  REQUIRE(page);
  auto command = shell("exit 0");
  command.lease_ends = &page->ends();
  page->renew_for_ever();
  auto before = Process::spawn(command);
  REQUIRE(before);
  CHECK(wait_for(*before).success());
  page->end();
  const auto after = Process::spawn(command);
  REQUIRE_FALSE(after);
  CHECK(after.error().step == SpawnError::Step::LeaseEnded);
}

TEST_CASE("descriptors become 0, 1 and 2, and no other reaches the child", "[posix][process]") {
  auto pipe = posix::make_pipe();
  REQUIRE(pipe);
  const int leaked =
      ::dup(pipe->reader.get());  // Not close-on-exec, as what a user's shell left open.
  auto command = shell("ls /proc/self/fd | wc -l");
  command.out = pipe->writer.get();
  auto process = Process::spawn(command);
  REQUIRE(process);
  CHECK(wait_for(*process).success());
  char text[16] = {};
  REQUIRE(::read(pipe->reader.get(), text, sizeof text - 1) > 0);
  CHECK(std::string(text) == "4\n");  // 0, 1, 2, and the folder that ls reads.
  ::close(leaked);
}

TEST_CASE("a signal after the end goes nowhere", "[posix][process]") {
  auto process = Process::spawn(shell("exit 0"));
  REQUIRE(process);
  CHECK(wait_for(*process).success());
  process->signal(SIGKILL);
  CHECK(process->reap() == ExitStatus{});
}
