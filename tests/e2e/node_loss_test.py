#!/usr/bin/python3
"""Nodes, links and agents that go, and come back, while a job of `member` workers runs."""

import os
import random
import signal
import time
import unittest

from job import MUSTER, PATIENCE, read_terminal, wait_for
from many_nodes import LEASE, LONG, MEMBER, PORT, ManyNodes, Node

PATIENT = 20.0  # A lease that no test waits for: what happens sooner was not decided by its end.
SILENT = 1.25 * LEASE + 1  # Seconds from a silent host to the survivors' next round: the budget.
SLACK = 5.0  # For a machine that has much else to do.


class Elastic(ManyNodes):
    """`1:3` with `--max-restarts 0`: every change of membership is free."""

    patience = 1500 if LONG else 150
    hosts = 4  # The server is on the last: it is not what these tests are about.

    def setUp(self):
        super().setUp()
        self.endpoint = f"{self.cluster.address(3)}:{PORT}"

    def begin(self, lease=LEASE):
        self.lease = lease
        self.server = self.musterd(3)
        self.by_host = [self.join(host) for host in range(3)]
        return self.meets(3)

    def join(self, host, *flags):
        return self.node(host, "--max-restarts", 0, "--prefer", 3, *flags, nnodes="1:3", lease=self.lease)

    def check_smaller(self, began, limit):
        met = self.meets(2)
        self.assertLess(met.seconds() - began, limit + SLACK, self.all_logs())
        self.assertEqual({line.restarts for line in met.lines}, {0})
        return met

    def check_grown(self, host):
        """A node that comes to the place: the world grows again."""
        self.by_host[host] = self.join(host)
        met = self.meets(3)
        self.assertEqual(sorted(met.hosts()), ["h0", "h1", "h2"])
        return met

    def check_end(self, lost):
        """All end well, and the log names what was lost."""
        self.finish(*self.by_host)
        for host, node in enumerate(self.by_host):
            if host != lost:
                self.assertRegex(node.log(), rf"h{lost}\b|{self.cluster.address(lost)}")

    def test_an_agent_killed_is_told_by_its_keeper(self):
        before = self.begin(PATIENT)
        began = time.monotonic()
        self.kill(self.by_host[1].agent())
        after = self.check_smaller(began, 0.5)
        self.assertEqual(after.hosts(), ["h0", "h2"])
        self.assertNotEqual(self.by_host[1].ended(), 0)
        self.wait_gone([line.pid for line in before.lines if line.host == "h1"])
        self.check_grown(1)
        self.check_end(1)

    def test_a_keeper_killed_is_told_by_its_agent(self):
        self.begin(PATIENT)
        began = time.monotonic()
        self.kill(self.by_host[2].pid)
        self.assertEqual(self.check_smaller(began, 0.5).hosts(), ["h0", "h1"])
        self.check_grown(2)
        self.check_end(2)

    def test_an_agent_told_to_leave(self):
        self.begin(PATIENT)
        began = time.monotonic()
        self.by_host[0].signal(signal.SIGTERM)
        self.assertEqual(sorted(self.check_smaller(began, 0.5).hosts()), ["h1", "h2"])
        self.assertEqual(self.by_host[0].ended(), 128 + signal.SIGTERM)
        self.check_grown(0)
        self.check_end(0)

    def test_a_link_cut_and_healed(self):
        before = self.begin()
        began = time.monotonic()
        self.cluster.cut(1)
        after = self.check_smaller(began, SILENT)
        self.assertEqual(after.hosts(), ["h0", "h2"])
        # By then the lost one's workers are gone, though nobody could tell it so.
        self.wait_gone([line.pid for line in before.lines if line.host == "h1"], 0.1)
        self.assertTrue(self.by_host[1].runs())
        self.cluster.heal(1)
        met = self.meets(3)  # It is taken in again, by itself.
        self.assertEqual(sorted(met.hosts()), ["h0", "h1", "h2"])
        self.check_end(1)

    def test_one_way_cuts(self):
        for way in ("in", "out"):
            with self.subTest(way):
                if way == "in":
                    self.begin()
                began = time.monotonic()
                self.cluster.cut(2, way)
                self.assertEqual(self.check_smaller(began, SILENT).hosts(), ["h0", "h1"])
                self.cluster.heal(2)
                self.meets(3)
        self.check_end(2)

    def test_a_power_cut(self):
        self.begin()
        began = time.monotonic()
        self.cluster.crash(0)
        after = self.check_smaller(began, SILENT)
        self.assertEqual(sorted(after.hosts()), ["h1", "h2"])
        self.cluster.heal(0)
        self.check_grown(0)
        self.check_end(0)

    def test_a_cut_shorter_than_the_lease_is_noticed_by_nobody(self):
        met = self.begin(PATIENT)
        self.cluster.cut(1)
        time.sleep(3)
        self.cluster.heal(1)
        time.sleep(1)
        self.undisturbed(met)
        self.check_end_well()

    def check_end_well(self):
        self.finish(*self.by_host)

    def test_a_reset_in_the_attendance_is_noticed_by_no_worker(self):
        met = self.begin()
        ports = self.attendance_ports(1)
        self.cluster.filter(1, f"tcp dport {PORT} reject with tcp reset")
        wait_for(lambda: not ports & self.attendance_ports(1), "the connection to be reset", LEASE)
        self.cluster.filter(1)
        wait_for(lambda: self.attendance_ports(1), "another connection", LEASE)
        time.sleep(1.5 * LEASE)
        self.undisturbed(met)
        self.check_end_well()

    def attendance_ports(self, host):
        listed = self.cluster.run(host, "ss", "-Htn", "state", "established", f"dport = {PORT}")
        return {line.split()[2].rsplit(":", 1)[1] for line in listed.splitlines()}

    def test_an_agent_that_is_stopped_loses_its_ranks_and_comes_back(self):
        before = self.begin()
        began = time.monotonic()
        agent = self.by_host[1].agent()
        self.kill(agent, signal.SIGSTOP)
        after = self.check_smaller(began, SILENT)
        self.assertEqual(after.hosts(), ["h0", "h2"])
        self.wait_gone([line.pid for line in before.lines if line.host == "h1"], 0.1)  # The keeper's work.
        self.kill(agent, signal.SIGCONT)
        self.meets(3)
        self.check_end(1)

    def test_a_node_that_joins_late(self):
        self.lease = LEASE
        # Before recovery is over, which is short here, a server begins with all or with as many as are expected.
        self.server = self.musterd(3, longest="2s")
        self.by_host = [self.join(0, "--rdzv-conf", "last_call_timeout=1")]
        self.meets(1)
        for host in (1, 2):
            self.by_host.append(self.join(host, "--rdzv-conf", "last_call_timeout=1"))
        met = self.meets(3)
        self.assertEqual({line.restarts for line in met.lines}, {0})
        self.check_end_well()

    def test_a_node_that_comes_and_goes(self):
        """Join, INT, join again: nobody else is taken down by it."""
        self.begin(PATIENT)
        for _ in range(20 if LONG else 3):
            self.by_host[2].signal(signal.SIGINT)
            self.meets(2)
            self.by_host[2].ended()
            self.check_grown(2)
        self.check_end(2)

    def test_rounds_never_fall_out_of_step(self):
        """Agents paused at random while workers fail: all ranks of a round tell the same of it."""
        self.lease = PATIENT
        self.server = self.musterd(3)
        self.by_host = [self.node(host, "--max-restarts", 1000, nnodes="3", lease=20) for host in range(3)]
        chance = random.Random(int(os.environ.get("MUSTER_SEED", "4")))
        for restarts in range(200 if LONG else 8):
            met = self.meets(3)
            self.assertEqual({(line.restarts, line.facts["port"]) for line in met.lines},
                             {(restarts, met.lines[0].facts["port"])})
            slow = self.by_host[chance.randrange(3)].agent()
            self.tell(chance.randrange(3), 1)
            time.sleep(chance.uniform(0, 0.1))
            self.kill(slow, signal.SIGSTOP)
            time.sleep(chance.uniform(0, 0.5))
            self.kill(slow, signal.SIGCONT)
        self.meets(3)
        self.check_end_well()


class ServersNode(ManyNodes):
    """Two nodes, the server in the first one's launcher."""

    def begin(self, nnodes="1:2", lease=LEASE):
        patience = "--rdzv-conf=join_timeout=5"  # For a server that stays away, beyond the lease.
        self.both = [self.node(host, patience, nnodes=nnodes, lease=lease) for host in (0, 1)]
        return self.meets(2)

    def test_a_power_cut_of_the_server_ends_the_job(self):
        self.begin()
        self.cluster.crash(0)
        self.check_server_lost()

    def test_so_does_sigkill_of_its_agent(self):
        self.begin()
        self.kill(self.both[0].agent())
        self.check_server_lost()
        self.assertEqual(self.both[0].ended(), 75)

    def check_server_lost(self):
        self.assertEqual(self.both[1].ended(SILENT + 30), 75)
        self.assertRegex(self.both[1].log(), rf"server|{self.cluster.address(0)}")

    def test_told_to_leave_it_serves_on_without_workers(self):
        met = self.begin(lease=PATIENT)
        self.both[0].signal(signal.SIGTERM)
        after = self.meets(1)
        self.assertEqual(after.hosts(), ["h1"])
        self.wait_gone([line.pid for line in met.lines if line.host == "h0"])
        self.assertTrue(self.both[0].runs())
        self.tell_all()
        self.assertEqual(self.both[1].ended(), 0)
        self.both[0].ended()

    def test_a_second_signal_ends_that_stay(self):
        self.begin(lease=LEASE)
        self.both[0].signal(signal.SIGTERM)
        self.meets(1)
        self.both[0].signal(signal.SIGTERM)
        self.assertEqual(self.both[0].ended(10), 128 + signal.SIGTERM)

    def test_a_second_ctrl_c_ends_that_stay(self):
        flags = ["--nnodes", "1:2", "--rdzv-backend", "c10d", "--rdzv-endpoint", self.endpoint, "--rdzv-id", "job"]
        host, terminal = self.start_on_terminal(*flags, MEMBER, self.folder, wrap=self.cluster.on(0))
        other = self.launch(Node, 1, [MUSTER, *flags, MEMBER, self.folder])
        self.meets(2)
        os.write(terminal, b"\x03")
        read_terminal(terminal, until=b"Another signal ends that")
        self.meets(1)
        os.write(terminal, b"\x03")
        shown = read_terminal(terminal)
        self.assertEqual(host.wait(PATIENCE), 128 + signal.SIGINT)
        self.assertNotIn(b"killing the workers", shown)
        other.signal(signal.SIGKILL)  # It would wait for another server.

    def test_a_half_open_link_between_two_that_need_each_other(self):
        """Neither may go on alone: the lost node is the cause, and worth a requeue."""
        met = self.begin("2")
        self.cluster.cut(1)
        self.wait_gone(met.pids(), SILENT + SLACK)
        self.cluster.heal(1)
        again = self.meets(2)
        self.assertEqual(sorted(again.hosts()), ["h0", "h1"])
        self.finish(*self.both)


if __name__ == "__main__":
    unittest.main()
