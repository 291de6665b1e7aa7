"""What is told of a failure: its cause, a hint, error files, the report, and the log that Kubernetes reads."""

import datetime
import json
import os
import pathlib
import re
import resource
import signal
import socket
import time
import unittest

from cgroups import cgroup, inside
from job import JobTest, PATIENCE, SANITIZED, needs_root, wait_for

FAILING = """#!/bin/sh
[ $RANK = 1 ] || exec sleep 1000
echo 'OSError: [Errno 28] No space left on device' >&2
exit 7
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def children(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wakes(pid):
    """How often a process went to sleep: each ping and each answer is once."""
    return int(re.search(r"(?m)^voluntary_ctxt_switches:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


class EvidenceTest(JobTest):
    def setUp(self):
        super().setUp()
        self.report = self.folder / "report.json"
        self.parent = self.folder / "parent.json"

    def run_reported(self, *arguments, **options):
        """(exit code, stderr, the report)."""
        code, _, err = self.run_job("--report", self.report, *arguments, **options)
        return code, err, json.loads(self.report.read_text())


class Report(EvidenceTest):
    def test_of_a_success(self):
        self.script("#!/bin/sh\nexit 0\n")
        code, err, report = self.run_reported("--rdzv-id", "seven", "--nproc-per-node", 2, "worker.sh")
        self.assertEqual((code, report["exit_code"], report["cause"], report["job"]), (0, 0, None, "seven"), err)
        self.assertEqual((report["muster_report"], report["attempts"], report["restarts"]), (1, 1, 0))
        began, ended = (datetime.datetime.fromisoformat(report[name].replace("Z", "+00:00"))
                        for name in ("began_at", "ended_at"))
        self.assertLessEqual(began, ended)
        self.assertLess(abs(time.time() - ended.timestamp()), PATIENCE)
        self.assertEqual(sorted(self.temporary.iterdir()), [])

    def test_of_a_failure(self):
        self.script(FAILING)
        before = time.time()
        code, err, report = self.run_reported("--nproc-per-node", 2, "worker.sh")
        self.assertEqual((code, report["exit_code"]), (7, 7), err)
        cause = report["cause"]
        self.assertEqual((cause["rank"], cause["exit_code"], cause["class"]), (1, 7, "worker_error"))
        self.assertEqual(cause["stderr"], ["OSError: [Errno 28] No space left on device"])
        self.assertIn("a disk is full", cause["hint"])
        self.assertRegex(err, r"(?m)^  hint +a disk is full")
        self.assertRegex(err, r"(?m)^  at +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}$")
        ended = datetime.datetime.fromisoformat(cause["ended_at"].replace("Z", "+00:00")).timestamp()
        self.assertTrue(before <= ended <= time.time(), cause["ended_at"])
        self.assertEqual([victim["rank"] for victim in report["victims"]], [0])
        self.assertEqual(report["victims"][0]["signal_name"], "SIGTERM")

    def test_bytes_that_are_no_text_harm_nobody(self):
        self.script("#!/bin/sh\nprintf 'a\\377b\\033[1m\\n' >&2\nexit 1\n")
        _, _, report = self.run_reported("worker.sh")
        self.assertEqual(report["cause"]["stderr"], ["a\N{REPLACEMENT CHARACTER}b\x1b[1m"])

    def test_of_an_error_of_our_own(self):
        self.script("#!/bin/sh\n")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            code, _, report = self.run_reported("--master-port", taken.getsockname()[1], "worker.sh")
        self.assertEqual((code, report["exit_code"], report["left_alone"]), (1, 1, True))
        self.assertIn("Address already in use", report["summary"])

    def test_replaces_what_was_there_and_is_not_the_workers_business(self):
        self.report.write_text("x" * 100000)
        self.script('#!/bin/sh\necho "report ${MUSTER_REPORT-unset}"\n')
        self.environment["MUSTER_REPORT"] = str(self.report)
        code, out, _ = self.run_job("worker.sh")
        self.assertEqual((code, out), (0, "report unset\n"))
        self.assertEqual(json.loads(self.report.read_text())["exit_code"], 0)
        self.assertEqual(list(self.folder.glob("report*")), [self.report])

    def test_a_place_that_cannot_be_written_is_a_usage_error(self):
        self.script("#!/bin/sh\ntouch started\n")
        (self.folder / "file").touch()
        for path, why in (("no/such/report.json", "No such file"), (self.folder, "Is a directory"),
                          ("file/report.json", "Not a directory"), ("-", "is not a file")):
            code, _, err = self.run_job("--report", path, "worker.sh")
            self.assertEqual(code, 2)
            self.assertRegex(err.splitlines()[-1], f"^muster: error: --report: .*(?i:{why})")
        self.environment["MUSTER_REPORT"] = "no/such/report.json"
        self.assertIn("MUSTER_REPORT: no/such", self.run_job("worker.sh")[2])
        self.assertFalse((self.folder / "started").exists())

    def test_a_place_that_is_lost_meanwhile_is_a_warning(self):
        (self.folder / "gone").mkdir()
        self.script("#!/bin/sh\nrmdir gone\nexit 3\n")
        code, _, err = self.run_job("--report", "gone/report.json", "worker.sh")
        self.assertEqual(code, 3)
        self.assertRegex(err, r"(?m)warn.*--report: .*gone/report.json")


def recording(text, code=1):
    """A worker that puts this into its error file."""
    return f"""import os, sys
with open(os.environ["TORCHELASTIC_ERROR_FILE"], "wb") as out:
    out.write({text!r})
print("said on stderr", file=sys.stderr)
sys.exit({code})
"""


NESTED = {"message": {"message": "KeyError: 'x'",
                      "extraInfo": {"py_callstack": "Traceback: recorded\nKeyError: 'x'", "timestamp": "1"}}}


class ErrorFiles(EvidenceTest):
    def run_recording(self, text, *flags, code=1):
        self.environment["TORCHELASTIC_ERROR_FILE"] = str(self.parent)
        self.script(recording(text, code), "train.py", 0o644)
        got, _, err = self.run_job(*flags, "train.py")
        self.assertEqual(got, code, err)
        return err

    def test_nested_is_shown_and_passed_to_the_scheduler_above_with_the_exit_code(self):
        err = self.run_recording(json.dumps(NESTED).encode(), code=9)
        self.assertRegex(err, r"(?m)^  traceback +Traceback: recorded$")
        expected = {"message": {**NESTED["message"], "errorCode": 9}}
        self.assertEqual(json.loads(self.parent.read_text()), expected)

    def test_flat_is_shown_and_passed_unchanged(self):
        self.parent.write_text("old")
        flat = b' {"message": "it broke",  "timestamp": 17}'
        err = self.run_recording(flat)
        self.assertRegex(err, r"(?m)^  traceback +it broke$")
        self.assertEqual(self.parent.read_bytes(), flat)
        self.assertIn(f"replacing the error file {self.parent}", err)

    def test_a_name_that_is_no_text_spoils_nothing(self):
        """Python writes such bytes as halves of pairs of UTF-16."""
        pair, half = "\\ud83d\\ude00", "\\udce9"
        message = '{"message": "pair %s, half %s, slash \\\\udce9"}' % (pair, half)
        self.assertEqual(json.loads(message)["message"], "pair \U0001f600, half \udce9, slash \\udce9")
        err = self.run_recording(message.encode())
        self.assertRegex(err, r"(?m)^  traceback +pair \U0001f600, half \ufffd, slash \\udce9$")
        self.assertNotIn("makes no sense", err)

    def test_what_makes_no_sense_is_said_and_harms_nobody(self):
        for text, why in ((b"{", "not JSON"), (os.urandom(4096), "not JSON"), (b"[" * 100000, "not JSON"),
                          (b'{"message": 5}', "no message"), (b"[1]", "no JSON object"),
                          (b'{"message": "' + b"x" * 2_000_000 + b'"}', "more than 1 MiB")):
            with self.subTest(why):
                err = self.run_recording(text)
                self.assertRegex(err, rf"the error file \S+/error_0_0.json makes no sense: it .*{why}")
                self.assertRegex(err, r"(?m)^  stderr +said on stderr$")
                known = json.loads(self.parent.read_text())["message"]
                self.assertEqual(known["errorCode"], 1)
                self.assertEqual(known["extraInfo"]["py_callstack"], "said on stderr")
                self.assertLess(abs(int(known["extraInfo"]["timestamp"]) - time.time()), PATIENCE)

    def test_without_a_file_the_scheduler_above_is_told_what_is_known(self):
        self.environment["TORCHELASTIC_ERROR_FILE"] = str(self.parent)
        self.script(FAILING)
        code, _, _ = self.run_job("--nproc-per-node", 2, "worker.sh")
        self.assertEqual(code, 7)
        message = json.loads(self.parent.read_text())["message"]
        self.assertEqual(message["errorCode"], 7)
        self.assertIn("rank 1 exited with code 7", message["message"])

    def test_an_error_of_our_own_is_told_above_a_usage_error_and_a_success_are_not(self):
        self.environment["TORCHELASTIC_ERROR_FILE"] = str(self.parent)
        self.script("#!/bin/sh\n")
        self.assertEqual(self.run_job("--no-such-flag", "worker.sh")[0], 2)
        self.assertEqual(self.run_job("worker.sh")[0], 0)
        self.assertFalse(self.parent.exists())
        with socket.create_server(("127.0.0.1", 0)) as taken:
            code, _, _ = self.run_job("--master-port", taken.getsockname()[1], "worker.sh")
        self.assertEqual(code, 1)
        message = json.loads(self.parent.read_text())["message"]
        self.assertEqual(message["errorCode"], 1)
        self.assertIn("Address already in use", message["message"])

    def test_each_node_tells_its_scheduler_the_first_cause_of_the_whole_job(self):
        self.script(recording(json.dumps(NESTED).encode(), 9).replace("import os, sys", """import os, sys, time
if os.environ["RANK"] == "0":
    time.sleep(1000)"""), "train.py", 0o644)
        meet = ("--nnodes", 2, "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{free_port()}")
        jobs, told = [], []
        for rank in (0, 1):
            told.append(self.folder / f"parent.{rank}.json")
            self.environment["TORCHELASTIC_ERROR_FILE"] = str(told[rank])
            host = f"is_host={'false' if rank else 'true'}"
            jobs.append(self.start(*meet, "--node-rank", rank, "--rdzv-conf", host, "train.py"))
        for job in jobs:
            _, err = job.communicate(timeout=PATIENCE)
            self.assertEqual(job.returncode, 9, err)
        of_other, of_cause = (json.loads(file.read_text())["message"] for file in told)
        self.assertEqual(of_cause, {**NESTED["message"], "errorCode": 9})
        self.assertEqual((of_other["message"], of_other["errorCode"]), ("KeyError: 'x'", 9))
        self.assertEqual(of_other["extraInfo"]["py_callstack"], "Traceback: recorded\nKeyError: 'x'")
        self.assertNotEqual(of_other["extraInfo"]["timestamp"], "1")  # When its agent saw it end.

    def test_is_in_a_folder_of_the_jobs_own_that_goes_with_it(self):
        self.script("#!/bin/sh\nstat -c '%a' \"${TORCHELASTIC_ERROR_FILE%/*}\"\necho $TORCHELASTIC_ERROR_FILE\n"
                    "echo '{\"message\": \"it broke\"}' > $TORCHELASTIC_ERROR_FILE\n"
                    "[ $TORCHELASTIC_RESTART_COUNT = 1 ]\n")
        code, out, _ = self.run_job("--max-restarts", 1, "worker.sh")
        self.assertEqual(code, 0)
        first_mode, first, second_mode, second = out.split()
        self.assertEqual((first_mode, second_mode), ("700", "700"))
        self.assertNotEqual(first, second)
        self.assertFalse(pathlib.Path(first).parent.exists())

    def test_with_a_log_folder_it_is_there_and_stays(self):
        self.run_recording(json.dumps(NESTED).encode(), "--log-dir", "logs", code=9)
        (file,) = self.folder.glob("logs/*/attempt_0/0/error.json")
        self.assertEqual(json.loads(file.read_text()), NESTED)

    def test_with_dev_null_for_a_log_folder_there_is_none(self):
        self.script('#!/bin/sh\necho "file:$TORCHELASTIC_ERROR_FILE"\n')
        self.assertEqual(self.run_job("--log-dir", "/dev/null", "worker.sh")[:2], (0, "file:\n"))


class Victims(EvidenceTest):
    def test_a_faked_early_time_and_a_reported_loss_hide_no_cause(self):
        self.script("""import json, os, signal, sys, time
rank = os.environ["RANK"]
if rank == "0":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open("up." + rank, "w") as up:
    up.write(str(os.getpid()))
while not all(os.path.exists(f"up.{other}") and os.path.getsize(f"up.{other}") for other in range(4)):
    time.sleep(0.01)
if rank == "2":
    os._exit(5)
if rank == "0":
    try:
        while True:  # Until it was reaped.
            os.kill(int(open("up.2").read()), 0)
            time.sleep(0.001)
    except ProcessLookupError:
        pass
    with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as out:
        text = "RuntimeError: [gloo] Connection closed by peer"
        json.dump({"message": {"message": text, "extraInfo": {"py_callstack": text, "timestamp": "1000"}}}, out)
    sys.exit(1)
time.sleep(1000)
""", "train.py", 0o644)
        code, err, report = self.run_reported("--nproc-per-node", 4, "train.py")
        self.assertEqual((code, report["cause"]["rank"]), (5, 2), err)
        self.assertEqual([(other["rank"], other["class"]) for other in report["others"]], [(0, "peer_loss")])
        self.assertEqual(sorted(victim["rank"] for victim in report["victims"]), [1, 3])
        self.assertRegex(err, r"(?m)^muster: job \S+ failed after .*: rank 2 exited with code 5")


class WaysToEnd(EvidenceTest):
    ENDS = {"exit 1": 1, "exit 2": 2, "exit 77": 77, "exit 126": 126, "exit 127": 127, "exit 255": 255,
            "exec python3 -c 'raise ValueError(1)'": 1, "kill -ABRT $$": 134, "kill -SEGV $$": 139,
            "kill -KILL $$": 137, "kill -BUS $$": 135, "kill -TERM $$": 143, "kill -PIPE $$": 141}

    def test_each_is_the_exit_code_and_signals_have_names(self):
        for workers in (1, 3):
            for status, code in self.ENDS.items():
                with self.subTest(f"{status}, {workers} workers"):
                    last = workers - 1
                    self.script(f"#!/bin/sh\nulimit -c 0\n[ $RANK = {last} ] || exec sleep 1000\n{status}\n")
                    got, err, report = self.run_reported("--nproc-per-node", workers, "worker.sh")
                    self.assertEqual((got, report["exit_code"], report["cause"]["rank"]), (code, code, last), err)
                    if status.startswith("kill"):
                        name = "SIG" + status.split()[1][1:]
                        self.assertIn(f"was killed by {name}", err)
                        self.assertEqual(report["cause"]["signal_name"], name)
                    else:
                        self.assertEqual(report["cause"]["exit_code"], code)


class CoreDump(EvidenceTest):
    def setUp(self):
        super().setUp()
        pattern = pathlib.Path("/proc/sys/kernel/core_pattern").read_text()
        if pattern.startswith(("|", "/")):
            self.skipTest(f"a core does not go where the worker is, but to {pattern}")
        if resource.getrlimit(resource.RLIMIT_CORE)[1] == 0:
            self.skipTest("the hard limit allows no core")

    def test_is_said_where_one_was_written(self):
        for limit, dumped in (("$(ulimit -Hc)", True), ("0", False)):
            with self.subTest(limit):
                self.script(f"#!/bin/sh\nulimit -c {limit}\nkill -SEGV $$\n")
                code, err, report = self.run_reported("worker.sh")
                self.assertEqual((code, report["cause"]["core_dumped"]), (139, dumped), err)
                self.assertEqual("SIGSEGV (signal 11), core dumped" in err, dumped, err)
                cores = list(self.folder.glob("core*"))
                self.assertEqual(len(cores), int(dumped))
                for core in cores:
                    core.unlink()


class Memory(EvidenceTest):
    @needs_root
    def test_a_node_that_is_killed_as_a_whole_with_its_memory_full_is_said_to_be(self):
        limit = (600 if SANITIZED else 200) * 1024 * 1024
        self.script("""import os, pathlib, sys, time
if os.environ["GROUP_RANK"] == os.environ["FULL"]:
    limit, usage = (int(pathlib.Path(path).read_text()) for path in sys.argv[1:])
    hoard = bytearray(b"x") * (limit - usage - (2 << 20))
    open("full", "w").close()
time.sleep(1000)
""", "fill.py", 0o644)
        self.environment["PYTHON_EXEC"] = "/usr/bin/python3"
        meet = ("--nnodes", 2, "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{free_port()}", "--lease", "2s")
        with cgroup("memory", limit) as folder:
            files = [next(path for path in (folder / v1, folder / v2) if path.exists())
                     for v1, v2 in (("memory.limit_in_bytes", "memory.max"), ("memory.usage_in_bytes", "memory.current"))]
            self.environment["FULL"] = "0"
            log = self.folder / "log"
            with open(log, "w", encoding="utf-8") as out:
                survivor = self.start(*meet, "--node-rank", 1, "--rdzv-conf", "is_host=true", "fill.py", *files,
                                      stderr=out)
            lost = self.start(*meet, "--node-rank", 0, "--rdzv-conf", "is_host=false", "fill.py", *files,
                              wrap=inside(folder))
            wait_for(lambda: (self.folder / "full").exists(), "the memory to be full")
            (agent,) = children(lost.pid)
            woken = wakes(agent)
            wait_for(lambda: wakes(agent) > woken + 8, "a ping or more")
            for pid in (folder / "cgroup.procs").read_text().split():  # As the kernel does it to a whole group.
                os.kill(int(pid), signal.SIGKILL)
            wait_for(lambda: "was lost: its lease ended" in log.read_text(), "the node's loss to be told")
            survivor.terminate()
            survivor.wait(PATIENCE)
        self.assertRegex(log.read_text(), r"; probably killed for memory as a whole: 0\.\d of 0\.\d GiB were in use")


class Hints(EvidenceTest):
    @needs_root
    def test_a_bus_error_from_a_small_shared_memory_is_explained(self):
        self.script("""import mmap
with open("/dev/shm/block", "w+b") as block:
    block.truncate(16 << 20)
    room = mmap.mmap(block.fileno(), 0)
room[:] = bytes(16 << 20)
""", "train.py", 0o644)
        self.environment["PYTHON_EXEC"] = "/usr/bin/python3"
        small = 'ulimit -c 0; mount -t tmpfs -o size=4m small /dev/shm && exec "$@"'
        code, err, report = self.run_reported("train.py", wrap=("unshare", "-m", "sh", "-c", small, "sh"))
        self.assertEqual(code, 135, err)
        self.assertRegex(report["cause"]["hint"], r"^/dev/shm has 4 MiB, .*--shm-size")

    def test_what_a_real_python_says_is_known(self):
        for text, known in (("import no_such_module", "PYTHON_EXEC"), ("open('/dev/full', 'w').write('x' * 99999)", "disk"),
                            ("import socket\na = socket.create_server(('', 0))\nsocket.create_server(a.getsockname())", "port"),
                            ("import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))\nopen('/')", "ulimit -n"),
                            ("bytearray(1 << 60)", "memory did not suffice")):
            with self.subTest(known):
                self.environment["PYTHON_EXEC"] = "/usr/bin/python3"
                self.script(text, "train.py", 0o644)
                _, err, report = self.run_reported("train.py")
                self.assertIn(known, report["cause"].get("hint", ""), err)


class TerminationLog(EvidenceTest):
    # A /dev of its own, with what a pod finds there.
    POD = """set -e
mkdir dev dev/shm
for name in null zero full random urandom; do : > dev/$name; mount --bind /dev/$name dev/$name; done
: > dev/termination-log
mount --rbind dev /dev
"$@" || echo "code $?"
cat /dev/termination-log > termination-log
"""

    def run_in_pod(self, text):
        self.script(text)
        code, out, err = self.run_job("--nproc-per-node", 2, "worker.sh",
                                      wrap=("unshare", "-m", "sh", "-c", self.POD, "sh"))
        self.assertEqual(code, 0, err)
        return out, err, (self.folder / "termination-log").read_text()

    @needs_root
    def test_gets_the_closing_block_of_a_failure(self):
        out, err, log = self.run_in_pod(FAILING)
        self.assertEqual(out, "code 7\n")
        self.assertEqual(log, err[err.index("muster: job"):])

    @needs_root
    def test_gets_the_beginning_of_a_long_one(self):
        _, err, log = self.run_in_pod(
            "#!/bin/sh\ni=0\nwhile [ $i -lt 20 ]; do printf '%0900d\\n' $i >&2; i=$((i+1)); done\nexit 7\n")
        block = err[err.index("muster: job"):]
        self.assertGreater(len(block), 4096)
        self.assertTrue(block.startswith(log))
        self.assertTrue(log.endswith("\n") and 3000 < len(log) <= 4096, len(log))

    @needs_root
    def test_stays_empty_after_a_success(self):
        self.assertEqual(self.run_in_pod("#!/bin/sh\n")[2], "")


if __name__ == "__main__":
    unittest.main()
