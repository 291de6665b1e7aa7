"""What a user of muster on one machine sees: environment, exit codes, restarts, signals, output."""

import fcntl
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import unittest

from job import JobTest, MUSTER, PATIENCE, children_of, needs_root, processes_marked, read_terminal, wait_for

SLEEPERS = """#!/bin/sh
echo ready >> ready
exec sleep 1000
"""


class Environment(JobTest):
    def test_of_each_worker(self):
        self.script('#!/bin/sh\nenv -0 > "env.$RANK"\n')
        code, _, err = self.run_job("--nproc-per-node=2", "--max-restarts=3", "--role", "trainer", "--rdzv-id", "job 7",
                                    "worker.sh")
        self.assertEqual(code, 0, err)
        ports, beacons = set(), set()
        for rank in "01":
            entries = (self.folder / f"env.{rank}").read_text().split("\0")[:-1]
            seen = dict(entry.split("=", 1) for entry in entries)
            ports.add(seen["MASTER_PORT"])
            beacons.add(seen["MUSTER_BEACON"])
            private = pathlib.Path(seen["MUSTER_BEACON"]).parent
            inherited = set(self.environment) | {"PWD", "SHLVL", "_", "OLDPWD"}
            expected = {
                "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "LOCAL_SIZE": "2",
                "GROUP_RANK": "0", "GROUP_WORLD_SIZE": "1", "ROLE_NAME": "trainer", "ROLE_RANK": rank,
                "ROLE_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": seen["MASTER_PORT"],
                "TORCHELASTIC_RESTART_COUNT": "0", "TORCHELASTIC_MAX_RESTARTS": "3", "TORCHELASTIC_RUN_ID": "job 7",
                "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_ERROR_FILE": f"{private}/error_0_{rank}.json",
                "TORCH_NCCL_ASYNC_ERROR_HANDLING": "1",
                "OMP_NUM_THREADS": str(max(1, len(os.sched_getaffinity(0)) // 2)),
                "MUSTER_BEACON": seen["MUSTER_BEACON"],
                "PYTHONPATH": str(pathlib.Path(seen["MUSTER_BEACON"]).with_name("python")),
            }
            self.assertEqual({name: value for name, value in seen.items() if name not in inherited}, expected)
        self.assertEqual((len(ports), len(beacons)), (1, 2))
        self.assertRegex(err, r"^muster \S+ info +OMP_NUM_THREADS=\d+ for each worker: .*\n$")

    def test_threads_are_left_alone_for_one_worker_and_where_they_are_set(self):
        self.script('#!/bin/sh\necho "threads ${OMP_NUM_THREADS-unset}"\n')
        self.assertEqual(self.run_job("worker.sh"), (0, "threads unset\n", ""))
        self.environment["OMP_NUM_THREADS"] = "7"
        self.assertEqual(self.run_job("--nproc-per-node=2", "worker.sh"), (0, "threads 7\nthreads 7\n", ""))

    def test_inherited_rank_variables_are_overridden(self):
        self.script('#!/bin/sh\necho "$RANK of $WORLD_SIZE"\n')
        self.environment.update(RANK="9", WORLD_SIZE="99", MASTER_PORT="1")
        code, out, err = self.run_job("worker.sh")
        self.assertEqual((code, out), (0, "0 of 1\n"))
        self.assertRegex(err, r"^muster \S+ info    RANK, WORLD_SIZE, MASTER_PORT: not read, .*\n$")

    def test_open_file_limit_is_the_users_own(self):
        self.script("#!/bin/sh\nulimit -n\n")
        code, out, _ = self.run_job("worker.sh", wrap=("sh", "-c", 'ulimit -S -n 345; exec "$@"', "sh"))
        self.assertEqual((code, out), (0, "345\n"))

    def test_open_file_limit_of_the_launcher_is_raised_to_what_is_allowed(self):
        self.script("#!/bin/sh\nwhile read -r line; do case $line in 'Max open files'*) echo $line ;; esac; done"
                    " < /proc/$PPID/limits\n")
        code, out, _ = self.run_job("worker.sh", wrap=("sh", "-c", 'ulimit -S -n 345; exec "$@"', "sh"))
        soft, hard = out.split()[3:5]
        self.assertEqual(code, 0)
        self.assertEqual(soft, hard)
        self.assertNotEqual(soft, "345")


class ExitCodes(JobTest):
    def test_is_the_first_causes_own(self):
        for status, code in (("exit 1", 1), ("exit 77", 77), ("exit 255", 255), ("kill -SEGV $$", 139),
                             ("kill -KILL $$", 137), ("kill -ABRT $$", 134), ("kill -PIPE $$", 141)):
            with self.subTest(status):
                self.script(f"#!/bin/sh\nulimit -c 0\n[ $RANK = 1 ] || exec sleep 1000\n{status}\n")
                got, _, err = self.run_job("--nproc-per-node", "3", "worker.sh")
                self.assertEqual(got, code, err)
                self.assertRegex(err, r"(?m)^muster: job \S+ failed after .* rank 1 (exited|was killed)")
                if "kill" in status:
                    self.assertIn("SIG" + status.split()[1][1:], err)

    def test_one_failure_of_many_is_enough(self):
        self.script("#!/bin/sh\n[ $RANK = 3 ] && exit 9\nexit 0\n")
        self.assertEqual(self.run_job("--nproc-per-node", "4", "worker.sh")[0], 9)

    def test_a_signal_from_outside_outranks_who_reported_the_loss_first(self):
        # Rank 0 is gone, and the Stop is on its way, before rank 1 dies of what no one of the job sent.
        self.script("""#!/bin/sh
if [ $RANK = 0 ]; then
  while [ ! -e up.1 ]; do sleep 0.01; done
  echo 'RuntimeError: [gloo] Connection closed by peer [127.0.0.1]:1' >&2
  exit 1
fi
trap 'kill -KILL $$' TERM
touch up.1
while :; do sleep 0.01; done
""")
        code, _, err = self.run_job("--nproc-per-node", "2", "worker.sh")
        self.assertEqual(code, 137, err)
        self.assertRegex(err, r"failed after .*: rank 1 was killed by SIGKILL")
        self.assertRegex(err, r"(?m)^  also +rank 0 exited with code 1: it reports the loss of a peer$")


class Restarts(JobTest):
    def test_group_restarts_with_a_fresh_store_until_the_budget_is_used(self):
        self.script("""#!/bin/sh
echo "$TORCHELASTIC_RESTART_COUNT $MASTER_PORT" >> attempts.$RANK
touch up.$RANK.$TORCHELASTIC_RESTART_COUNT
while [ $(ls up.*.$TORCHELASTIC_RESTART_COUNT | wc -l) -lt 2 ]; do sleep 0.01; done
[ $RANK = 1 ] && exit 4
exec sleep 1000
""")
        code, _, err = self.run_job("--nproc-per-node", "2", "--max-restarts", "2", "worker.sh")
        self.assertEqual(code, 4)
        for rank in (0, 1):
            attempts = [line.split() for line in self.lines_of(f"attempts.{rank}")]
            self.assertEqual([count for count, _ in attempts], ["0", "1", "2"])
            self.assertEqual(len({port for _, port in attempts}), 3, "each round has a port of its own")
        self.assertIn("2 of 2 used", err)

    def test_a_job_that_heals_succeeds(self):
        self.script("#!/bin/sh\n[ $TORCHELASTIC_RESTART_COUNT = 1 ] || kill -KILL $$\necho fine\n")
        code, out, err = self.run_job("--max-restarts", "1", "worker.sh")
        self.assertEqual((code, out), (0, "fine\n"), err)
        self.assertNotIn("failed after", err)


class Signals(JobTest):
    def start_sleepers(self, *flags, workers=2, **options):
        self.script(SLEEPERS)
        job = self.start("--nproc-per-node", workers, *flags, "worker.sh", **options)
        wait_for(lambda: len(self.lines_of("ready")) == workers, "the workers to be ready")
        return job

    def test_that_end_a_job_are_passed_on_and_told_by_the_exit_code(self):
        for name in ("TERM", "INT", "HUP", "QUIT"):
            with self.subTest(name):
                (self.folder / "ready").unlink(missing_ok=True)
                self.script(f"""#!/bin/sh
trap 'echo {name} >> got.$RANK; exit 0' {name}
echo ready >> ready
while :; do sleep 0.05; done
""")
                job = self.start("--nproc-per-node", 2, "worker.sh")
                wait_for(lambda: len(self.lines_of("ready")) == 2, "the workers to be ready")
                job.send_signal(getattr(signal, f"SIG{name}"))
                out, err = job.communicate(timeout=PATIENCE)
                self.assertEqual(job.returncode, 128 + getattr(signal, f"SIG{name}"), err)
                self.assertIn(f"got SIG{name} from process {os.getpid()}", err)
                for rank in (0, 1):
                    self.assertEqual(self.lines_of(f"got.{rank}")[-1:], [name])

    def test_usr1_and_usr2_are_for_the_workers_and_the_job_goes_on(self):
        self.script("""#!/bin/sh
trap 'echo USR1 >> got.$RANK' USR1
trap 'echo USR2 >> got.$RANK; exit 0' USR2
echo ready >> ready
while :; do sleep 0.05; done
""")
        job = self.start("--nproc-per-node", 2, "worker.sh")
        wait_for(lambda: len(self.lines_of("ready")) == 2, "the workers to be ready")
        job.send_signal(signal.SIGUSR1)
        wait_for(lambda: len(self.lines_of("got.0")) == 1 and len(self.lines_of("got.1")) == 1, "USR1")
        job.send_signal(signal.SIGUSR2)
        job.communicate(timeout=PATIENCE)
        self.assertEqual(job.returncode, 0)
        self.assertEqual(self.lines_of("got.0"), ["USR1", "USR2"])

    def test_hang_up_that_was_ignored_at_the_start_stays_ignored(self):
        job = self.start_sleepers(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        job.send_signal(signal.SIGHUP)
        job.send_signal(signal.SIGTERM)
        job.communicate(timeout=PATIENCE)
        self.assertEqual(job.returncode, 128 + signal.SIGTERM)

    def test_grace_ends_in_sigkill(self):
        self.script("#!/bin/sh\ntrap '' TERM\necho ready >> ready\nwhile :; do sleep 1000; done\n")
        job = self.start("--nproc-per-node", 2, "--shutdown-timeout", "1", "worker.sh")
        wait_for(lambda: len(self.lines_of("ready")) == 2, "the workers to be ready")
        job.send_signal(signal.SIGTERM)
        _, err = job.communicate(timeout=PATIENCE)
        self.assertEqual(job.returncode, 128 + signal.SIGTERM)
        self.assertIn("killed by SIGKILL", err)

    def test_children_that_the_shell_had_before_it_became_muster_are_left_alone(self):
        self.script("#!/bin/sh\nexit 3\n")
        code, out, _ = self.run_job(wrap=("sh", "-c", 'sleep 1000 >/dev/null 2>&1 & echo $!; exec "$@" worker.sh', "sh"))
        self.assertEqual(code, 3)
        bystander = int(out)
        self.assertIn(bystander, processes_marked(self.mark))
        os.kill(bystander, signal.SIGKILL)

    def test_ends_of_children_are_seen_even_where_their_signal_was_ignored(self):
        self.script("#!/bin/sh\nexit 3\n")
        code, _, _ = self.run_job("worker.sh", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(code, 3)

    @needs_root
    def test_as_the_first_process_of_a_container_it_keeps_no_zombies(self):
        self.script(SLEEPERS)
        job = self.start("worker.sh", wrap=("unshare", "--pid", "--fork", "--mount-proc", "--kill-child"))
        wait_for(lambda: self.lines_of("ready"), "the worker to be ready")
        (keeper,) = children_of(job.pid)
        for _ in range(3):  # As a probe that is run in the container, and leaves something behind.
            subprocess.run(["nsenter", "-t", str(keeper), "-p", "-m", "sh", "-c", "(sleep 0.05 &)"], check=True,
                           env=self.environment, timeout=PATIENCE)
        wait_for(lambda: len(children_of(keeper)) == 1, "the keeper to have its agent only")
        os.kill(keeper, signal.SIGTERM)
        job.communicate(timeout=PATIENCE)
        self.assertEqual(job.returncode, 128 + signal.SIGTERM)

    def test_a_lone_node_that_will_be_taken_away_saves_first(self):
        self.script("#!/bin/sh\ntrap 'echo saved >> saved; exit 0' USR1\necho ready >> ready\n"
                    "while :; do sleep 0.05; done\n")
        noticed = self.folder / "noticed"
        for flags, reason in ((["--preempt-deadline", "20s"], "SIGTERM from process"),
                              (["--preempt-command", f"test -e {noticed} && echo the price rose"], "the price rose")):
            with self.subTest(reason):
                for file in ("ready", "saved"):
                    (self.folder / file).unlink(missing_ok=True)
                job = self.start("--preempt-signal", "USR1", *flags, "--nproc-per-node", 2, "worker.sh")
                wait_for(lambda: len(self.lines_of("ready")) == 2, "the workers to be ready")
                if "--preempt-command" in flags:
                    noticed.touch()
                else:
                    job.send_signal(signal.SIGTERM)
                _, err = job.communicate(timeout=PATIENCE)
                self.assertEqual(job.returncode, 75, err)
                self.assertEqual(self.lines_of("saved"), ["saved"] * 2)
                self.assertRegex(err, f"preemption notice: {reason}")

    def test_terminals_ctrl_c_stops_and_a_second_one_kills(self):
        self.script("#!/bin/sh\ntrap '' INT\necho ready >> ready\nwhile :; do sleep 1000; done\n")
        job, terminal = self.start_on_terminal("--nproc-per-node", 2, "--shutdown-timeout", 600, "worker.sh")
        wait_for(lambda: len(self.lines_of("ready")) == 2, "the workers to be ready")
        os.write(terminal, b"\x03")
        shown = read_terminal(terminal, until=b"got SIGINT from the terminal")
        os.write(terminal, b"\x03")
        shown += read_terminal(terminal)
        self.assertEqual(job.wait(PATIENCE), 128 + signal.SIGINT)
        self.assertIn(b"second Ctrl-C", shown)

    def test_workers_stderr_is_the_terminal_where_ours_is(self):
        self.script("#!/bin/sh\n[ -t 2 ] && echo terminal > seen\n")
        job, _ = self.start_on_terminal("worker.sh")
        self.assertEqual(job.wait(PATIENCE), 0)
        self.assertEqual(self.lines_of("seen"), ["terminal"])


class Output(JobTest):
    def test_is_not_touched_by_default(self):
        self.script("#!/bin/sh\nprintf 'half a line, no newline'\nprintf 'bytes \\377\\000 pass' >&2\n")
        job = subprocess.run([MUSTER, "worker.sh"], cwd=self.folder, env=self.environment, capture_output=True,
                             timeout=PATIENCE)
        self.assertEqual(job.stdout, b"half a line, no newline")
        self.assertEqual(job.stderr, b"bytes \xff\0 pass")

    def test_standard_input_is_inherited(self):
        self.script("#!/bin/sh\ncat\n")
        job = self.start("worker.sh", stdin=subprocess.PIPE)
        self.assertEqual(job.communicate("line\n", timeout=PATIENCE)[0], "line\n")

    def test_nobody_reads_our_stderr_and_the_agent_still_obeys(self):
        self.script("""#!/bin/sh
if [ $RANK = 0 ]; then
  trap 'exit 0' TERM
  touch flooding
  while :; do head -c 65536 /dev/zero | tr '\\0' x >&2; done
fi
while [ ! -e full ]; do sleep 0.01; done
exit 3
""")
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        job = self.start("--nproc-per-node", 2, "--shutdown-timeout", 1, "worker.sh", stderr=writer)
        full = select.poll()
        full.register(writer, select.POLLOUT)
        wait_for(lambda: (self.folder / "flooding").exists() and not full.poll(0), "the pipe to be full")
        os.close(writer)
        (self.folder / "full").touch()
        self.assertEqual(job.wait(PATIENCE), 3)

    def test_the_keepers_death_ends_the_agent_although_nobody_reads_stderr(self):
        self.script("#!/bin/sh\ntouch flooding\nwhile :; do head -c 65536 /dev/zero | tr '\\0' x >&2; done\n")
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        job = self.start("worker.sh", stderr=writer)
        full = select.poll()
        full.register(writer, select.POLLOUT)
        wait_for(lambda: (self.folder / "flooding").exists() and not full.poll(0), "the pipe to be full")
        os.close(writer)
        job.kill()
        job.wait(PATIENCE)
        wait_for(lambda: not processes_marked(self.mark), "every process to end", 10)

    def test_closed_descriptors_are_no_trouble(self):
        self.script("#!/bin/sh\necho out; echo err >&2\n")
        for closed in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
            code, _, _ = self.run_job("worker.sh", wrap=("sh", "-c", f'exec "$@" {closed}', "sh"))
            self.assertEqual(code, 0, closed)

    def test_tee_shows_whole_lines_with_a_prefix_and_fills_files(self):
        self.script("""#!/bin/sh
i=0
while [ $i -lt 200 ]; do
  printf 'part one of %s,' $RANK; printf ' part two of %s\\n' $RANK
  i=$((i + 1))
done
printf 'the end of %s' $RANK
""")
        code, out, _ = self.run_job("--nproc-per-node", 4, "--tee", "3", "--log-dir", "logs", "worker.sh")
        self.assertEqual(code, 0)
        lines = out.split("\n")
        self.assertEqual(lines.pop(), "")
        expected = sorted([f"[default{rank}]:part one of {rank}, part two of {rank}" for rank in range(4)] * 200 +
                          [f"[default{rank}]:the end of {rank}" for rank in range(4)])
        self.assertEqual(sorted(lines), expected)
        for rank in range(4):
            (file,) = self.folder.glob(f"logs/*/attempt_0/{rank}/stdout.log")
            self.assertEqual(file.read_text(), f"part one of {rank}, part two of {rank}\n" * 200 + f"the end of {rank}")

    def test_redirects_by_rank_and_every_attempt_is_kept(self):
        self.script("#!/bin/sh\necho out $RANK $TORCHELASTIC_RESTART_COUNT; echo err $RANK >&2\n"
                    "echo $TORCHELASTIC_ERROR_FILE >> files\ntouch up.$RANK.$TORCHELASTIC_RESTART_COUNT\n"
                    "while [ $(ls up.*.$TORCHELASTIC_RESTART_COUNT | wc -l) -lt 2 ]; do sleep 0.01; done\n"
                    "[ $TORCHELASTIC_RESTART_COUNT = 1 ]\n")
        code, out, err = self.run_job("--nproc-per-node", 2, "--max-restarts", 1, "--redirects", "0:3,1:1", "--log-dir",
                                      "deep/logs", "--rdzv-id", "a/b", "worker.sh")
        self.assertEqual((code, out), (0, ""))
        self.assertIn("err 1\n", err)
        self.assertNotIn("err 0\n", err)
        (job,) = (self.folder / "deep/logs").iterdir()
        self.assertRegex(job.name, r"^a_b_.+_[a-z0-5]{8}$")
        for attempt in (0, 1):
            for rank in (0, 1):
                folder = job / f"attempt_{attempt}/{rank}"
                self.assertEqual((folder / "stdout.log").read_text(), f"out {rank} {attempt}\n")
            self.assertEqual((job / f"attempt_{attempt}/0/stderr.log").read_text(), "err 0\n")
        self.assertEqual(set(self.lines_of("files")),
                         {str(job / f"attempt_{attempt}/{rank}/error.json") for attempt in (0, 1) for rank in (0, 1)})

    def test_redirects_without_a_folder_make_a_temporary_one_and_say_where(self):
        self.keeps_temporary = True
        self.script("#!/bin/sh\necho out\n")
        code, out, err = self.run_job("--redirects", "1", "worker.sh")
        self.assertEqual((code, out), (0, ""))
        folder = pathlib.Path(re.search(r"worker logs in (\S+)", err)[1])
        self.assertEqual(folder.parent, self.temporary)
        self.assertEqual((folder / "attempt_0/0/stdout.log").read_text(), "out\n")

    def test_filter_by_local_rank(self):
        self.script("#!/bin/sh\necho out $RANK; echo err $RANK >&2\n")
        code, out, err = self.run_job("--nproc-per-node", 3, "--local-ranks-filter", "0,2", "worker.sh")
        self.assertEqual(code, 0)
        self.assertEqual(sorted(out.split("\n")), ["", "out 0", "out 2"])
        self.assertNotIn("err 1", err)
        self.assertIn("err 2", err)

    def test_a_grandchild_that_holds_the_streams_open_delays_no_failure(self):
        self.script("#!/bin/sh\n(setsid sleep 1000 &)\nexit 5\n")
        self.assertEqual(self.run_job("--tee", "3", "worker.sh")[0], 5)

    def test_a_reader_that_went_away_costs_the_output_not_the_job(self):
        self.script("#!/bin/sh\ni=0\nwhile [ $i -lt 20000 ]; do echo a line of output; i=$((i+1)); done\ntouch finished\n")
        job = self.start("--tee", "1", "worker.sh")
        job.stdout.readline()
        job.stdout.close()
        job.stdout = None
        _, err = job.communicate(timeout=PATIENCE)
        self.assertEqual(job.returncode, 0, err)
        self.assertTrue((self.folder / "finished").exists())
        self.assertIn("output lost: stdout", err)


    def test_a_slow_reader_loses_nothing_and_keeps_its_pipe_as_it_was(self):
        self.script("#!/bin/sh\ni=0\nwhile [ $i -lt 40 ]; do head -c 99999 /dev/zero | tr '\\0' x; echo; i=$((i+1)); done\n")
        reader, writer = os.pipe()
        job = self.start("--tee", "1", "worker.sh", stdout=writer)
        full = select.poll()
        full.register(writer, select.POLLOUT)
        wait_for(lambda: not full.poll(0), "the pipe to be full")
        self.assertEqual(fcntl.fcntl(writer, fcntl.F_GETFL) & os.O_NONBLOCK, 0)
        os.close(writer)
        with os.fdopen(reader, "rb") as out:
            lines = out.read().split(b"\n")
        self.assertEqual(job.wait(PATIENCE), 0)
        self.assertEqual(b"".join(line.removeprefix(b"[default0]:") for line in lines), b"x" * 99999 * 40)


    def test_a_limit_on_file_sizes_costs_the_output_not_the_job(self):
        self.script("#!/bin/sh\nhead -c 300000 /dev/zero | tr '\\0' x\necho\n")
        code, _, err = self.run_job("--tee", "1", "worker.sh", wrap=("bash", "-c", 'ulimit -f 100; exec "$@" > out', "sh"))
        self.assertEqual(code, 0, err)
        self.assertIn("output lost: stdout can't be written any more (File too large)", err)

    def test_what_cannot_be_printed_is_a_failure(self):
        with open("/dev/full", "w") as full:
            self.assertEqual(self.run_job("--help", stdout=full)[0], 1)


class ClosingBlock(JobTest):
    def test_names_cause_traceback_python_and_victims(self):
        self.script("""import os, time
open(f"up.{os.environ['RANK']}", "w").close()
if os.environ["RANK"] == "2":
    while not all(os.path.exists(f"up.{rank}") for rank in range(3)):
        time.sleep(0.01)
    raise ValueError("bad shape")
time.sleep(1000)
""", "train.py", 0o644)
        code, _, err = self.run_job("--nproc-per-node", 3, "train.py")
        self.assertEqual(code, 1)
        block = err[err.index("muster: job"):]
        self.assertRegex(block, r"^muster: job \S+ failed after \d+\.\d s: rank 2 exited with code 1 \(node 0, local rank 2, pid \d+\)")
        self.assertIn("ValueError: bad shape", block)
        self.assertIn("Traceback (most recent call last):", block)
        self.assertRegex(block, r"(?m)^  python +\S+ \(.+\)$")
        self.assertRegex(block, r"(?m)^  victims +ranks 0-1: killed by SIGTERM \(signal 15\); stopped by muster$")

    def test_a_missing_module_names_the_python_and_why_it_was_chosen(self):
        self.environment["PYTHON_EXEC"] = sys.executable
        self.script("import no_such_module_anywhere\n", "train.py", 0o644)
        code, _, err = self.run_job("train.py")
        self.assertEqual(code, 1)
        self.assertRegex(err, rf"(?m)^  python +{re.escape(sys.executable)} \(.*PYTHON_EXEC.*\)$")
        self.assertIn("the module is not installed for this Python", err)
        _, _, err = self.run_job(sys.executable, "train.py")
        self.assertRegex(err, rf"(?m)^  python +{re.escape(sys.executable)} \(named on the command line\)$")

    def test_takes_the_error_file_that_torch_writes(self):
        self.script("""import json, os, sys
recorded = {"message": {"message": "KeyError: 'x'", "extraInfo": {"py_callstack": "Traceback: recorded\\nKeyError: 'x'", "timestamp": "1"}}}
with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as out:
    json.dump(recorded, out)
sys.exit(1)
""", "train.py", 0o644)
        code, _, err = self.run_job("--log-dir", "logs", "train.py")
        self.assertEqual(code, 1)
        self.assertRegex(err, r"(?m)^  traceback +Traceback: recorded$")


if __name__ == "__main__":
    unittest.main()
