"""What goes wrong around a job, each from a real kernel event: one clear message, the right exit code, nothing left."""

import contextlib
import os
import pathlib
import signal
import socket
import struct
import subprocess
import unittest

from cgroups import cgroup, inside
from job import JobTest, PATIENCE, SANITIZED, needs_root, processes_marked, wait_for

MIB = 1024 * 1024


class Usage(JobTest):
    def refused(self, *arguments, code=2):
        got, out, err = self.run_job(*arguments)
        self.assertEqual((got, out), (code, ""), err)
        return err.rstrip("\n").split("\n")[-1]

    def test_exits_2_and_says_what_is_wrong(self):
        self.script("#!/bin/sh\nexit 0\n")
        self.script("#!/bin/sh\n", "plain.sh", 0o644)
        self.script("#!/no/such/interpreter\n", "lost.sh")
        (self.folder / "folder").mkdir()
        for arguments, *words in (
            (["missing.py"], "missing.py"),
            (["plain.sh"], "plain.sh", "execut"),
            (["lost.sh"], "/no/such/interpreter"),
            (["folder"], "folder"),
            (["--nproc-per-node", "0", "worker.sh"], "--nproc-per-node", "0"),
            (["--nproc-per-node", "-1", "worker.sh"], "--nproc-per-node", "-1"),
            (["--nproc-per-node", "many", "worker.sh"], "--nproc-per-node", "many"),
            (["--max-restarts=-1", "worker.sh"], "--max-restarts", "-1"),
            (["--no-such-flag", "worker.sh"], "--no-such-flag"),
            (["--nproc-per-nod3", "2", "worker.sh"], "--nproc-per-nod3"),
            (["--master-port", "70000", "worker.sh"], "--master-port", "70000"),
            ([],),
        ):
            with self.subTest(arguments):
                last = self.refused(*arguments)
                self.assertTrue(last.startswith("muster: error: "), last)
                for word in words:
                    self.assertIn(word, last)

    def test_a_program_that_the_kernel_refuses(self):
        # Executable, but no program: only exec can tell.
        (self.folder / "noise").write_bytes(b"\x7fELF" + bytes(60))
        (self.folder / "noise").chmod(0o755)
        code, _, err = self.run_job("--nproc-per-node", 2, "--max-restarts", 3, "./noise")
        self.assertEqual(code, 2)
        self.assertIn("noise: Exec format error", err)
        self.assertNotIn("restarting", err)


class Ports(JobTest):
    def test_a_busy_port_names_its_holder(self):
        self.script("#!/bin/sh\nexit 0\n")
        with socket.create_server(("127.0.0.1", 0)) as busy:
            port = busy.getsockname()[1]
            code, _, err = self.run_job("--master-port", port, "worker.sh")
            again, _, _ = self.run_job("--master-port", port, "--redirects", 3, "--log-dir", "logs", "worker.sh")
        self.assertEqual((code, again), (1, 1))
        self.assertFalse((self.folder / "logs").exists(), "nothing is made before the port is ours")
        self.assertIn(f"127.0.0.1:{port}: Address already in use", err)
        self.assertIn("--master-port", err)
        self.assertIn(f"held by process {os.getpid()} (", err)

    def test_a_fixed_port_is_free_again_after_a_restart_and_after_the_job(self):
        self.script("#!/bin/sh\necho $MASTER_PORT >> ports\n[ $TORCHELASTIC_RESTART_COUNT = 2 ]\n")
        port = self.free_port()
        for _ in range(2):
            self.assertEqual(self.run_job("--master-port", port, "--max-restarts", 2, "worker.sh")[0], 0)
        self.assertEqual(self.lines_of("ports"), [str(port)] * 6)


@needs_root
class Folders(JobTest):
    def mounted(self, options):
        """Runs what follows in a mount namespace where ./logs is a small tmpfs."""
        (self.folder / "logs").mkdir()
        return ("unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=64k tmpfs logs && {options} && exec "$@"', "sh")

    def test_a_read_only_log_folder(self):
        self.script("#!/bin/sh\nexit 0\n")
        code, _, err = self.run_job("--log-dir", "logs", "worker.sh", wrap=self.mounted("mount -o remount,ro logs"))
        self.assertEqual(code, 2)
        self.assertRegex(err, r"muster: error: --log-dir: make folder \S+/logs/\S+: Read-only file system\n$")

    def test_a_full_log_folder_costs_the_log_not_the_job(self):
        self.script("#!/bin/sh\nhead -c 200000 /dev/zero | tr '\\0' 'x'\necho end >&2\n")
        code, out, err = self.run_job("--tee", "1", "--log-dir", "logs", "worker.sh", wrap=self.mounted("true"))
        self.assertEqual(code, 0, err)
        self.assertEqual(out.count("x"), 200000)
        self.assertRegex(err, r"log lost: \S+/stdout.log can't be written any more \(No space left on device\)")

    def test_a_log_folder_that_is_full_at_the_start(self):
        self.script("#!/bin/sh\nexit 0\n")
        code, _, err = self.run_job("--log-dir", "logs", "worker.sh",
                                    wrap=self.mounted("mount -o remount,nr_inodes=1 logs"))
        self.assertEqual(code, 2)
        self.assertIn("--log-dir: make folder", err)
        self.assertIn("No space left on device", err)


@needs_root
class OtherUsers(JobTest):
    def test_each_has_temporary_folders_of_its_own(self):
        self.keeps_temporary = True
        self.temporary.chmod(0o1777)
        self.folder.chmod(0o755)
        for user in (0, 65534):
            code, _, err = self.run_job("--redirects", 1, "--no-python", "/bin/true",
                                        wrap=("setpriv", f"--reuid={user}", "--clear-groups"))
            self.assertEqual(code, 0, err)
        self.assertEqual(len(list(self.temporary.glob("muster_*"))), 2)


class Limits(JobTest):
    def reads_kernel_log(self):
        return subprocess.run([*self.surroundings, "sh", "-c", ": < /dev/kmsg"], capture_output=True).returncode == 0

    def test_more_workers_than_the_system_lets_start(self):
        self.script("#!/bin/sh\nexec sleep 1000\n")
        with cgroup("pids", 12) as folder:
            code, _, err = self.run_job("--nproc-per-node", 20, "--max-restarts", 1, "worker.sh", wrap=inside(folder))
        self.assertEqual(code, 1)
        self.assertRegex(err, rf"rank \d+ could not be started")
        self.assertRegex(err, rf"Resource temporarily unavailable; the limit pids.max of cgroup /{folder.name} is reached \(12\)")
        self.assertIn("1 of 1 used", err)  # Some had started: the limit may have been somebody else's for a moment.

    def test_too_few_descriptors_are_named_wherever_they_run_out(self):
        # What UndefinedBehaviorSanitizer asks the kernel takes a descriptor, which it then misses.
        for limit in range(40 if SANITIZED else 4, 64):
            code, _, err = self.run_job("/bin/true", wrap=["prlimit", f"--nofile={limit}:{limit}"])
            if code == 0:
                break
            self.assertEqual(code, 1, err)
            self.assertIn(f"the limit on open files (ulimit -n) is {limit}", err)
            self.assertNotIn("killed by", err)
        if not SANITIZED:
            self.assertLess(limit, 32)  # So few are enough for one worker.
            self.assertGreater(limit, 12)

    def test_an_out_of_memory_kill_is_told_from_any_other(self):
        self.script("""import os, time
if os.environ["RANK"] == "1":
    hoard = []
    while True:
        hoard.append(bytearray(os.urandom(1)) * (1024 * 1024))
time.sleep(1000)
""", "hoard.py", 0o644)
        self.environment["PYTHON_EXEC"] = "/usr/bin/python3"
        limit = 300 * MIB  # Enough that the worker is the largest, also beside launchers with sanitizers.
        with cgroup("memory", limit) as folder:
            code, _, err = self.run_job("--nproc-per-node", 2, "hoard.py", wrap=inside(folder))
        self.assertEqual(code, 137, err)
        self.assertRegex(err, r"rank 1 was killed by SIGKILL")
        self.assertRegex(err, rf"killed by the kernel for memory: .*; cgroup /{folder.name} has a limit of 300 MiB")
        self.assertIn("Killed process" if self.reads_kernel_log() else "counts a kill", err)

    def test_a_kill_by_hand_is_no_out_of_memory_kill_whatever_else_died_in_the_cgroup(self):
        self.script("#!/bin/sh\necho ready > ready.new; mv ready.new ready\nexec sleep 1000\n")
        hoard = "x = []\nwhile True: x.append(bytearray(1 << 20))"
        if not self.reads_kernel_log():
            self.skipTest("without the kernel's log the counter is all there is")
        with cgroup("memory", (500 if SANITIZED else 200) * MIB) as folder:
            job = self.start("worker.sh", wrap=inside(folder))
            wait_for(lambda: (self.folder / "ready").exists(), "the worker to start")
            subprocess.run([*inside(folder), "/usr/bin/python3", "-c", hoard], env=self.environment, check=False,
                           timeout=PATIENCE)
            (worker,) = [pid for pid in processes_marked(self.mark) if b"\0RANK=0" in
                         pathlib.Path(f"/proc/{pid}/environ").read_bytes()]
            os.kill(worker, signal.SIGKILL)
            _, err = job.communicate(timeout=PATIENCE)
        self.assertEqual(job.returncode, 137)
        self.assertNotIn("for memory", err)


class StoreConnections(JobTest):
    def test_that_use_up_the_descriptors_keep_nobody_from_being_killed(self):
        self.environment["PYTHON_EXEC"] = "/usr/bin/python3"
        self.script("""import os, signal, socket, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.environ["RANK"] == "0":
    while not os.path.exists("flooded"):
        time.sleep(0.01)
    sys.exit(3)
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
held = [socket.create_connection(address) for _ in range(120)]
open("flooded", "w").close()
time.sleep(1000)
""", "flood.py", 0o644)
        code, _, err = self.run_job("--nproc-per-node", 2, "--shutdown-timeout", 1, "flood.py",
                                    wrap=("sh", "-c", 'ulimit -n 128; exec "$@"', "sh"))
        self.assertEqual(code, 3, err)
        self.assertNotIn("stuck", err)


class StoreClients(JobTest):
    """What strangers send to a job's store costs them their connection, and the job nothing."""

    PINGS = b"\x00\xce\xf7\x85\x3c" + b"\x0d" + struct.pack("<I", 7)

    def test_garbage(self):
        self.script("#!/bin/sh\necho $MASTER_PORT > port.new; mv port.new port\nwhile [ ! -e done ]; do sleep 0.05; done\n")
        job = self.start("worker.sh")
        wait_for(lambda: (self.folder / "port").exists(), "the worker to start")
        port = int((self.folder / "port").read_text())

        def talk(request, reply=b""):
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as client:
                client.sendall(request)
                with contextlib.suppress(ConnectionResetError):
                    got = b""
                    while len(got) < len(reply) or not reply:
                        piece = client.recv(4096)
                        if not piece:
                            return got
                        got += piece
                    return got
            return b""

        huge = struct.pack("<Q", 1 << 63)
        self.assertEqual(talk(b"GET / HTTP/1.1\r\n\r\n"), b"")
        self.assertEqual(talk(bytes(range(200, 256)) * 100), b"")
        self.assertEqual(talk(self.PINGS + b"\x03" + huge), struct.pack("<I", 7))
        self.assertEqual(talk(b"\x03" + huge), b"")
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as half:
            half.sendall(self.PINGS + b"\x01" + struct.pack("<Q", 5) + b"ha")
            self.assertEqual(talk(self.PINGS, struct.pack("<I", 7)), struct.pack("<I", 7))
        (self.folder / "done").touch()
        out, err = job.communicate(timeout=PATIENCE)
        self.assertEqual((job.returncode, out), (0, ""), err)
        self.assertIn("--worker-store torch", err)
        self.assertIn("127.0.0.1", err)


if __name__ == "__main__":
    unittest.main()
