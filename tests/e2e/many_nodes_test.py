#!/usr/bin/python3
"""Jobs on several hosts, as a user starts and ends them: who meets where, under which ranks, and what is refused."""

import signal
import subprocess
import sys
import time
import unittest

from job import PATIENCE, wait_for
from job import MUSTER
from many_nodes import LEASE, LONG, MEMBER, PORT, ManyNodes, Node, Program

JOINING = "--rdzv-conf=join_timeout=4"  # Seconds that a node which can't get anywhere may take.


class Start(ManyNodes):
    def test_two_nodes_meet_and_end_with_the_same_verdict(self):
        other = self.node(1, nproc=2)
        other.says(r"no rendezvous server at 10\.77\.0\.10:29400 yet", 15)  # It says so, before the endpoint's owner is there.
        host = self.node(0, nproc=2)
        met = self.meets(4)
        self.assertEqual(len(set(met.hosts()[:2])), 1)  # Ranks of a node follow each other.
        self.assertEqual(sorted(met.hosts()), ["h0", "h0", "h1", "h1"])
        self.assertEqual([line.local for line in met.lines], [0, 1, 0, 1])
        self.assertEqual([line.node for line in met.lines], [0, 0, 1, 1])
        self.assertEqual({(line.local_world, line.nodes, line.restarts) for line in met.lines}, {(2, 2, 0)})
        first = int(met.hosts()[0][1:])
        self.assertEqual({line.facts["master"] for line in met.lines}, {self.cluster.address(first)})
        self.assertEqual({line.facts["iface"] for line in met.lines}, {"eth0"})
        self.assertEqual(len({line.agent for line in met.lines}), 2)
        listening = self.cluster.run(0, "ss", "-Hltn", f"sport = {PORT}").split()
        self.assertIn(self.endpoint, listening)  # That address only.
        self.assertEqual(listening.count("LISTEN"), 1)
        self.finish(host, other)

    def test_the_first_cause_is_named_on_every_node(self):
        nodes = [self.node(host, nproc=2) for host in (0, 1)]
        met = self.meets(4)
        self.tell(3, 9)
        took = self.all_end(*nodes, code=9)
        self.assertLess(took, 5)
        for node in nodes:
            self.assertRegex(node.log(), r"rank 3\b")
            self.assertIn(met.hosts()[3], node.log())
        self.wait_gone(met.pids())

    def test_a_restart_is_the_jobs_and_counted_once(self):
        nodes = [self.node(host, "--max-restarts", 2, nproc=2) for host in (0, 1)]
        before = self.meets(4)
        for restarts, rank in ((1, 0), (2, 3)):
            self.tell(rank, 5)
            after = self.meets(4)
            self.assertEqual({line.restarts for line in after.lines}, {restarts})
            self.assertEqual(after.hosts(), before.hosts())  # Who stays keeps its place.
        self.tell(1, 6)
        self.all_end(*nodes, code=6)

    def test_nodes_of_different_sizes(self):
        nodes = [self.node(0, nproc=1), self.node(1, nproc=3)]
        met = self.meets(4)
        self.assertEqual(sorted(met.hosts()), ["h0", "h1", "h1", "h1"])
        self.assertEqual(sorted(line.local_world for line in met.lines), [1, 3, 3, 3])
        self.finish(*nodes)

    def test_two_launchers_that_start_at_the_same_instant_know_that_they_are_the_first(self):
        """One of them hosts, and neither waits for nodes of an older round: there was no older server."""
        for port in range(PORT, PORT + 10):
            flags = ["--nnodes", 2, "--rdzv-backend", "c10d", "--rdzv-endpoint", f"{self.cluster.address(0)}:{port}",
                     "--rdzv-id", "job", "--lease", "20s"]
            nodes = [self.launch(Node, 0, [MUSTER, *flags, "/bin/true"]) for _ in range(2)]
            took = self.all_end(*nodes)
            self.assertLess(took, 15, self.all_logs())  # A server that is not the first waits for 1.25 leases.
            self.assertEqual(sum("hosting the rendezvous" in node.log() for node in nodes), 1)
            for node in nodes:
                self.assertNotRegex(node.log(), "may still run a round|older round")

    def test_several_agents_on_one_host_are_several_nodes(self):
        nodes = [self.node(0, nnodes="3"), self.node(0, nnodes="3", nproc=2), self.node(1, nnodes="3")]
        met = self.meets(4)
        here = [line for line in met.lines if line.host == "h0"]
        self.assertEqual(sorted(line.local for line in here), [0, 1, 2])
        self.assertEqual({line.local_world for line in here}, {3})
        self.assertEqual(len({line.agent for line in met.lines}), 3)
        self.finish(*nodes)

    def test_a_rank_zero_that_leaves_early_takes_nobody_along(self):
        nodes = [self.node(host, nproc=1) for host in (0, 1)]
        met = self.meets(2)
        self.tell(0, 0)
        self.wait_gone(met.pids()[:1])
        time.sleep(1.5 * LEASE)
        self.assertTrue(all(node.runs() for node in nodes))
        self.finish(*nodes)
        for node in nodes:
            self.assertNotRegex(node.log(), r"warn|error")

    def test_the_store_stays_for_workers_that_have_not_met_yet(self):
        meet = "import os, socket; socket.create_connection((os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])), 5)"
        worker = self.script(f'#!/bin/sh\n[ "$RANK" != 0 ] || exit 0\nsleep 1\nexec /usr/bin/python3 -c "{meet}"\n')
        flags = ["--nnodes", 2, "--rdzv-backend", "c10d", "--rdzv-endpoint", self.endpoint, "--rdzv-id", "job"]
        self.all_end(*[self.launch(Node, host, [MUSTER, *flags, worker]) for host in (0, 1)], code=0)

    def test_by_static_rendezvous(self):
        nodes = []
        for rank in (1, 0):
            flags = ["--nnodes", 2, "--node-rank", rank, "--master-addr", self.cluster.address(0), "--master-port",
                     29500, "--max-restarts", 1, "--rdzv-id", "job", "--lease", "2s"]
            nodes.append(self.launch(Node, rank, [MUSTER, *flags, MEMBER, self.folder]))
        for restarts in (0, 1):
            met = self.meets(2)
            self.assertEqual(met.hosts(), ["h0", "h1"])
            self.assertEqual({(line.facts["master"], line.port) for line in met.lines},
                             {(self.cluster.address(0), 29500)})
            self.assertEqual({line.restarts for line in met.lines}, {restarts})
            if restarts == 0:
                self.tell(1, 4)
        self.finish(*nodes)


class FourHosts(ManyNodes):
    hosts = 4

    def test_explicit_node_ranks_are_honoured(self):
        order = {2: 0, 0: 1, 3: 2, 1: 3}  # Host to node rank.
        nodes = [self.node(host, "--node-rank", rank, "--max-restarts", 1, nnodes="4")
                 for host, rank in order.items()]
        for _ in range(2):
            met = self.meets(4)
            self.assertEqual(met.hosts(), ["h2", "h0", "h3", "h1"])
            self.tell(2, 1)
        self.all_end(*nodes, code=1)

    def test_without_them_addresses_decide(self):
        nodes = [self.node(host, nnodes="4") for host in (3, 1, 2, 0)]
        self.assertEqual(self.meets(4).hosts(), ["h0", "h1", "h2", "h3"])
        self.finish(*nodes)

    def test_a_job_that_has_its_fewest_waits_a_little_for_more(self):
        """Not one start with too few and one more with each that comes a moment later."""
        nodes = [self.node(0, nnodes="2:4")]
        for host in (1, 2, 3):
            time.sleep(0.7)
            nodes.append(self.node(host, nnodes="2:4"))
        self.assertEqual(self.meets(4).lines[0].world, 4)
        self.assertEqual(len([line for line in self.lines() if line.event == "began"]), 4)
        self.finish(*nodes)


    def test_sizes_go_by_steps(self):
        """Of three nodes two run, and one stands by until a fourth is there."""
        nodes = [self.node(host, nnodes="2:4:2") for host in (0, 1)]
        self.meets(2)
        nodes.append(self.node(2, nnodes="2:4:2"))
        nodes[2].says("scale-up")
        nodes.append(self.node(3, nnodes="2:4:2"))
        self.meets(4)
        self.finish(*nodes)

    def test_a_job_that_never_grows(self):
        nodes = [self.node(host, "--scale-up", "never", nnodes="2:3") for host in (0, 1)]
        met = self.meets(2)
        nodes.append(self.node(2, "--scale-up", "never", nnodes="2:3"))
        nodes[2].says("spare")
        time.sleep(2)
        self.undisturbed(met)
        self.finish(*nodes)


class Surroundings(ManyNodes):
    def test_survivors_that_do_not_heed_the_stop_are_made_to(self):
        """Whatever a library of theirs waits for: the grace is ours."""
        nodes = [self.node(0, "--max-restarts", 1, "--shutdown-timeout", "1s"),
                 self.node(1, "--max-restarts", 1, "--shutdown-timeout", "1s", MEMBER_GRACE="600000")]
        self.meets(2)
        began = time.monotonic()
        self.tell(0, 3)
        self.meets(2)
        self.assertLess(time.monotonic() - began, 15)  # Of the 600 s that the other one would have taken.
        self.finish(*nodes)

    def test_ports_from_a_range_that_is_nearly_used_up(self):
        """Listen first, then publish: a connection that has the port by chance is in nobody's way."""
        for host in (0, 1):
            self.cluster.run(host, "sysctl", "-qw", "net.ipv4.ip_local_port_range=40000 40499")
            holder = ("import socket, sys\n"
                      "held = [socket.socket() for _ in range(450)]\n"
                      "for each in held: each.bind(('0.0.0.0', 0))\n"
                      "print('held', flush=True)\n"
                      "sys.stdin.read()")
            hold = subprocess.Popen([*self.cluster.on(host), sys.executable, "-c", holder], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE)
            self.addCleanup(hold.communicate)
            self.assertEqual(hold.stdout.readline(), b"held\n")
        for start in range(100 if LONG else 4):
            nodes = [self.node(host, command=["/bin/true"], job=f"job{start}") for host in (0, 1)]
            self.all_end(*nodes)

    def test_an_interface_by_name_and_by_network(self):
        for host in (0, 1):
            self.cluster.run(host, "ip", "link", "add", "fabric", "type", "veth", "peer", "name", "fabric-far")
            self.cluster.run(host, "ip", "addr", "add", f"10.9.0.{host + 1}/24", "dev", "fabric")
            self.cluster.run(host, "ip", "link", "set", "fabric", "up")
        nodes = [self.node(0, "--iface=fabric"), self.node(1, "--iface=10.9.0.0/24")]
        self.assertEqual({line.facts["iface"] for line in self.meets(2).lines}, {"fabric"})
        self.finish(*nodes)
        lost = self.node(0, "--iface=10.8.0.0/24")
        self.assertEqual(lost.ended(), 2)
        self.assertIn("--iface: '10.8.0.0/24': no interface of this machine has an address in it", lost.log())


class Notice(ManyNodes):
    def test_a_machine_that_will_be_taken_away_is_known_to_every_worker(self):
        flags = ["--preempt-signal", "USR1", "--preempt-deadline", "2s"]
        nodes = [self.node(host, *flags, nnodes="1:2") for host in (0, 1)]
        self.meets(2)
        nodes[1].signal(signal.SIGTERM)
        self.assertEqual(self.meets(1).hosts(), ["h0"])
        told = [line for line in self.lines() if line.event == f"signal{signal.SIGUSR1}"]
        self.assertEqual(sorted(line.host for line in told), ["h0", "h1"])
        nodes[1].ended()
        self.finish(nodes[0])


class Names(ManyNodes):
    def check(self, endpoint=None, addresses=None):
        nodes = [self.node(host, endpoint=endpoint) for host in (1, 0)]
        met = self.meets(2)
        if addresses:
            self.assertIn(met.lines[0].facts["master"], addresses)
        self.assertEqual(len(set(met.pids())), 2)
        self.finish(*nodes)
        return met

    def test_host_names_that_nobody_knows(self):
        for host in (0, 1):
            self.cluster.run(host, "hostname", f"unresolvable-{host}")
        self.check(addresses=[self.cluster.address(host) for host in (0, 1)])

    def test_the_same_host_name_everywhere(self):
        for host in (0, 1):
            self.cluster.run(host, "hostname", "clone")
        self.assertEqual(self.check().hosts(), ["clone", "clone"])

    def test_an_endpoint_by_name(self):
        self.check("h0")

    def test_a_name_that_means_loopback_on_its_own_host(self):
        hosts = self.folder / "hosts0"
        hosts.write_text(f"127.0.0.1 localhost\n127.0.1.1 h0\n{self.cluster.address(1)} h1\n")
        self.cluster.run(0, "mount", "--bind", hosts, "/etc/hosts")
        self.check(f"h0:{PORT}", [self.cluster.address(host) for host in (0, 1)])

    def test_ipv6_only(self):
        for host in (0, 1):
            self.cluster.run(host, "ip", "-4", "addr", "flush", "dev", "eth0")
            self.cluster.run(host, "ip", "addr", "add", f"fd00::{10 + host}/64", "dev", "eth0", "nodad")
        self.check(f"[fd00::10]:{PORT}", ["fd00::10", "fd00::11"])

    def test_link_local_with_its_scope(self):
        for host in (0, 1):
            self.cluster.run(host, "ip", "-4", "addr", "flush", "dev", "eth0")
            self.cluster.run(host, "ip", "addr", "add", f"fe80::{10 + host}/64", "dev", "eth0", "nodad")
        self.check(f"[fe80::10%eth0]:{PORT}")

    def test_link_local_where_each_host_has_its_own_name_for_the_interface(self):
        for host, name in ((0, "eth0"), (1, "eth7")):
            self.cluster.run(host, "sh", "-c", f"ip link set eth0 down && ip link set eth0 name {name} && "
                             f"ip addr flush dev {name}; ip link set {name} up")
            self.cluster.run(host, "ip", "addr", "add", f"fe80::{10 + host}/64", "dev", name, "nodad")
        nodes = [self.node(host, "--node-rank", 1 - host, endpoint=f"[fe80::10%{name}]:{PORT}")
                 for host, name in ((0, "eth0"), (1, "eth7"))]
        met = self.meets(2)
        self.assertEqual([line.facts["master"] for line in met.lines], ["fe80::11%eth7", "fe80::11%eth0"])
        self.finish(*nodes)

    def test_the_first_of_the_masters_addresses_leads_nowhere(self):
        """By static rendezvous: workers are told the one at which the server answers."""
        hosts = self.folder / "hosts1"
        hosts.write_text(f"127.0.0.1 localhost\n2001:db8::77 master\n{self.cluster.address(0)} master\n")
        self.cluster.run(1, "ip", "addr", "add", "2001:db8::11/64", "dev", "eth0", "nodad")
        self.cluster.run(1, "mount", "--bind", hosts, "/etc/hosts")
        nodes = []
        for rank, master in ((0, self.cluster.address(0)), (1, "master")):
            flags = ["--nnodes", 2, "--node-rank", rank, "--master-addr", master, "--master-port", 29500,
                     "--rdzv-id", "job", "--lease", "2s"]
            nodes.append(self.launch(Node, rank, [MUSTER, *flags, MEMBER, self.folder]))
        self.assertEqual({line.facts["master"] for line in self.meets(2).lines}, {self.cluster.address(0)})
        self.finish(*nodes)

    def test_a_second_address_for_the_workers_of_one_node(self):
        """Whatever h1 sends to a store comes from an address that no Hello names: the knock admits it."""
        outside = "10.77.0.111"
        card = self.cluster.run(1, "cat", "/sys/class/net/eth0/address").strip()
        self.cluster.run(0, "ip", "neigh", "add", outside, "lladdr", card, "dev", "eth0")
        self.cluster.filter(1, f"tcp dport != {PORT} ip daddr {self.cluster.address(0)} snat to {outside}",
                            "type nat hook postrouting priority 100")
        nodes = [self.node(1, "--node-rank", 1), self.node(0, "--node-rank", 0)]
        self.assertEqual(self.meets(2).hosts(), ["h0", "h1"])
        self.finish(*nodes)

    def test_an_address_that_is_given(self):
        self.cluster.run(0, "ip", "addr", "add", "10.77.0.50/24", "dev", "eth0")
        nodes = [self.node(1, "--node-rank", 1), self.node(0, "--node-rank", 0, "--local-addr", "10.77.0.50")]
        self.assertEqual({line.facts["master"] for line in self.meets(2).lines}, {"10.77.0.50"})
        self.finish(*nodes)

    def test_clocks_that_are_days_apart(self):
        """No decision compares the clocks of two machines."""
        nodes = [self.node(0), self.node(1, wrap=["unshare", "--time", "--boottime", "1000000", "--monotonic", "500000"])]
        met = self.meets(2)
        time.sleep(2 * LEASE)
        self.undisturbed(met)
        self.finish(*nodes)


class Refused(ManyNodes):
    """Bad input: a clear refusal, with the node and the setting on both sides."""

    def test_a_wrong_token(self):
        right, wrong = self.folder / "right", self.folder / "wrong"
        for file, text in ((right, "right" * 8), (wrong, "wrong" * 8)):
            file.write_text(text + "\n")
            file.chmod(0o600)
        host = self.node(0, "--token-file", right)
        host.says("wait")
        stranger, guest = self.node(1, "--token-file", wrong), self.node(1)
        for node in (stranger, guest):
            self.assertNotEqual(node.ended(), 0)
            self.assertIn("token", node.log())
        other = self.node(1, "--token-file", right)
        self.meets(2)
        self.finish(host, other)

    def test_a_setting_that_differs(self):
        host = self.node(0, "--max-restarts", 3)
        host.says("wait")
        other = self.node(1, "--max-restarts", 1)
        self.assertEqual(other.ended(), 2)
        self.assertRegex(other.log(), r"max-restarts.*\b(1\b.*\b3|3\b.*\b1)\b")
        right = self.node(1, "--max-restarts", 3)
        self.meets(2)
        self.finish(host, right)

    def test_two_nodes_with_one_rank(self):
        host = self.node(0, "--node-rank", 0, nnodes="3")
        host.says("wait")
        second = self.node(1, "--node-rank", 1, nnodes="3")
        second.says("wait")
        third = self.node(1, "--node-rank", 1, nnodes="3")
        self.assertNotEqual(third.ended(), 0)
        self.assertRegex(third.log(), r"node[ -]rank.*\b1\b")
        self.assertIn(self.cluster.address(1), third.log())
        self.assertTrue(host.runs() and second.runs())

    def test_an_endpoint_that_belongs_to_nobody(self):
        node = self.node(1, JOINING, endpoint=f"10.77.0.99:{PORT}")
        self.assertEqual(node.ended(20), 75)
        self.assertIn("10.77.0.99", node.log())

    def test_an_endpoint_whose_host_is_mute(self):
        self.cluster.cut(0)
        node = self.node(1, JOINING)
        self.assertEqual(node.ended(20), 75)
        self.assertIn(self.cluster.address(0), node.log())

    def test_a_name_that_does_not_resolve(self):
        node = self.node(1, JOINING, endpoint=f"no-such-host.invalid:{PORT}")
        self.assertEqual(node.ended(20), 75)
        self.assertIn("no-such-host.invalid", node.log())

    def test_loopback_as_the_endpoint_of_several_machines(self):
        nodes = [self.node(host, JOINING, endpoint=f"localhost:{PORT}") for host in (0, 1)]
        for node in nodes:
            self.assertNotEqual(node.ended(20), 0)
            self.assertRegex(node.log(), r"loopback|1 of 2")

    def test_a_foreign_service_at_the_endpoint_is_named_soon(self):
        silent = ["python3", "-c", "import socket,time\n"
                  f"s = socket.create_server(('{self.cluster.address(0)}', {PORT}))\n"
                  "held = []\nwhile True: held.append(s.accept())\n"]
        server = self.launch_foreign(silent)
        took = []
        while len(took) < 5 and min(took, default=2) >= 2:  # A machine that has much else to do may need another try.
            began = time.monotonic()
            node = self.node(1, JOINING)
            node.says(rf"{self.cluster.address(0)}:{PORT} accepts connections, but says nothing", 10)
            took.append(time.monotonic() - began)
        self.assertLess(min(took), 2)
        self.assertEqual(node.ended(20), 75)
        server.end()

    def test_a_service_that_says_something_else(self):
        server = self.launch_foreign(["python3", "-c", "import socket\n"
                                      f"s = socket.create_server(('{self.cluster.address(0)}', {PORT}))\n"
                                      "while True:\n  c, _ = s.accept()\n  c.sendall(b'SSH-2.0-OpenSSH_9.2\\r\\n')\n"])
        node = self.node(1, JOINING)
        self.assertNotEqual(node.ended(20), 0)
        self.assertRegex(node.log(), rf"{self.cluster.address(0)}:{PORT}")
        server.end()

    def launch_foreign(self, command):
        server = self.launch(Program, 0, command)
        self.wait_until_served(0)
        return server

    def test_a_store_port_that_a_firewall_blocks_ends_a_job_that_can_not_do_without(self):
        self.block_stores()
        nodes = [self.node(1, "--node-rank", 1), self.node(0, "--node-rank", 0)]
        for node in nodes:
            self.assertNotEqual(node.ended(30), 0)
            for host in (0, 1):
                self.assertIn(self.cluster.address(host), node.log())
        self.assertNotIn("h1", [line.host for line in self.lines()])  # No worker was started there.

    def test_and_else_the_job_goes_on_without_that_node(self):
        self.block_stores()
        nodes = [self.node(1, "--node-rank", 1, nnodes="1:2"), self.node(0, "--node-rank", 0, nnodes="1:2")]
        self.assertEqual(self.meets(1, 40).hosts(), ["h0"])
        nodes[1].says(rf"{self.cluster.address(1)}.*{self.cluster.address(0)}")
        self.tell_all()
        self.assertEqual(nodes[1].ended(), 0)

    def block_stores(self):
        self.cluster.filter(1, f"tcp dport != {PORT} ip daddr {self.cluster.address(0)} drop")

    def test_a_node_that_never_comes(self):
        host = self.node(0, "--rdzv-conf=join_timeout=3")
        self.assertEqual(host.ended(20), 75)
        self.assertRegex(host.log(), r"1 of 2")

    def test_nonsense_at_the_port_disturbs_nobody(self):
        nodes = [self.node(host) for host in (0, 1)]
        met = self.meets(2)
        tell = ("import socket, sys\n"
                f"for text in ({bytes(range(200, 256)) * 50!r}, b'\\xf5', b'GET / HTTP/1.1\\r\\n' + b'x' * 100000, b'PRI',"
                " b'\\xf5MUSTER' + b'\\xff' * 1000):\n"
                f"  s = socket.create_connection(('{self.cluster.address(0)}', {PORT}), 10)\n"
                "  try: s.sendall(text); s.shutdown(1); s.settimeout(10)\n"
                "  except OSError: continue\n"
                "  try:\n    while s.recv(4096): pass\n"
                "  except ConnectionResetError: pass\n")
        self.cluster.run(1, "python3", "-c", tell)
        time.sleep(LEASE)
        self.undisturbed(met)
        self.finish(*nodes)


if __name__ == "__main__":
    unittest.main()
