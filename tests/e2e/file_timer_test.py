#!/usr/bin/python3
"""PyTorch's file timer: what a worker set and did not release in time ends that worker, and nobody else."""

import json
import pathlib
import subprocess
import unittest

from job import PATIENCE, JobTest, kill, wait_for
from torch_harness import client

CLIENT = """import json, os, subprocess, sys, time

def request(after, pid=None, scope="step", signal=9):
    line = {"version": 1, "pid": pid or os.getpid(), "scope_id": scope, "signal": signal,
            "expiration_time": -1 if after is None else time.time() + after}
    with open(os.environ["TORCHELASTIC_TIMER_FILE"], "w") as pipe:
        pipe.write(json.dumps(line) + "\\n")

"""


class FileTimerTest(JobTest):
    def setUp(self):
        super().setUp()
        self.pipe = self.folder / "timer"
        self.environment.update(TORCHELASTIC_ENABLE_FILE_TIMER="1", TORCHELASTIC_TIMER_FILE=str(self.pipe),
                                PYTHON_EXEC="/usr/bin/python3")


class Expiry(FileTimerTest):
    def run_client(self, text, *flags, code=0):
        """(stderr, the report) of a job whose workers run this."""
        self.script(CLIENT + text, "train.py", 0o644)
        report = self.folder / "report.json"
        got, _, err = self.run_job("--report", report, *flags, "train.py")
        self.assertEqual(got, code, err)
        self.assertFalse(self.pipe.exists())
        return err, json.loads(report.read_text())

    def test_an_expired_timer_ends_that_worker_as_its_own_failure(self):
        err, report = self.run_client("""
if os.environ["RANK"] == "1":
    request(0.1)
time.sleep(1000)
""", "--nproc-per-node", 3, code=137)
        cause = report["cause"]
        self.assertEqual((cause["rank"], cause["class"], cause["signal_name"]), (1, "worker_error", "SIGKILL"))
        self.assertRegex(cause["detail"], r"^the file timer 'step' of 0\.\d s expired$")
        self.assertEqual(sorted(victim["rank"] for victim in report["victims"]), [0, 2])
        self.assertRegex(err, r"(?m)^  because +the file timer 'step' of 0.\d s expired$")

    def test_without_a_place_of_its_own_the_pipe_is_in_the_jobs_folder(self):
        del self.environment["TORCHELASTIC_TIMER_FILE"]
        _, report = self.run_client("""
print(os.environ["TORCHELASTIC_TIMER_FILE"], file=sys.stderr, flush=True)
request(0)
time.sleep(1000)
""", code=137)
        (pipe,) = report["cause"]["stderr"]
        self.assertIn("the file timer", report["cause"]["detail"])
        self.assertFalse(pathlib.Path(pipe).parent.exists())

    def test_the_group_restarts_after_it(self):
        _, report = self.run_client("""
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    request(0)
    time.sleep(1000)
""", "--nproc-per-node", 2, "--max-restarts", 1)
        self.assertEqual(report["restarts"], 1)

    def start_client(self, text):
        """The job, whose worker ends when it is told to, and the path of its log."""
        self.script(CLIENT + text + """
while not os.path.exists("go"):
    time.sleep(0.01)
""", "train.py", 0o644)
        log = self.folder / "log"
        with open(log, "w", encoding="utf-8") as out:
            return self.start("train.py", stderr=out), log

    def finish(self, job, log):
        (self.folder / "go").touch()
        self.assertEqual(job.wait(PATIENCE), 0, log.read_text())

    def test_neither_a_released_timer_nor_one_without_a_signal_nor_rubbish_ends_anybody(self):
        job, log = self.start_client("""
request(2, scope="released")
request(None, scope="released")
request(2.2, scope="told", signal=0)
with open(os.environ["TORCHELASTIC_TIMER_FILE"], "w") as pipe:
    pipe.write("rubbish\\n")
""")
        wait_for(lambda: "'told'" in log.read_text(), "the later timer")
        self.finish(job, log)
        self.assertRegex(log.read_text(), r"the file timer 'told' of \d\.\d s expired rank=0 pid=\d+\n")
        self.assertNotIn("'released'", log.read_text())
        self.assertIn("a request to the file timer is ignored: it is not JSON", log.read_text())

    def test_another_signal_is_the_users_choice(self):
        _, report = self.run_client("request(0, signal=15)\ntime.sleep(1000)\n", code=143)
        self.assertEqual((report["cause"]["class"], report["cause"]["signal_name"]), ("worker_error", "SIGTERM"))

    def test_a_worker_that_answers_it_by_a_tidy_exit_has_failed_all_the_same(self):
        err, report = self.run_client("import signal\nsignal.signal(15, lambda *_: os._exit(0))\n"
                                      "request(0, signal=15)\ntime.sleep(1000)\n", code=1)
        self.assertEqual(report["cause"]["class"], "worker_error")
        self.assertIn("the file timer 'step' of", err)

    def test_a_process_below_the_worker_gets_the_signal_itself(self):
        _, report = self.run_client("""
child = subprocess.Popen(["sleep", "1000"])
request(0, pid=child.pid, scope="load")
print(child.wait())
sys.exit(3)
""", code=3)
        self.assertEqual(report["cause"]["detail"], "the file timer 'load' of 0.0 s expired")

    def test_who_is_no_worker_is_left_alone(self):
        stranger = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(stranger.wait)
        self.addCleanup(kill, stranger.pid)
        job, log = self.start_client(f"""
for pid in ({stranger.pid}, os.getppid(), 1):
    request(0, pid=pid)
""")
        wait_for(lambda: log.read_text().count("it is no process of a worker, and is left alone") == 3, "three warnings")
        self.assertIsNone(stranger.poll())
        self.finish(job, log)

    def test_a_place_that_cannot_be_is_an_error(self):
        self.script("#!/bin/sh\ntouch started\n")
        self.pipe.write_text("mine")
        code, _, err = self.run_job("worker.sh")
        self.assertEqual(code, 1)
        self.assertRegex(err, r"^muster: error: the file timer \(TORCHELASTIC_TIMER_FILE\): \S+/timer is there already, and "
                              r"is no named pipe\n$")
        self.assertEqual(self.pipe.read_text(), "mine")
        self.environment["TORCHELASTIC_TIMER_FILE"] = str(self.folder / "no/such")
        self.assertRegex(self.run_job("worker.sh")[2], r"make the named pipe \S+/no/such: No such file")
        self.assertFalse((self.folder / "started").exists())

    def test_is_off_unless_it_is_asked_for(self):
        for value in ("", "0", "true"):
            self.environment["TORCHELASTIC_ENABLE_FILE_TIMER"] = value
            self.script('#!/bin/sh\ntest ! -e "$TORCHELASTIC_TIMER_FILE"\n')
            self.assertEqual(self.run_job("worker.sh")[0], 0)


class RealPyTorch(FileTimerTest):
    """Its own client, of both versions."""

    TRAIN = """import os, time
from torch.distributed.elastic import timer
timer.configure(timer.FileTimerClient(os.environ["TORCHELASTIC_TIMER_FILE"]))
with timer.expires(after=60, scope="fine"):
    pass
if os.environ["RANK"] == "1":
    with timer.expires(after=0.3, scope="slow"):
        time.sleep(1000)
time.sleep(1000)
"""

    def check(self, age):
        self.environment["PYTHON_EXEC"] = client(age).python
        self.script(self.TRAIN, "train.py", 0o644)
        report = self.folder / "report.json"
        code, _, err = self.run_job("--nproc-per-node", 2, "--report", report, "train.py")
        self.assertEqual(code, 137, err)
        cause = json.loads(report.read_text())["cause"]
        self.assertEqual((cause["rank"], cause["class"]), (1, "worker_error"))
        self.assertRegex(cause["detail"], r"^the file timer 'slow' of 0\.\d s expired$")

    def test_old(self):
        self.check("old")

    def test_new(self):
        self.check("new")


if __name__ == "__main__":
    unittest.main()
