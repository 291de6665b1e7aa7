#!/usr/bin/python3
"""musterd and musterctl, as an administrator runs them: how the server starts and ends, what it says to systemd, who
may steer it, and what an operator sees of a server that has no job yet."""

import json
import os
import signal
import socket
import stat
import subprocess
import time
import unittest
import uuid

from daemon import AT_ONCE, MUSTERCTL, MUSTERD, STORE_CLIENT_PING, DaemonTest
from job import PATIENCE, needs_root, wait_for


class Start(DaemonTest):
    def test_each_port_0_is_another_free_one_and_each_server_is_found(self):
        servers = [self.musterd(), self.musterd(listen="localhost:0"), self.musterd(listen=":0")]
        self.assertEqual(len({server.port for server in servers}), 3)
        for server in servers:
            with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as client:
                client.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                self.assertIn(b"200 OK", client.recv(4096))

    def test_ipv6(self):
        server = self.musterd(listen="[::1]:0")
        self.assertEqual(json.loads(self.asked("jobs", "--json")), {"jobs": []})
        self.assertEqual(self.asked("--server", f"[::1]:{server.port}", "jobs"), "no jobs\n")

    def test_a_busy_port_is_named_with_its_holder(self):
        with socket.create_server(("127.0.0.1", 0)) as busy:
            port = busy.getsockname()[1]
            said = self.refused("--listen", f"127.0.0.1:{port}")
        self.assertIn(f"127.0.0.1:{port}", said)
        self.assertIn(f"held by process {os.getpid()} (", said)

    def test_flags_that_make_no_sense(self):
        (self.folder / "empty").touch(0o600)
        (self.folder / "open").write_text("secret\n")
        (self.folder / "open").chmod(0o644)
        for arguments, *words in (
            (["--no-such-flag"], "no-such-flag"),
            (["surplus"], "surplus"),
            (["--listen", "127.0.0.1:99999"], "--listen", "99999"),
            (["--listen", "no.such.host.invalid:1"], "--listen", "no.such.host.invalid"),
            (["--listen", "192.0.2.1:0"], "--listen", "192.0.2.1"),
            (["--max-lease", "soon"], "--max-lease", "soon"),
            (["--max-lease", "0s"], "--max-lease", "0s"),
            (["--max-jobs", "0"], "--max-jobs", "0"),
            (["--max-nodes", "-1"], "--max-nodes", "-1"),
            (["--max-connections", "1e3"], "--max-connections", "1e3"),
            (["--max-store-memory", "lots"], "--max-store-memory", "lots"),
            (["--log-level", "loud"], "--log-level", "loud"),
            (["--config", "missing.toml"], "--config", "missing.toml"),
            (["--token-file", "missing"], "--token-file", "missing"),
            (["--token-file", "empty"], "--token-file", "empty"),
            (["--token-file", "open"], "--token-file", "chmod 600"),
            (["--state-folder", "empty"], "--state-folder", "empty"),
        ):
            with self.subTest(arguments):
                said = self.refused(*arguments)
                for word in words:
                    self.assertIn(word, said)
        self.assertEqual(self.files(), [])

    def test_help_and_version(self):
        for program in (MUSTERD, MUSTERCTL):
            for flag, word in (("--help", "usage"), ("--version", program.name)):
                result = subprocess.run([str(program), flag], text=True, capture_output=True, env=self.environment,
                                        timeout=PATIENCE, check=False)
                self.assertEqual((result.returncode, result.stderr), (0, ""))
                self.assertIn(word, result.stdout.lower())

    def test_a_configuration_file_gives_what_flags_do_not(self):
        token = self.folder / "token"
        token.write_text("of-the-file\n")
        token.chmod(0o600)
        config = self.folder / "musterd.toml"
        config.write_text(f'# Ours.\nlisten = "127.0.0.1:0"\n\ntoken_file = "{token}"\nmax-lease = "5s"\nlog-level = off\n')
        server = self.launch("--config", config, "--log-level", "info", "--state-folder", self.state)
        self.assertRegex(server.stdout.readline(), r"^musterd listening on 127.0.0.1:\d+\n$")
        self.assertIn("token", self.turned_away("jobs", code=2))
        self.assertEqual(self.asked("jobs", "--token-file", token), "no jobs\n")
        self.stop(server)
        self.assertIn("shutting down", server.said())  # The command line's log level counts.

    def test_a_configuration_file_that_makes_no_sense_is_named_with_the_line(self):
        config = self.folder / "musterd.toml"
        for text, line, word in (
            ('max-jobs = 5\nmax-lease = "3 parsecs"\n', 2, "parsecs"),
            ("\n\nmax-jbos = 5\n", 3, "max-jbos"),
            ("[server]\nmax-jobs = 5\n", 1, "section"),
            ("max-jobs = 5\nmax_jobs = 6\n", 2, "line 1"),
            ("max-jobs = [1, 2]\n", 1, "one value"),
            ("config = other.toml\n", 1, "config"),
        ):
            with self.subTest(text):
                config.write_text(text)
                said = self.refused("--config", config)
                self.assertIn(f"{config}:{line}: ", said)
                self.assertIn(word, said)

    def test_recovery_is_said_where_a_server_has_been_before(self):
        first = self.musterd("--max-lease", "4s")
        port = first.port
        self.assertNotIn("recovering", first.said())
        self.stop(first)
        again = self.musterd("--max-lease", "4s", listen=f"127.0.0.1:{port}")
        wait_for(lambda: "recovering" in again.said(), "the server to say that it recovers", AT_ONCE)
        self.assertIn("5 s", again.said())

    def test_where_nothing_can_be_remembered_it_says_so_and_serves(self):
        (self.folder / "file").touch()
        server = self.musterd(XDG_STATE_HOME=str(self.folder / "file"))
        wait_for(lambda: "nothing is remembered" in server.said(), "the warning", AT_ONCE)
        wait_for(lambda: "recovering" in server.said(), "the server to say that it recovers", AT_ONCE)


class End(DaemonTest):
    def test_signals_that_end_it_leave_nothing(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            server = self.musterd()
            self.assertEqual(len(self.files()), 1)
            self.stop(server, number)
            self.assertEqual(self.files(), [])
            with self.assertRaises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", server.port), PATIENCE)

    def test_sighup_changes_nothing(self):
        server = self.musterd()
        server.send_signal(signal.SIGHUP)
        self.assertEqual(self.asked("jobs"), "no jobs\n")
        self.stop(server)

    def test_it_ends_while_operators_watch_and_strangers_are_connected(self):
        server = self.musterd("--log-level", "debug")
        watch = subprocess.Popen([str(MUSTERCTL), "watch"], env=self.environment, text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        self.addCleanup(self.end, watch)
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as lone:
            lone.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            self.assertTrue(lone.recv(1))  # gRPC's settings: it has begun.
            wait_for(lambda: "control watch began" in server.said(), "the watch to begin", AT_ONCE)
            self.stop(server)
        _, err = watch.communicate(timeout=PATIENCE)
        self.assertEqual(watch.returncode, 1)
        self.assertIn("shutting down", err)


class ServiceManager(DaemonTest):
    def messages(self, sock, count, patience=AT_ONCE):
        """The next datagrams, as dictionaries."""
        sock.settimeout(patience)
        got = [sock.recv(4096).decode() for _ in range(count)]
        return [dict(line.split("=", 1) for line in text.split("\n")) for text in got]

    def test_readiness_watchdog_and_end_are_told_to_a_path_or_an_abstract_name(self):
        for address in (str(self.folder / "notify"), f"\0muster-test-{uuid.uuid4().hex}"):
            with self.subTest(address), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
                manager.bind(address)
                server = self.musterd(NOTIFY_SOCKET=address.replace("\0", "@"), WATCHDOG_USEC="200000")
                (ready, *beats) = self.messages(manager, 4)
                self.assertEqual(ready, {"READY": "1", "STATUS": f"listening on 127.0.0.1:{server.port}"})
                self.assertEqual(beats, [{"WATCHDOG": "1"}] * 3)
                # A server that is stopped feeds no watchdog.
                server.send_signal(signal.SIGSTOP)
                time.sleep(0.3)
                manager.setblocking(False)
                with self.assertRaises(BlockingIOError):
                    while True:
                        manager.recv(4096)
                time.sleep(0.5)
                with self.assertRaises(BlockingIOError):
                    manager.recv(4096)
                server.send_signal(signal.SIGCONT)
                self.stop(server)
                manager.setblocking(True)
                last = self.messages(manager, 1)[0]
                while "WATCHDOG" in last:
                    last = self.messages(manager, 1)[0]
                self.assertEqual(last["STOPPING"], "1")

    def test_another_processs_watchdog_is_not_fed(self):
        address = str(self.folder / "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(address)
            server = self.musterd(NOTIFY_SOCKET=address, WATCHDOG_USEC="100000", WATCHDOG_PID="1")
            self.assertIn("READY", self.messages(manager, 1)[0])
            self.stop(server)
            self.assertIn("STOPPING", self.messages(manager, 1)[0])

    def test_a_manager_that_is_gone_is_a_warning(self):
        server = self.musterd(NOTIFY_SOCKET=str(self.folder / "nobody"))
        wait_for(lambda: "tell the service manager" in server.said(), "the warning", AT_ONCE)
        self.assertEqual(self.asked("jobs"), "no jobs\n")

    def test_nonsense_is_refused(self):
        self.assertIn("NOTIFY_SOCKET", self.refused("--listen", "127.0.0.1:0", NOTIFY_SOCKET="vsock:1:2"))
        self.assertIn("WATCHDOG_USEC", self.refused("--listen", "127.0.0.1:0", WATCHDOG_USEC="x",
                                                    NOTIFY_SOCKET=str(self.folder / "nobody")))


class Access(DaemonTest):
    def token_file(self, text, name="token"):
        path = self.folder / name
        path.write_text(text)
        path.chmod(0o600)
        return path

    def test_a_server_without_a_token_makes_one_that_only_its_user_can_read(self):
        server = self.musterd()
        (path,) = self.files()
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(path.parent.stat().st_mode), 0o700)
        facts = dict(line.split(" ", 1) for line in path.read_text().split("\n")[:-1])
        self.assertEqual(facts["endpoint"], f"127.0.0.1:{server.port}")
        self.assertEqual(int(facts["pid"]), server.pid)
        self.assertGreaterEqual(len(facts["token"]), 32)
        wrong = self.token_file(facts["token"][:-1] + "\n")
        self.assertIn("refuses the call", self.turned_away("--token-file", wrong, "jobs"))
        wait_for(lambda: "refused a call" in server.said(), "the refusal in the log", AT_ONCE)
        self.assertNotIn(facts["token"], server.said())

    def test_a_given_token_is_written_nowhere_and_asked_of_everybody(self):
        token = self.token_file("correct-horse\n")
        server = self.musterd("--token-file", token)
        (path,) = self.files()
        self.assertNotIn("token", path.read_text())
        self.assertIn("--token-file", self.turned_away("jobs", code=2))
        self.assertEqual(self.asked("jobs", MUSTER_TOKEN_FILE=str(token)), "no jobs\n")
        self.assertEqual(self.asked("--server", f"127.0.0.1:{server.port}", "--token-file", token, "jobs"), "no jobs\n")
        self.assertIn("refuses the call",
                      self.turned_away("jobs", "--token-file", self.token_file("wrong\n", "wrong")))

    def test_a_runtime_folder_that_others_can_enter_or_that_is_a_link_is_not_used(self):
        folder = self.runtime / "muster"
        folder.mkdir(mode=0o755)
        folder.chmod(0o755)
        self.assertIn("0755", self.refused("--listen", "127.0.0.1:0"))
        self.assertIn("0755", self.turned_away("jobs", code=2))
        folder.rmdir()
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir(mode=0o700)
        folder.symlink_to(elsewhere)
        self.assertIn("symbolic link", self.refused("--listen", "127.0.0.1:0"))
        # Who was given a token can do without.
        self.musterd("--token-file", self.token_file("given\n"))

    @needs_root
    def test_a_runtime_folder_of_another_user_is_not_used(self):
        folder = self.runtime / "muster"
        folder.mkdir(mode=0o700)
        os.chown(folder, 65534, 65534)
        self.assertIn("belongs to user 65534", self.refused("--listen", "127.0.0.1:0"))

    def test_a_file_that_a_dead_server_left_is_not_taken_for_a_server(self):
        server = self.musterd()
        server.send_signal(signal.SIGKILL)
        server.wait(timeout=PATIENCE)
        self.assertEqual(len(self.files()), 1)
        self.assertIn("you run no rendezvous server", self.turned_away("jobs"))
        self.assertEqual(self.files(), [])


class Operator(DaemonTest):
    def test_a_server_without_jobs(self):
        self.musterd()
        self.assertEqual(self.asked("jobs"), "no jobs\n")
        self.assertEqual(self.asked("status"), "no jobs\n")
        for command in ("jobs", "status"):
            self.assertEqual(json.loads(self.asked(command, "--json")), {"jobs": []})
            self.assertEqual(json.loads(self.asked("--json", command)), {"jobs": []})
        for command in (["status", "ghost"], ["drain", "ghost", "h0"], ["restart", "ghost"], ["stop", "ghost"],
                        ["sizes", "ghost", "1:2"], ["watch", "ghost"]):
            with self.subTest(command):
                self.assertIn("no job 'ghost'", self.turned_away(*command))

    def test_several_servers_are_listed_and_one_can_be_chosen(self):
        servers = [self.musterd(), self.musterd()]
        said = self.turned_away("jobs", code=2)
        for server in servers:
            self.assertIn(f"--server 127.0.0.1:{server.port}", said)
            self.assertIn(f"({server.pid})", said)
            self.assertEqual(self.asked("--server", f"localhost:{server.port}", "jobs"), "no jobs\n")

    def test_no_server(self):
        self.assertIn("you run no rendezvous server", self.turned_away("jobs"))
        port = self.free_port()
        token = self.folder / "token"
        token.write_text("x\n")
        token.chmod(0o600)
        said = self.turned_away("--server", f"127.0.0.1:{port}", "--token-file", token, "jobs")
        self.assertIn(f"127.0.0.1:{port}: Connection refused", said)
        self.assertIn("no.such.host.invalid",
                      self.turned_away("--server", "no.such.host.invalid:1", "--token-file", token, "jobs"))

    def test_somebody_elses_service_is_named_within_seconds(self):
        token = self.folder / "token"
        token.write_text("x\n")
        token.chmod(0o600)
        for answer in (None, b"SSH-2.0-OpenSSH_9.2\r\n", b""):
            with self.subTest(answer), socket.create_server(("127.0.0.1", 0)) as service:
                port = service.getsockname()[1]
                began = time.monotonic()
                ctl = subprocess.Popen([str(MUSTERCTL), "--timeout", "2s", "--server", f"127.0.0.1:{port}",
                                        "--token-file", str(token), "watch"], env=self.environment, text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                self.addCleanup(self.end, ctl)
                client, _ = service.accept()
                with client:
                    if answer is not None:
                        client.sendall(answer)
                        client.close()
                    _, err = ctl.communicate(timeout=PATIENCE)
                self.assertEqual(ctl.returncode, 1)
                self.assertIn(f"127.0.0.1:{port}", err)
                self.assertIn("rendezvous server of muster", err)
                self.assertLess(time.monotonic() - began, 2 + AT_ONCE)

    def test_commands_that_make_no_sense(self):
        for arguments in ([], ["fly"], ["drain", "job"], ["sizes", "job"], ["sizes", "job", "3:1"],
                          ["sizes", "job", "0:1"], ["sizes", "job", "x"], ["jobs", "surplus"], ["--timeout", "0", "jobs"],
                          ["--server", "h:99999", "jobs"], ["--token-file", "missing", "jobs"]):
            with self.subTest(arguments):
                self.turned_away(*arguments, code=2)

    def test_garbage_and_other_protocols_on_the_port_disturb_nobody(self):
        server = self.musterd()
        noise = [b"\xff" * 5000, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 4096, b"PRINCE", b"\xf5MUSTERX" + b"\0" * 64,
                 b"GET /\r\n\r\n", b"\x16\x03\x01\x02\x00" + b"x" * 100, b""]
        held = []
        for bytes_ in noise * 5:
            client = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
            held.append(client)
            try:
                client.sendall(bytes_)
            except OSError:
                pass  # It was closed at the first bytes.
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as store:
            store.sendall(STORE_CLIENT_PING)
            self.assertEqual(store.recv(4), (7).to_bytes(4, "little"))
            self.assertEqual(self.asked("jobs"), "no jobs\n")
            store.sendall(STORE_CLIENT_PING[5:])
            self.assertEqual(store.recv(4), (7).to_bytes(4, "little"))
        for client in held:
            client.close()
        self.stop(server)


class Verdicts(DaemonTest):
    def test_how_a_job_ended_is_known_to_the_next_server(self):
        self.script("#!/bin/sh\necho last words >&2\nexit 7\n")
        first = self.musterd()
        port = first.port
        meet = ["--nnodes", "1:1", "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "brief"]
        code, _, err = self.run_job(*meet, "worker.sh")
        self.assertEqual(code, 7, err)
        self.stop(first)
        self.musterd(listen=f"127.0.0.1:{port}")
        (job,) = json.loads(self.asked("status", "brief", "--json"))["jobs"]
        self.assertEqual((job["phase"], job["outcome"]["exit_code"]), ("failed", 7))
        self.assertEqual(job["outcome"]["cause"]["stderr"], ["last words"])


if __name__ == "__main__":
    unittest.main()
