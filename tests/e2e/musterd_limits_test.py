#!/usr/bin/python3
"""What musterd does not take: more connections than its descriptors allow, and jobs that it could not serve."""

import os
import socket
import time
import unittest

from daemon import AT_ONCE, STORE_CLIENT_PING, DaemonTest
from job import PATIENCE, wait_for


class Limits(DaemonTest):
    def test_too_few_descriptors_are_told_at_the_start(self):
        for limit in (5, 20, 127):
            with self.subTest(limit):
                said = self.refused("--listen", "127.0.0.1:0", wrap=["prlimit", f"--nofile={limit}:{limit}"])
                self.assertIn(f"the limit on open files (ulimit -n) is {limit}: at least 128", said)
        self.musterd(wrap=["prlimit", "--nofile=128:128"])
        self.assertEqual(self.asked("jobs"), "no jobs\n")

    def test_connections_of_all_kinds_leave_descriptors_for_the_server_itself(self):
        server = self.musterd("--log-level", "info", wrap=["prlimit", "--nofile=400:400"])
        held = []

        def connect(number, sent, answer, source="127.0.0.1"):
            """Returns how many were served."""
            served = 0
            for _ in range(number):
                client = socket.create_connection(("127.0.0.1", server.port), PATIENCE, (source, 0))
                client.settimeout(PATIENCE)
                held.append(client)
                try:
                    client.sendall(sent)
                    served += client.recv(len(answer)) == answer
                except ConnectionError:
                    pass
            return served

        room = 400 - 64
        self.assertEqual(connect(200, STORE_CLIENT_PING, (7).to_bytes(4, "little")), room // 3)
        self.assertEqual(connect(10, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\0"), 10)
        opening = b"\xf5MUSTER\x01" + (20).to_bytes(4, "big") + b"\x0a\x12\x12\x10" + b"n" * 16  # With its nonce.
        agents = sum(connect(150, opening, b"\xf5", source) for source in ("127.0.0.2", "127.0.0.3"))
        self.assertEqual(agents, room - room // 3 - 2 * 10)
        self.assertLess(len(os.listdir(f"/proc/{server.pid}/fd")), 400)
        self.assertNotIn("can't accept", server.said())
        for client in held:
            client.close()

        def answers():
            return self.ctl("jobs").returncode == 0

        wait_for(answers, "the server to serve operators again", AT_ONCE)
        self.assertNotIn("can't accept", server.said())


class StaticJobs(DaemonTest):
    def test_a_static_job_is_told_that_the_servers_store_is_everybodys(self):
        self.script("#!/bin/sh\nexit 0\n")
        server = self.musterd()
        began = time.monotonic()
        nodes = [self.start("--nnodes", 2, "--node-rank", rank, "--rdzv-backend", "static", "--rdzv-endpoint",
                            f"127.0.0.1:{server.port}", "worker.sh") for rank in (0, 1)]
        for node in nodes:
            _, err = node.communicate(timeout=PATIENCE)
            self.assertEqual(node.returncode, 2, err)
            for words in ("--rdzv-backend static", "a standing server (musterd) serves it", "Give --rdzv-backend c10d"):
                self.assertIn(words, err)
        self.assertLess(time.monotonic() - began, AT_ONCE)
        self.assertIn("--rdzv-backend static", server.said())


if __name__ == "__main__":
    unittest.main()
