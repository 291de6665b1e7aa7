"""How workers are ended, and all that they started: who is asked, when, how long it has, and that nothing is left."""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import time
import unittest

from job import JobTest, PATIENCE, SANITIZED, kill, needs_root, processes_marked, wait_for

SLEEPER = """#!/bin/sh
echo ready >> ready
exec sleep 1000
"""
# A child in the worker's process group and one in a session of its own, which say what they get.
FAMILY = """#!/bin/sh
cat > child.$RANK <<'END'
trap 'echo "$1 asked" >> events; exit 0' TERM
echo "$1 ready" >> ready.$RANK
while :; do sleep 0.02; done
END
sh child.$RANK near &
setsid sh child.$RANK far &
while [ "$(cat ready.$RANK 2> /dev/null | wc -l)" -lt 2 ]; do sleep 0.01; done
"""


class StoppingTest(JobTest):
    def start_ready(self, *flags, lines, **options):
        job = self.start(*flags, "worker.sh", **options)
        wait_for(lambda: len(self.lines_of("ready")) >= lines, "the workers to be ready")
        return job

    def ended(self, job):
        out, err = job.communicate(timeout=PATIENCE)
        return job.returncode, out, err


class WhoIsAsked(StoppingTest):
    def test_the_main_process_alone_while_it_saves_then_what_it_started(self):
        self.script(FAMILY + "trap 'echo saving >> events; sleep 0.5; echo saved >> events; exit 0' TERM\n"
                    "echo main >> ready\nwhile :; do sleep 0.02; done\n")
        job = self.start_ready(lines=1)
        job.send_signal(signal.SIGTERM)
        code, _, err = self.ended(job)
        self.assertEqual(code, 143, err)
        events = self.lines_of("events")
        self.assertEqual(events[:2], ["saving", "saved"])
        self.assertEqual(sorted(events[2:]), ["far asked", "near asked"])
        self.assertRegex(err, r"asking (1 process|\d+ processes) that the workers left")

    def test_the_group_at_once_where_that_is_wanted(self):
        self.script(FAMILY + "trap 'sleep 0.5; echo saved >> events; exit 0' TERM\n"
                    "echo main >> ready\nwhile :; do sleep 0.02; done\n")
        job = self.start_ready("--signal-group", lines=1)
        job.send_signal(signal.SIGTERM)
        self.ended(job)
        self.assertEqual(self.lines_of("events"), ["near asked", "saved", "far asked"])

    def test_what_a_worker_started_at_three_quarters_of_the_grace(self):
        self.script(FAMILY + "trap '' TERM\necho main >> ready\nwhile :; do sleep 0.02; done\n")
        job = self.start_ready("--shutdown-timeout", "2", lines=1)
        job.send_signal(signal.SIGTERM)
        code, _, err = self.ended(job)
        self.assertEqual(code, 143, err)
        self.assertEqual(sorted(self.lines_of("events")), ["far asked", "near asked"])
        self.assertRegex(err, r"asking (1 process|\d+ processes) that the workers started")
        self.assertIn("killed by SIGKILL", err)

    def test_what_a_successful_worker_left_when_its_time_is_over(self):
        self.script(FAMILY + "[ $RANK = 0 ] && exit 0\ntouch waits\nwhile [ ! -e go ]; do sleep 0.02; done\n")
        job = self.start("--drain-timeout", "500ms", "--nproc-per-node", 2, "worker.sh")
        # Rank 1 goes on meanwhile, and what it started with it.
        wait_for(lambda: len(self.lines_of("events")) == 2, "what rank 0 left to be asked")
        self.assertIsNone(job.poll())
        (self.folder / "go").touch()
        code, _, err = self.ended(job)
        self.assertEqual(code, 0, err)
        self.assertEqual(len(self.lines_of("events")), 4)
        self.assertRegex(err, r"waiting up to 0.5 s for (1 process|\d+ processes) that the workers left")

    def test_signals_that_are_for_the_workers(self):
        self.script("#!/bin/sh\ntrap 'echo HUP >> got.$RANK' HUP\ntrap 'echo ALRM >> got.$RANK; exit 0' ALRM\n"
                    "echo ready >> ready\nwhile :; do sleep 0.02; done\n")
        job = self.start_ready("--forward-signals", "hup,SIGALRM", "--nproc-per-node", 2, lines=2)
        for number in (signal.SIGHUP, signal.SIGALRM):
            job.send_signal(number)
            wait_for(lambda: all(len(self.lines_of(f"got.{rank}")) == 1 + (number == signal.SIGALRM) for rank in (0, 1)),
                     "the workers to have it")
        code, _, err = self.ended(job)
        self.assertEqual(code, 0, err)
        self.assertEqual(self.lines_of("got.1"), ["HUP", "ALRM"])

    def test_one_that_the_worker_does_not_handle_is_told_as_what_it_was(self):
        self.script(SLEEPER)
        job = self.start_ready(lines=1)
        job.send_signal(signal.SIGUSR1)
        code, _, err = self.ended(job)
        self.assertEqual(code, 128 + signal.SIGUSR1)
        self.assertIn("muster passed that signal on", err)

    def test_a_stopped_agent_hears_that_it_should_end(self):
        self.script(SLEEPER)
        job = self.start_ready(lines=1)
        (agent,) = [int(pid) for pid in pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()]
        os.kill(agent, signal.SIGSTOP)
        job.send_signal(signal.SIGTERM)
        self.assertEqual(self.ended(job)[0], 143)

    def test_a_signal_that_nobody_spoke_of_ends_the_job_in_order(self):
        self.script("#!/bin/sh\ntrap 'echo asked >> got' ALRM\necho ready >> ready\nwhile :; do sleep 0.02; done\n")
        job = self.start_ready("--shutdown-timeout", "1", lines=1)
        for number in (signal.SIGWINCH, signal.SIGCONT, signal.SIGALRM):
            job.send_signal(number)
        code, _, err = self.ended(job)
        self.assertEqual(code, 128 + signal.SIGALRM, err)
        self.assertEqual(self.lines_of("got"), ["asked"])
        self.assertNotIn("SIGWINCH", err)


class HowLong(StoppingTest):
    def is_listened_at(self, port):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return True

    SAVER = """#!/bin/sh
trap 'i=0; while [ $i -lt 15 ]; do sleep 0.1; i=$((i + 1)); done; echo "saved $TORCHELASTIC_RESTART_COUNT" >> saved; exit 0' TERM
echo ready >> ready
"""

    def test_the_grace_is_the_same_for_a_signal_and_for_a_failure_here(self):
        self.script(self.SAVER + "if [ $RANK = 1 ]; then while [ ! -e fail ]; do sleep 0.01; done; exit 5; fi\n"
                    "while :; do sleep 0.02; done\n")
        for reason, grace, saves in (("signal", 60, True), ("failure", 60, True), ("signal", 1, False),
                                     ("failure", 1, False)):
            with self.subTest(reason=reason, grace=grace):
                for name in ("ready", "saved", "fail"):
                    (self.folder / name).unlink(missing_ok=True)
                job = self.start_ready("--shutdown-timeout", grace, "--nproc-per-node", 2, lines=2)
                if reason == "signal":
                    job.send_signal(signal.SIGTERM)
                else:
                    (self.folder / "fail").touch()
                began = time.monotonic()
                code, _, err = self.ended(job)
                self.assertEqual(code, 143 if reason == "signal" else 5, err)
                self.assertEqual(bool(self.lines_of("saved")), saves, err)
                if not saves:
                    self.assertGreater(time.monotonic() - began, 0.9 * grace)

    def test_the_grace_is_the_same_for_what_happens_elsewhere(self):
        for reason, grace, saves in (("failure", 60, 1), ("failure", 1, 0), ("loss", 60, 1), ("change", 60, 2)):
            with self.subTest(reason=reason, grace=grace):
                for name in ("ready", "saved", "done"):
                    (self.folder / name).unlink(missing_ok=True)
                # The first node's worker has to save. The second node's fails, or is lost; with "change" it comes later.
                self.script(self.SAVER + """
if [ $RANK = 1 ]; then
  while [ "$(cat ready | wc -l)" -lt 2 ]; do sleep 0.02; done
  touch done
  [ $TORCHELASTIC_RUN_ID = loss ] || exit 7
fi
[ $WORLD_SIZE = 2 ] && while [ ! -e done ]; do sleep 0.02; done
while :; do sleep 0.02; done
""")
                port = self.free_port()
                nodes = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", reason,
                         "--shutdown-timeout", grace, "--nnodes", "2" if reason == "failure" else "1:2"]
                if reason == "change":
                    nodes += ["--prefer", 1]
                first = self.start(*nodes, "--node-rank", 0, "worker.sh")
                wait_for(lambda: self.lines_of("ready") if reason == "change" else self.is_listened_at(port),
                         "the first node to be there")
                second = self.start(*nodes, "--node-rank", 1, "worker.sh")
                if reason == "loss":
                    wait_for((self.folder / "done").exists, "both workers to be ready")
                    second.kill()  # Its keeper, and with it the agent.
                    wait_for(lambda: self.lines_of("saved"), "the first worker to save")
                    wait_for(lambda: len(self.lines_of("ready")) == 3, "the first node to go on")
                    first.send_signal(signal.SIGTERM)
                codes = [self.ended(job) for job in (first, second)]
                self.assertEqual([code for code, _, _ in codes], [143, -9] if reason == "loss" else [7, 7], codes)
                self.assertEqual(len(self.lines_of("saved")), saves + (reason == "loss"), codes)

    def test_what_a_scheduler_leaves_it(self):
        self.script("#!/bin/sh\ntrap '' TERM\necho ready >> ready\nwhile :; do sleep 0.05; done\n")
        environment = {**self.environment, "SLURM_JOB_ID": "7"}
        with self.subTest("unknown"):
            job = self.start_ready(lines=1, env=environment)
            job.send_signal(signal.SIGTERM)
            line = wait_for(lambda: next((line for line in job.stderr if "grace=" in line), None), "the stop")
            self.assertRegex(line, r"grace=2[45](\.\d)?s")
            for pid in processes_marked(self.mark):
                if pid != job.pid:
                    kill(pid)
            self.ended(job)
        with self.subTest("told"):
            (self.folder / "ready").unlink()
            job = self.start_ready("--shutdown-timeout", "600", "--kill-after", "1500ms", lines=1, env=environment)
            job.send_signal(signal.SIGTERM)
            code, _, err = self.ended(job)
            self.assertEqual(code, 75, err)
            self.assertIn("killed by SIGKILL", err)
            self.assertIn("--shutdown-timeout 600 s: after a signal to muster the workers have 1", err)

    def test_saving_after_a_notice_and_the_stop_fit_into_what_a_scheduler_leaves(self):
        self.script("#!/bin/sh\ntrap '' USR1\ntrap 'echo asked >> asked; exit 0' TERM\necho ready >> ready\n"
                    "while :; do sleep 0.02; done\n")
        job = self.start_ready("--kill-after", 6, "--preempt-signal", "USR1", "--report", "end.json", lines=1,
                               env={**self.environment, "SLURM_JOB_ID": "7"})
        job.send_signal(signal.SIGTERM)
        code, _, err = self.ended(job)
        self.assertEqual(code, 75, err)
        self.assertEqual(self.lines_of("asked"), ["asked"])  # It has a grace after the saving.
        self.assertNotIn("stuck", err)
        self.assertTrue((self.folder / "end.json").exists())

    def test_one_early_success_ends_the_others_where_that_is_wanted(self):
        self.script("#!/bin/sh\n[ $RANK = 1 ] && exit 0\nexec sleep 1000\n")
        code, _, err = self.run_job("--success-skew", "300ms", "--nproc-per-node", 3, "worker.sh")
        self.assertEqual(code, 1)
        self.assertIn("rank 0 did not end", err)
        self.assertIn("it still runs, while rank 1 exited with 0", err)


class Orphans(StoppingTest):
    def hold_lock(self):
        return "(setsid sh -c 'exec 8> lock; flock 8; echo held >> ready; exec sleep 1000' &)\n"

    def lock_is_free(self):
        return subprocess.run(["flock", "-n", str(self.folder / "lock"), "true"]).returncode == 0

    def test_a_double_forked_child_in_a_session_of_its_own(self):
        self.script("#!/bin/sh\n" + self.hold_lock() + "exec sleep 1000\n")
        job = self.start_ready(lines=1)
        self.assertFalse(self.lock_is_free())
        job.send_signal(signal.SIGINT)
        self.assertEqual(self.ended(job)[0], 130)
        self.assertTrue(self.lock_is_free())

    def test_fifty_that_ignore_everything_are_gone_before_the_next_attempt(self):
        self.script("""#!/bin/sh
if [ $TORCHELASTIC_RESTART_COUNT = 1 ]; then
  for pid in $(cat pids); do kill -0 $pid 2> /dev/null && echo $pid >> alive; done
  exit 0
fi
mkfifo pipe
exec 7<> pipe
i=0
while [ $i -lt 50 ]; do
  sh -c 'trap "" HUP TERM; echo $$ >> pids; while :; do echo x >&7; done' &
  i=$((i + 1))
done
while [ "$(cat pids 2> /dev/null | wc -l)" -lt 50 ]; do sleep 0.01; done
kill -KILL $$
""")
        code, _, err = self.run_job("--max-restarts", 1, "--shutdown-timeout", 2, "worker.sh")
        self.assertEqual(code, 0, err)
        self.assertEqual(self.lines_of("alive"), [])
        self.assertEqual(len(self.lines_of("pids")), 50)

    def test_a_worker_whose_children_fork_as_fast_as_they_can(self):
        self.script("#!/bin/sh\ncat > bomb.sh <<'END'\ntrap '' TERM\n[ -e ready ] || echo ready >> ready\n"
                    "sleep 0.01\nexec setsid sh -c 'sh bomb.sh & sleep 0.01'\nEND\n"
                    "for i in 1 2 3 4; do sh bomb.sh & done\nexec sleep 1000\n")
        job = self.start_ready("--shutdown-timeout", "200ms", lines=1)
        job.send_signal(signal.SIGTERM)
        self.assertEqual(self.ended(job)[0], 143)

    def test_after_many_restarts_a_worker_still_lives_as_long_as_its_agent(self):
        # A parent-death signal would come early from a thread that ends, and late from one that does not fork.
        self.script("#!/bin/sh\n[ $TORCHELASTIC_RESTART_COUNT -lt 50 ] && exit 1\n"
                    "echo $$ > pid; echo ready >> ready\nexec sleep 1000\n")
        job = self.start_ready("--max-restarts", "50", "--log-level", "error", lines=1)
        self.assertIsNone(job.poll())
        (agent,) = [int(pid) for pid in
                    pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()]
        os.kill(agent, signal.SIGKILL)
        self.assertEqual(self.ended(job)[0], 75)

    def test_end_with_the_process_that_started_the_launcher_where_that_is_wanted(self):
        for flags, ends in ((["--die-with-parent"], True), ([], False)):
            with self.subTest(flags=flags):
                (self.folder / "ready").unlink(missing_ok=True)
                self.script(SLEEPER)
                parent = self.start(*flags, "worker.sh", wrap=("sh", "-c", '"$@" & wait', "sh"))
                wait_for(lambda: self.lines_of("ready"), "the worker to be ready")
                parent.kill()
                parent.wait(PATIENCE)
                if ends:
                    wait_for(lambda: not processes_marked(self.mark), "all to end with the parent")
                else:
                    children = [pid for pid in processes_marked(self.mark)]
                    self.assertGreaterEqual(len(children), 3)
                    launcher = min(children)
                    os.kill(launcher, signal.SIGTERM)

    @needs_root
    def test_leave_no_zombies_where_the_launcher_is_the_first_process(self):
        self.script("#!/bin/sh\ni=0\nwhile [ $i -lt 300 ]; do (sleep 0.01 &); i=$((i + 1)); done\n"
                    "echo ready >> ready\nexec sleep 1000\n")
        job = self.start_ready(lines=1, wrap=("unshare", "--pid", "--fork", "--mount-proc", "--kill-child"))
        (keeper,) = [int(pid) for pid in
                     pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()]
        (agent,) = [int(pid) for pid in pathlib.Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()]
        children = lambda: pathlib.Path(f"/proc/{agent}/task/{agent}/children").read_text().split()
        wait_for(lambda: len(children()) == 1, "all orphans to be reaped")
        os.kill(keeper, signal.SIGTERM)
        self.assertEqual(self.ended(job)[0], 143)

    @needs_root
    def test_processes_of_another_namespace_are_let_alone_although_proc_shows_them(self):
        """/proc is the outer one's: the agent's number there is another process's, which has children, too."""
        self.script("#!/bin/sh\n(setsid sleep 1000 &)\nexit 0\n")
        bystander = self.folder / "bystander.sh"
        bystander.write_text("trap 'echo hit >> hits' TERM\necho ready >> ready\nwhile :; do sleep 0.02; done\n")
        outer = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c",
                 f"sh {bystander} & sh -c 'sh {bystander} & sh {bystander} & wait' & "
                 "while [ \"$(cat ready 2> /dev/null | wc -l)\" -lt 3 ]; do sleep 0.01; done; "
                 'unshare --pid --fork --kill-child "$@"; exit $?', "sh")
        job = self.start("--drain-timeout", "200ms", "--shutdown-timeout", 1, "worker.sh", wrap=outer)
        _, _, err = self.ended(job)
        self.assertEqual(self.lines_of("hits"), [])
        self.assertIn("/proc does not show the processes of this namespace", err)

    def test_others_that_block_for_ever_do_not_outlive_a_failure(self):
        self.script("#!/bin/sh\n[ $RANK = 3 ] && exit 9\nmkfifo never.$RANK\nread line < never.$RANK\n")
        code, _, err = self.run_job("--nproc-per-node", 4, "worker.sh")
        self.assertEqual(code, 9, err)

    def test_the_rounds_cgroup_goes_with_it(self):
        """Where one can be made, the worker is in it, and nothing is left of it."""
        folders = lambda: [found for root in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified")
                           for found in pathlib.Path(root).glob("**/muster-*-*")]
        before = set(folders())
        self.script("#!/bin/sh\ncat /proc/self/cgroup > cgroup\necho ready >> ready\nexec sleep 1000\n")
        for victim in ("nobody", "agent"):
            with self.subTest(victim):
                (self.folder / "ready").unlink(missing_ok=True)
                job = self.start_ready(lines=1)
                (agent,) = [int(pid) for pid in
                            pathlib.Path(f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()]
                if not self.surroundings:  # An older kernel starts no process in one.
                    if not any(f"-{agent}-" in found.name for found in folders()):
                        self.skipTest("no cgroup of v2 that we may write to")
                    self.assertIn(f"muster-{agent}-1", (self.folder / "cgroup").read_text())
                if victim == "agent":
                    os.kill(agent, signal.SIGKILL)
                else:
                    job.send_signal(signal.SIGTERM)
                self.ended(job)
                self.assertEqual([found for found in folders() if found not in before and f"-{agent}-" in found.name], [])


class Descriptors(StoppingTest):
    @unittest.skipIf(SANITIZED or not shutil.which("valgrind"), "needs valgrind, and no sanitizer")
    def test_none_is_left_open(self):
        self.script("#!/bin/sh\necho out; echo err >&2\n[ $TORCHELASTIC_RESTART_COUNT = 1 ] || exit 3\n"
                    "echo ready >> ready\nexec sleep 1000\n")
        job = self.start_ready("--nproc-per-node", 2, "--max-restarts", 1, "--tee", 1, "--redirects", 2, "--log-dir", "logs",
                               lines=2, wrap=("valgrind", "--track-fds=yes", f"--log-file={self.folder}/valgrind.%p"))
        job.send_signal(signal.SIGTERM)
        self.assertEqual(self.ended(job)[0], 143)
        reports = [text for text in (path.read_text() for path in self.folder.glob("valgrind.*"))
                   if "FILE DESCRIPTORS:" in text]
        self.assertGreaterEqual(len(reports), 2)  # Of keeper and agent.
        for text in reports:
            opened = re.findall(r"Open (?:file descriptor|AF_).*\n==\d+==\s+(.*)", text)
            self.assertEqual([how for how in opened if "inherited from parent" not in how], [], text)


@contextlib.contextmanager
def freezer():
    """A cgroup (v1) that holds a process in uninterruptible sleep, out of reach of SIGKILL."""
    folder = pathlib.Path(f"/sys/fs/cgroup/freezer/muster-test-{os.getpid()}")
    try:
        folder.mkdir()
    except OSError as error:
        raise unittest.SkipTest(f"no freezer of cgroup v1 that we may write to: {error}") from None
    try:
        yield folder
    finally:
        (folder / "freezer.state").write_text("THAWED")
        wait_for(lambda: not (folder / "cgroup.procs").read_text(), "the freezer to be empty")
        folder.rmdir()


@needs_root
class Uninterruptible(StoppingTest):
    def test_a_worker_in_the_kernels_hands_blocks_nobody_and_is_named(self):
        self.script("#!/bin/sh\necho $$ > pid.$RANK\necho ready >> ready\n"
                    "if [ $RANK = 1 ]; then while [ ! -e fail ]; do sleep 0.01; done; exit 3; fi\nexec sleep 1000\n")
        with freezer() as folder:
            job = self.start_ready("--nproc-per-node", 2, "--max-restarts", 3, "--shutdown-timeout", 1,
                                   "--report", "end.json", lines=2)
            stuck = self.lines_of("pid.0")[0]
            (folder / "cgroup.procs").write_text(stuck)
            (folder / "freezer.state").write_text("FROZEN")
            wait_for(lambda: (folder / "freezer.state").read_text() == "FROZEN\n", "it to be frozen")
            (self.folder / "fail").touch()
            job.wait(PATIENCE)
        code, _, err = self.ended(job)  # The frozen one has the streams open as well.
        self.assertEqual(code, 3, err)
        self.assertIn("workers stuck: SIGKILL does not end 1 process", err)
        self.assertRegex(err, rf"could not be killed: .*{stuck}")
        self.assertNotIn("restarting", err)
        self.assertEqual(json.loads((self.folder / "end.json").read_text())["survivors"], [int(stuck)])


def load_tests(loader, tests, _pattern):
    """Each of them MUSTER_REPEAT times, where that is set."""
    if "MUSTER_REPEAT" not in os.environ:
        return tests
    cases = (WhoIsAsked, HowLong, Orphans, Descriptors, Uninterruptible)
    return unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in cases * int(os.environ["MUSTER_REPEAT"]))


if __name__ == "__main__":
    unittest.main()
