"""musterd and musterctl on one machine, for their tests."""

import signal
import subprocess
import time
import uuid

from job import BUILD, PATIENCE, JobTest

MUSTERD = BUILD / "rendezvous/daemon/musterd"
MUSTERCTL = BUILD / "launcher/ctl/musterctl"
STORE_CLIENT_PING = b"\x00\xce\xf7\x85\x3c" + b"\x0d" + (7).to_bytes(4, "little")  # VALIDATE, PING 7.
AT_ONCE = 8  # Seconds for what takes milliseconds, on a machine that has much else to do.


class DaemonTest(JobTest):
    def setUp(self):
        super().setUp()
        for name in ("MUSTER_TOKEN_FILE", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "STATE_DIRECTORY"):
            self.environment.pop(name, None)
        self.runtime = self.folder / "runtime"
        self.runtime.mkdir(mode=0o700)
        self.state = self.folder / "state"
        self.environment.update({"XDG_RUNTIME_DIR": str(self.runtime), "XDG_STATE_HOME": str(self.state)})

    def launch(self, *arguments, wrap=(), **environment):
        log = self.folder / f"musterd-{uuid.uuid4().hex}.log"
        with log.open("w") as stderr:
            process = subprocess.Popen([*map(str, wrap), str(MUSTERD), *map(str, arguments)], cwd=self.folder, text=True,
                                       env={**self.environment, **environment}, stdout=subprocess.PIPE, stderr=stderr)
        self.addCleanup(self.end_well, process)
        process.said = lambda: log.read_text(errors="replace")
        return process

    def end_well(self, process):
        """What still serves at the end of a test must be able to end as it should."""
        if process.poll() is None:
            self.stop(process)
        process.stdout.close()

    def musterd(self, *arguments, listen="127.0.0.1:0", **options):
        """A server that serves; its port is in `port`, what it says is in `said()`."""
        process = self.launch("--listen", listen, *arguments, **options)
        line = process.stdout.readline()
        self.assertRegex(line, r"^musterd listening on \S+:\d+\n$", process.said())
        process.port = int(line.rsplit(":", 1)[1])
        return process

    def refused(self, *arguments, code=2, **options):
        """musterd does not start; returns the last line of what it says."""
        process = self.launch(*arguments, **options)
        out, _ = process.communicate(timeout=PATIENCE)
        err = process.said()
        self.assertEqual((process.returncode, out), (code, ""), err)
        last = err.rstrip("\n").split("\n")[-1]
        self.assertTrue(last.startswith("musterd: error: "), err)
        return last

    def stop(self, process, number=signal.SIGTERM):
        began = time.monotonic()
        process.send_signal(number)
        self.assertEqual(process.wait(timeout=PATIENCE), 0, process.said())
        self.assertLess(time.monotonic() - began, AT_ONCE)

    def ctl(self, *arguments, **environment):
        return subprocess.run([str(MUSTERCTL), *map(str, arguments)], cwd=self.folder, text=True, capture_output=True,
                              env={**self.environment, **environment}, timeout=PATIENCE, check=False)

    def asked(self, *arguments, **environment):
        result = self.ctl(*arguments, **environment)
        self.assertEqual((result.returncode, result.stderr), (0, ""), arguments)
        return result.stdout

    def turned_away(self, *arguments, code=1, **environment):
        result = self.ctl(*arguments, **environment)
        self.assertEqual((result.returncode, result.stdout), (code, ""), result.stderr)
        self.assertIn("musterctl: error: ", result.stderr)
        return result.stderr

    def files(self):
        folder = self.runtime / "muster"
        return sorted(folder.iterdir()) if folder.exists() else []
