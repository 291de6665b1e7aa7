#include "base/posix/process_tree.hpp"

#include "base/posix/process.hpp"

#include <csignal>
#include <cstdlib>
#include <unistd.h>

#include <catch2/catch.hpp>

using namespace muster;
using namespace std::chrono_literals;

TEST_CASE("orphans of double forks in sessions of their own are found and ended", "[posix][tree]") {
  posix::adopt_orphans();
  auto pipe = posix::make_pipe();
  REQUIRE(pipe);
  posix::Command command;
  command.path = "/bin/sh";
  // Each grandchild has no environment, its own session, ignores SIGTERM, and says that it is there
  // by a byte.
  command.argv = {"sh", "-c",
                  "for i in 1 2 3; do (setsid env -i /bin/sh -c 'trap \"\" TERM; echo x; sleep "
                  "1000' &); done; sleep 1000"};
  command.environment = {"PATH=/usr/bin:/bin"};
  command.out = pipe->writer.get();
  auto process = posix::Process::spawn(command);
  REQUIRE(process);
  for (int i = 0; i < 3; ++i) {
    char byte = 0, newline = 0;
    REQUIRE(::read(pipe->reader.get(), &byte, 1) == 1);
    REQUIRE(::read(pipe->reader.get(), &newline, 1) == 1);
  }
  CHECK(posix::descendants().size() >=
        5);  // The shell and its sleep, three shells; their sleeps may come later.
  CHECK(posix::end_descendants(30s).is_empty);
  CHECK_FALSE(posix::has_children());
  CHECK(posix::descendants().empty());
}

TEST_CASE("what is below a child is killed and the child is not, unless it is not due any more",
          "[posix][tree]") {
  posix::adopt_orphans();
  auto pipe = posix::make_pipe();
  REQUIRE(pipe);
  posix::Command command;
  command.path = "/bin/sh";
  command.argv = {"sh", "-c", "/bin/sh -c 'sleep 1000 & echo; wait' & wait; echo; exec sleep 1000"};
  command.environment = {"PATH=/usr/bin:/bin"};
  command.out = pipe->writer.get();
  auto process = posix::Process::spawn(command);
  REQUIRE(process);
  char byte = 0;
  REQUIRE(::read(pipe->reader.get(), &byte, 1) == 1);

  CHECK(posix::kill_below(process->pid(), [] { return false; }) == 0);
  CHECK(posix::kill_below(process->pid(), [] { return true; }) == 2);
  REQUIRE(::read(pipe->reader.get(), &byte, 1) == 1);  // The shell has seen its child die.
  CHECK_FALSE(process->reap());
  // It has become a sleep without children.
  CHECK(posix::kill_below(process->pid(), [] { return true; }) == 0);
  CHECK(posix::end_descendants(30s).is_empty);
}

TEST_CASE("a process that is none of ours is not signalled", "[posix][tree]") {
  CHECK(posix::signal_descendants(SIGKILL).empty());  // We are still here, and so is our parent.
  CHECK(::kill(::getppid(), 0) == 0);
}

TEST_CASE("one process below us is signalled, and its child of ours is named", "[posix][tree]") {
  posix::adopt_orphans();
  auto pipe = posix::make_pipe();
  REQUIRE(pipe);
  posix::Command command;
  command.path = "/bin/sh";
  command.argv = {"sh", "-c", "sleep 1000 & echo $!; wait; exec sleep 1000"};
  command.environment = {"PATH=/usr/bin:/bin"};
  command.out = pipe->writer.get();
  auto process = posix::Process::spawn(command);
  REQUIRE(process);
  char text[32] = {};
  REQUIRE(::read(pipe->reader.get(), text, sizeof text - 1) > 1);
  const int grandchild = std::atoi(text);

  CHECK(posix::signal_descendant(grandchild, 0) == process->pid());
  CHECK(posix::signal_descendant(process->pid(), 0) == process->pid());
  CHECK(posix::signal_descendant(::getppid(), SIGKILL) == 0);
  CHECK(posix::signal_descendant(::getpid(), SIGKILL) == 0);
  CHECK(posix::signal_descendant(1, SIGKILL) == 0);
  CHECK(posix::signal_descendant(grandchild, SIGKILL) == process->pid());
  CHECK(posix::end_descendants(30s).is_empty);
  CHECK(posix::signal_descendant(grandchild, SIGKILL) == 0);
}
