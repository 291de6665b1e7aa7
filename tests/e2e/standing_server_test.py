#!/usr/bin/python3
"""musterd: many jobs, any number of nodes, a restart that no worker notices, and an operator with musterctl."""

import json
import signal
import time
import unittest

from many_nodes import LEASE, MUSTERD, ManyNodes, Program

PATIENT = 20.0  # A lease, in seconds, that no test waits for.


class Server(ManyNodes):
    def test_its_sudden_end_is_noticed_by_no_worker(self):
        server = self.musterd()
        nodes = [self.node(host, lease=8) for host in (0, 1)]
        met = self.meets(2)
        for _ in range(2):
            self.kill(server.pid)
            server.ended()
            time.sleep(1)
            server = self.musterd()
            time.sleep(2)
            self.undisturbed(met)
        self.finish(*nodes)

    def test_a_worker_that_fails_while_it_is_away_is_not_forgotten(self):
        server = self.musterd()
        nodes = [self.node(host, "--max-restarts", 1, lease=8) for host in (0, 1)]
        self.meets(2)
        self.kill(server.pid)
        server.ended()
        self.tell(1, 7)
        time.sleep(0.5)
        server = self.musterd()
        met = self.meets(2)
        self.assertEqual({line.restarts for line in met.lines}, {1})
        self.tell(0, 8)
        self.all_end(*nodes, code=8)

    def test_away_for_longer_than_the_lease_it_costs_the_round_only(self):
        server = self.musterd(longest="4s")
        nodes = [self.node(host) for host in (0, 1)]
        met = self.meets(2)
        self.kill(server.pid)
        server.ended()
        self.wait_gone(met.pids(), 2 * LEASE + 5)
        server = self.musterd(longest="4s")
        self.assertEqual({line.restarts for line in self.meets(2, 100).lines}, {0})
        self.finish(*nodes)

    def test_told_to_end_it_leaves_the_jobs_alone(self):
        server = self.musterd()
        nodes = [self.node(host, lease=8) for host in (0, 1)]
        met = self.meets(2)
        server.signal(signal.SIGTERM)
        self.assertEqual(server.ended(15), 0)
        self.musterd()
        time.sleep(2)
        self.undisturbed(met)
        self.finish(*nodes)

    def test_an_id_may_be_used_again(self):
        self.musterd()
        for _ in range(2):
            nodes = [self.node(host) for host in (0, 1)]
            self.meets(2)
            self.tell(0, 0)
            self.tell(1, 0)
            self.all_end(*nodes)
        nodes = [self.node(host) for host in (0, 1)]
        met = self.meets(2)
        for node in nodes:  # All of it at once, keepers included.
            agent = node.agent()
            self.kill(node.pid)
            self.kill(agent)
        self.wait_gone(met.pids())
        nodes = [self.node(host) for host in (0, 1)]
        self.meets(2)
        self.finish(*nodes)

    def test_a_port_that_it_chooses_itself_is_printed(self):
        server = self.launch(Program, 0, [MUSTERD, "--listen", f"{self.cluster.address(0)}:0", "--state-folder",
                                          self.folder / "state"])
        port = server.says(rf"{self.cluster.address(0)}:(\d+)").group(1)
        nodes = [self.node(host, endpoint=f"{self.cluster.address(0)}:{port}") for host in (0, 1)]
        self.meets(2)
        self.finish(*nodes)


class ManyJobs(ManyNodes):
    patience = 300

    def test_twenty_jobs_at_once_do_not_meet_each_other(self):
        self.musterd()
        names = [f"job-{number}" for number in range(20)]
        nodes = {name: [self.node(host, job=name, lease=20) for host in (0, 1)] for name in names}
        for name in names:
            self.assertEqual(sorted(self.meets(2, 120, job=name).hosts()), ["h0", "h1"])
        self.tell(0, 11, job="job-7")
        self.all_end(*nodes.pop("job-7"), code=11)
        self.tell_all()
        for both in nodes.values():
            self.all_end(*both)


class Spares(ManyNodes):
    hosts = 4

    def setUp(self):
        super().setUp()
        self.musterd(3)
        self.endpoint = f"{self.cluster.address(3)}:29400"

    def begin(self):
        self.by_host = [self.node(host, lease=PATIENT) for host in (0, 1)]
        self.meets(2)
        self.spare = self.node(2, lease=PATIENT)
        self.spare.says("spare")

    def test_a_spare_takes_the_place_of_a_lost_node_at_once(self):
        self.begin()
        began = time.monotonic()
        self.kill(self.by_host[0].agent())
        met = self.meets(2)
        self.assertEqual(sorted(met.hosts()), ["h1", "h2"])
        self.assertLess(met.seconds() - began, 0.5 + 5)
        self.finish(self.by_host[1], self.spare)

    def test_a_spare_that_was_not_needed_ends_well(self):
        self.begin()
        self.tell_all()
        self.all_end(*self.by_host)
        self.assertEqual(self.spare.ended(5), 0)

    def test_a_spare_of_a_job_that_failed_fails(self):
        self.begin()
        self.tell(1, 5)
        self.all_end(*self.by_host, self.spare, code=5)

    def test_more_nodes_than_places_never_end_the_job(self):
        self.begin()
        spares = [self.spare, self.node(2, lease=PATIENT)]
        spares[1].says("spare")
        running = list(self.by_host)
        for _ in spares:
            self.kill(running.pop(0).agent())
            self.meets(2)
        self.finish(*running, *spares)


class Operator(ManyNodes):
    hosts = 3

    def setUp(self):
        super().setUp()
        self.musterd(2)
        self.endpoint = f"{self.cluster.address(2)}:29400"

    def ask(self, *arguments):
        """What musterctl says, which must succeed."""
        run = self.musterctl(2, *arguments)
        self.assertEqual(run.returncode, 0, f"{arguments}: {run.stdout}{run.stderr}")
        return run.stdout

    def begin(self, nnodes="2", *flags):
        self.by_host = [self.node(host, *flags, nnodes=nnodes, lease=PATIENT) for host in (0, 1)]
        return self.meets(2)

    def test_jobs_and_status(self):
        self.begin()
        self.assertIn("job", self.ask("jobs"))
        listed = json.loads(self.ask("jobs", "--json"))
        self.assertIn("job", json.dumps(listed))
        status = self.ask("status", "job")
        for word in ("running", "h0", "h1"):
            self.assertIn(word, status)
        json.loads(self.ask("status", "job", "--json"))
        self.finish(*self.by_host)

    def test_restart_is_free(self):
        before = self.begin()
        self.ask("restart", "job")
        after = self.meets(2)
        self.assertEqual({line.restarts for line in after.lines}, {0})
        self.assertFalse(set(before.pids()) & set(after.pids()))
        self.finish(*self.by_host)

    def test_drain_takes_one_node_out(self):
        self.begin("1:2", "--prefer", 2)
        self.ask("drain", "job", "h1")
        self.assertEqual(self.meets(1).hosts(), ["h0"])
        self.by_host[1].ended()
        self.finish(self.by_host[0])

    def test_stop_ends_the_job_everywhere(self):
        met = self.begin()
        self.ask("stop", "job")
        codes = {node.ended() for node in self.by_host}
        self.assertEqual(len(codes), 1)
        self.assertNotEqual(codes, {0})
        self.wait_gone(met.pids())

    def test_another_users_calls_are_refused(self):
        self.begin()
        run = self.musterctl(0, "--server", self.endpoint, "stop", "job")
        self.assertNotEqual(run.returncode, 0)
        self.assertIn("token", run.stderr)
        time.sleep(0.5)
        self.assertTrue(all(node.runs() for node in self.by_host))
        self.finish(*self.by_host)


if __name__ == "__main__":
    unittest.main()
