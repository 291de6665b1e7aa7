#include "base/posix/signals.hpp"

#include "base/exit_status.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>

using namespace muster;

TEST_CASE("a signal comes with its sender, and keeps it when it is passed on", "[posix][signals]") {
  auto source = posix::SignalSource::open({SIGUSR1, SIGUSR2});
  REQUIRE(source);
  CHECK_FALSE(source->next());

  ::kill(::getpid(), SIGUSR1);
  const auto direct = source->next();
  REQUIRE(direct);
  CHECK(direct->number == SIGUSR1);
  CHECK(direct->sender == ::getpid());
  CHECK_FALSE(direct->from_terminal);

  posix::forward_signal(::getpid(), {.number = SIGUSR2, .sender = 4242, .from_terminal = true});
  const auto forwarded = source->next();
  REQUIRE(forwarded);
  CHECK(forwarded->number == SIGUSR2);
  CHECK(forwarded->sender == 4242);
  CHECK(forwarded->from_terminal);
}

TEST_CASE("what the shell set is known before it is changed", "[posix][signals]") {
  posix::ignore_signal(SIGHUP);
  CHECK(posix::current_signal_settings().ignored.contains(SIGHUP));
  ::signal(SIGHUP, SIG_DFL);
  CHECK_FALSE(posix::current_signal_settings().ignored.contains(SIGHUP));
}

TEST_CASE("signals have names and shells' exit codes", "[base][exit]") {
  CHECK(signal_name(SIGKILL) == "SIGKILL");
  CHECK(signal_name(SIGRTMIN + 1) == "SIGRTMIN+1");
  CHECK(shell_code({.signal = SIGSEGV}) == 139);
  CHECK(shell_code({.code = 3}) == 3);
  CHECK(describe({.signal = SIGSEGV, .core_dumped = true}) ==
        "was killed by SIGSEGV (signal 11), core dumped");
}
