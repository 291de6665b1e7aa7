#!/usr/bin/python3
"""Real PyTorch jobs (Gloo) on several hosts, and real torchrun agents that meet at a musterd."""

import signal
import unittest

from job import wait_for
from many_nodes import LEASE, LONG, PORT, ManyNodes, Program
from torch_harness import SCRIPTS, TORCHRUN113, client

STEPS = SCRIPTS / "elastic_steps.py"
IMPORTS = 120  # Seconds until workers have imported torch and met, on a machine that has much else to do.


class TorchNodes(ManyNodes):
    patience = 400

    def torch_node(self, pytorch, host, *flags, **options):
        return self.node(host, *flags, command=[STEPS, self.folder], PYTHON_EXEC=pytorch.python, **options)

    def steps(self):
        file = self.folder / "checkpoint"
        return int(file.read_text()) if file.exists() else 0

    def trains_on(self):
        """Waits for more steps than there are."""
        now = self.steps()
        wait_for(lambda: self.steps() > now, "the training to go on")


class Elastic(TorchNodes):
    """`1:3` with `--max-restarts 0`: agents killed, told to leave, cut off; what is left trains on, and grows again."""

    hosts = 4

    def setUp(self):
        super().setUp()
        self.endpoint = f"{self.cluster.address(3)}:{PORT}"

    def join(self, host):
        return self.torch_node(self.pytorch, host, "--max-restarts", 0, "--prefer", 3, nnodes="1:3", lease=LEASE)

    def lose_and_regain(self, age, lose, regain):
        self.pytorch = client(age)
        self.musterd(3)
        self.by_host = [self.join(host) for host in range(3)]
        self.meets(3, IMPORTS)
        self.trains_on()
        lose(1)
        met = self.meets(2, IMPORTS)
        self.assertEqual((met.hosts(), {line.restarts for line in met.lines}), (["h0", "h2"], {0}))
        self.trains_on()
        for host in (0, 2):
            self.by_host[host].says(rf"h1\b|{self.cluster.address(1)}")
        regain(1)
        self.assertEqual(sorted(self.meets(3, IMPORTS).hosts()), ["h0", "h1", "h2"])
        self.trains_on()
        self.finish(*self.by_host)

    def join_again(self, host):
        self.by_host[host].ended()
        self.by_host[host] = self.join(host)

    def kill_agent(self, host):
        self.kill(self.by_host[host].agent())

    def tell_to_leave(self, host):
        self.by_host[host].signal(signal.SIGTERM)

    def test_an_agent_killed_with_the_old_pytorch(self):
        self.lose_and_regain("old", self.kill_agent, self.join_again)

    def test_a_link_cut_with_the_new_pytorch(self):
        self.lose_and_regain("new", self.cluster.cut, self.cluster.heal)

    if LONG:
        def test_an_agent_killed_with_the_new_pytorch(self):
            self.lose_and_regain("new", self.kill_agent, self.join_again)

        def test_an_agent_told_to_leave_with_the_old_pytorch(self):
            self.lose_and_regain("old", self.tell_to_leave, self.join_again)

        def test_an_agent_told_to_leave_with_the_new_pytorch(self):
            self.lose_and_regain("new", self.tell_to_leave, self.join_again)

        def test_a_link_cut_with_the_old_pytorch(self):
            self.lose_and_regain("old", self.cluster.cut, self.cluster.heal)


class Embedded(TorchNodes):
    def run_twice(self, age):
        """A worker dies, the group starts again on both nodes, and ends well."""
        pytorch = client(age)
        nodes = [self.torch_node(pytorch, host, "--max-restarts", 1, nproc=2) for host in (1, 0)]
        met = self.meets(4, IMPORTS)
        self.trains_on()
        self.kill(met.lines[3].pid)
        again = self.meets(4, IMPORTS)
        self.assertEqual({line.restarts for line in again.lines}, {1})
        self.assertEqual(again.hosts(), met.hosts())
        self.trains_on()
        self.finish(*nodes)

    def test_a_restart_with_the_old_pytorch(self):
        self.run_twice("old")

    def test_a_restart_with_the_new_pytorch(self):
        self.run_twice("new")


class Torchrun(TorchNodes):
    """Real torchrun agents: they speak nothing but the store's protocol to musterd."""

    def torchrun(self, pytorch, host, *flags):
        self.keeps_temporary = True  # It leaves a folder for logs behind.
        own = ["-m", "torch.distributed.run"] if pytorch.is_new else [TORCHRUN113, "--monitor_interval", "0.1"]
        meet = ["--rdzv_backend=c10d", f"--rdzv_endpoint={self.endpoint}", "--rdzv_id=job", "--nnodes=2"]
        command = [pytorch.python, *own, *meet, *flags, STEPS, self.folder]
        return self.launch(Program, host, command)

    def start_restart_end(self, age):
        pytorch = client(age)
        self.musterd(0)
        # torchrun 2.15 shares one store over all attempts, so that most Gloo jobs that are restarted fail or hang; without
        # the sharing it makes a store for each.
        self.environment["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
        nodes = [self.torchrun(pytorch, host, "--max_restarts=3", "--nproc_per_node=1") for host in (0, 1)]
        met = self.meets(2, IMPORTS)
        self.trains_on()
        self.kill(met.lines[1].pid)
        self.meets(2, IMPORTS)
        self.trains_on()
        self.finish(*nodes, patience=IMPORTS)

    def test_old_torchrun(self):
        self.start_restart_end("old")

    def test_new_torchrun(self):
        self.start_restart_end("new")


if __name__ == "__main__":
    unittest.main()
