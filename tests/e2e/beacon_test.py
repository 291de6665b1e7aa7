#!/usr/bin/python3
"""What workers tell by their beacon, and what becomes of it: the closing block, the exit code, the operator's view,
nodes that are taken in at a checkpoint; and that nothing of it is left behind."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import unittest

from job import BUILD, PATIENCE, JobTest, children_of, wait_for
from torch_harness import SCRIPTS, TorchTest, client

MUSTERCTL = BUILD / "launcher/ctl/musterctl"
BEACON_WORKER = BUILD / "tests/e2e/beacon_worker"


class BeaconTest(JobTest):
    def setUp(self):
        super().setUp()
        self.environment["PYTHON_EXEC"] = sys.executable

    def python(self, text, name="worker.py"):
        return self.script("import os, sys\n" + text, name, 0o644)

    def own_muster(self):
        """A package of the user's that has our module's name."""
        package = self.folder / "own/muster"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("whose = 'mine'\n")
        (package / "more.py").touch()
        return package

    def fifo(self, name):
        """At whose reading end a worker waits."""
        os.mkfifo(self.folder / name)
        return self.folder / name

    def private_folder(self):
        """Of a job whose worker has written its MUSTER_BEACON into `page`."""
        page = pathlib.Path(wait_for(lambda: self.lines_of("page"), "the worker to begin")[0])
        self.assertTrue(page.exists())
        return page.parent


class Told(BeaconTest):
    def test_a_python_worker_says_where_it_died(self):
        self.python("from muster import beacon\n"
                    "beacon.step(1203); beacon.step(); beacon.phase('train')\n"
                    "sys.exit(3 if os.environ['RANK'] == '1' else 0)\n")
        code, _, err = self.run_job("--nproc-per-node=2", "worker.py")
        self.assertEqual(code, 3)
        self.assertRegex(err, r"rank 1 exited with code 3 at step 1,204 in phase train \(node 0")

    def test_a_native_worker_by_the_public_header(self):
        code, _, err = self.run_job("--no-python", BEACON_WORKER, "77", "eval", "4")
        self.assertEqual(code, 4)
        self.assertIn("exited with code 4 at step 77 in phase eval (", err)

    def test_a_worker_that_says_nothing(self):
        self.script("#!/bin/sh\nexit 3\n")
        code, _, err = self.run_job("worker.sh")
        self.assertEqual(code, 3)
        self.assertNotIn("step", err)

    def test_what_a_worker_starts_has_no_say(self):
        self.python("import subprocess\n"
                    "from muster import beacon\n"
                    "beacon.step(5)\n"
                    "if os.fork() == 0:\n"
                    "    beacon.step(6); os._exit(beacon.is_there())\n"
                    "assert os.wait()[1] == 0\n"
                    "other = 'from muster import beacon; beacon.step(7); assert not beacon.is_there()'\n"
                    "subprocess.run([sys.executable, '-c', other], check=True)\n"
                    "sys.exit(3)\n")
        code, _, err = self.run_job("worker.py")
        self.assertEqual(code, 3, err)
        self.assertIn("at step 5 (", err)

    def test_outside_muster_the_module_does_nothing(self):
        self.python("from muster import beacon\n"
                    "beacon.step(5); beacon.phase('x'); beacon.saved(); beacon.beat()\n"
                    "assert not (beacon.is_there() or beacon.checkpoint_requested() or beacon.leaving())\n"
                    "assert not (beacon.round_over() or beacon.lease_running_out() or beacon.seconds_left())\n")
        module = pathlib.Path(__file__).resolve().parents[2] / "worker_sdk/python"
        subprocess.run([sys.executable, "worker.py"], cwd=self.folder, check=True, timeout=PATIENCE,
                       env={**self.environment, "PYTHONPATH": str(module)})

    def test_the_users_own_module_of_that_name_is_the_one_that_is_found(self):
        package = self.own_muster()
        # Behind every entry of PYTHONPATH, where what is installed stands: ours is beside it.
        self.python(f"sys.path.append({str(package.parent)!r})\n"
                    "import muster, muster.more, muster.beacon\n"
                    "assert muster.whose == 'mine' and muster.beacon.is_there(), muster\n", "installed.py")
        self.python("import muster, muster.more\nassert muster.whose == 'mine', muster\n", "named.py")
        for flags in ((), ("--track-steps",)):
            code, _, err = self.run_job(*flags, "installed.py")
            self.assertEqual(code, 0, err)
            code, _, err = self.run_job(*flags, "named.py", env={**self.environment, "PYTHONPATH": str(package.parent)})
            self.assertEqual(code, 0, err)


class NoProgress(BeaconTest):
    WORKER = ("from muster import beacon\n"
              "attempt = int(os.environ['TORCHELASTIC_RESTART_COUNT'])\n")

    def test_attempts_that_die_at_one_step_end_the_job_with_93(self):
        self.python(self.WORKER + "beacon.step(5)\nsys.exit(3)\n")
        code, _, err = self.run_job("--max-restarts=50", "--max-restarts-without-progress=2", "worker.py")
        self.assertEqual(code, 93)
        self.assertIn("no progress: step 5 was never passed in 2 attempts; rank 0 exited with code 3", err)
        self.assertIn("1 of 50 used", err)

    def test_attempts_that_get_further_go_on(self):
        self.python(self.WORKER + "beacon.step(attempt + 1)\nsys.exit(3 if attempt < 4 else 0)\n")
        code, _, err = self.run_job("--max-restarts=50", "--max-restarts-without-progress=2", "worker.py")
        self.assertEqual(code, 0, err)


class Left(BeaconTest):
    """The private folder is gone, however the job ends."""

    def start_waiting(self, *flags):
        gate = self.fifo("gate")
        self.script('#!/bin/sh\necho "$MUSTER_BEACON" > page.new\nmv page.new page\nexit "$(cat gate)"\n')
        job = self.start(*flags, "worker.sh")
        return job, gate, self.private_folder()

    def check_end(self, job, folder, code):
        _, err = job.communicate(timeout=PATIENCE)
        self.assertEqual(job.returncode, code, err)
        wait_for(lambda: not folder.exists(), f"{folder} to be removed")

    def test_after_success_and_failure(self):
        for code in (0, 3):
            with self.subTest(code):
                job, gate, folder = self.start_waiting()
                self.assertEqual(folder.stat().st_mode & 0o777, 0o700)
                gate.write_text(str(code))
                self.check_end(job, folder, code)
                gate.unlink()
                (self.folder / "page").unlink()

    def test_after_a_signal(self):
        job, _, folder = self.start_waiting()
        job.terminate()
        self.check_end(job, folder, 143)

    def test_after_the_agents_death(self):
        job, _, folder = self.start_waiting()
        os.kill(children_of(job.pid)[0], signal.SIGKILL)
        self.check_end(job, folder, 75)

    def test_after_the_keepers_death(self):
        job, _, folder = self.start_waiting()
        job.kill()
        self.check_end(job, folder, -signal.SIGKILL)

    def test_what_python_caches_there_goes_too(self):
        self.python("from muster import beacon\nopen('page', 'w').write(os.environ['MUSTER_BEACON'] + '\\n')\n"
                    "assert os.listdir(os.path.join(os.path.dirname(beacon.__file__), '__pycache__'))\n")
        self.environment.pop("PYTHONDONTWRITEBYTECODE", None)
        code, _, err = self.run_job("worker.py")
        self.assertEqual(code, 0, err)
        self.assertFalse(pathlib.Path(self.lines_of("page")[0]).parent.exists())


class Tracked(BeaconTest):
    def test_an_existing_sitecustomize_still_runs(self):
        own = self.folder / "own"
        own.mkdir()
        (own / "sitecustomize.py").write_text("mine = 1\n")
        self.environment["PYTHONPATH"] = str(own)
        self.python("import sitecustomize\nassert sitecustomize.mine == 1\n"
                    "assert 'sitecustomize' == sitecustomize.__name__ and 'own' in sitecustomize.__file__\n")
        code, _, err = self.run_job("--track-steps", "worker.py")
        self.assertEqual((code, err), (0, ""))

    def test_without_one_nothing_is_amiss(self):
        self.python("print(sys.path[1])\n")
        code, _, err = self.run_job("--track-steps", "worker.py")
        self.assertEqual((code, err), (0, ""))

    def test_a_torch_that_is_not_what_we_know_costs_one_line(self):
        package = self.folder / "torch" / "optim"
        package.mkdir(parents=True)
        (self.folder / "torch" / "__init__.py").write_text("from torch import optim\n")
        (package / "__init__.py").write_text("ready = True\n")
        self.python("import torch\nassert torch.optim.ready\nprint('trained')\n")
        code, out, err = self.run_job("--track-steps", "worker.py")
        self.assertEqual((code, out), (0, "trained\n"))
        self.assertRegex(err, r"^muster: --track-steps counts no steps: KeyError: .*\n$")

    def test_steps_are_counted_beside_a_module_muster_of_the_users(self):
        self.environment["PYTHONPATH"] = str(self.own_muster().parent)
        package = self.folder / "torch" / "optim"
        package.mkdir(parents=True)
        (self.folder / "torch" / "__init__.py").write_text("from torch import optim\n")
        (package / "__init__.py").write_text("from torch.optim import optimizer\n")
        (package / "optimizer.py").write_text("hooks = []\nregister_optimizer_step_post_hook = hooks.append\n")
        self.python("import torch, muster\n"
                    "class Optimizer: state = {}\n"
                    "torch.optim.optimizer.hooks[0](Optimizer(), (), {})\n"
                    "sys.exit(3)\n")
        code, _, err = self.run_job("--track-steps", "worker.py")
        self.assertEqual(code, 3, err)
        self.assertIn("at step 1 (", err)

    def test_no_torch_no_cost(self):
        self.python("assert 'muster' not in sys.modules and 'torch' not in sys.modules\n")
        code, _, err = self.run_job("--track-steps", "worker.py")
        self.assertEqual((code, err), (0, ""))


class TrackedTorch(TorchTest):
    EXPECTED = {"plain": 5, "two_in_turn": 4, "scheduled": 6, "own_class": 3, "resumed": 1002, "scaled": 2,
                "beside_a_child": 5}

    def check(self, age):
        pytorch = client(age)
        self.keeps_temporary = True  # The new one leaves a folder for compiled code behind.
        job = self.muster(pytorch, "--track-steps", f"--nproc-per-node={len(self.EXPECTED)}", SCRIPTS / "optimizers.py")
        finished = self.finish(job)
        counted = dict(re.findall(r"^(\w+): (\d+)$", finished.out, re.MULTILINE))
        self.assertEqual({case: int(steps) for case, steps in counted.items()}, self.EXPECTED, finished.err)

    def test_the_old_pytorch(self):
        self.check("old")

    def test_the_new_pytorch(self):
        self.check("new")


class ManyNodes(BeaconTest):
    """Two nodes on this machine."""

    def setUp(self):
        super().setUp()
        self.endpoint = f"127.0.0.1:{self.free_port()}"
        runtime = self.folder / "runtime"
        runtime.mkdir(mode=0o700)
        self.environment["XDG_RUNTIME_DIR"] = str(runtime)

    def node(self, nnodes, *arguments):
        log = open(self.folder / f"node{len(list(self.folder.glob('node*')))}", "w+")
        self.addCleanup(log.close)
        job = self.start(f"--nnodes={nnodes}", "--rdzv-backend=c10d", f"--rdzv-endpoint={self.endpoint}", "--rdzv-id=job",
                         "--lease=2s", *arguments, stderr=log)
        return job, lambda: pathlib.Path(log.name).read_text()

    def status(self):
        shown = subprocess.run([MUSTERCTL, "--json", "status", "job"], env=self.environment, capture_output=True,
                               text=True, timeout=PATIENCE)
        return json.loads(shown.stdout)["jobs"][0] if shown.returncode == 0 else {}

    def test_an_operator_sees_how_far_each_node_is(self):
        gate = self.fifo("gate")
        self.python("from muster import beacon\n"
                    "beacon.step(10 * (1 + int(os.environ['RANK']))); beacon.phase('train')\n"
                    "open('gate').read()\n")
        jobs = [self.node(2, "--nproc-per-node=2", "worker.py")[0] for _ in range(2)]
        state = wait_for(lambda: (state := self.status()).get("step") == 40 and
                         all(node["progress"] for node in state["nodes"]) and state, "the steps")
        nodes = sorted((node["progress"]["slowest_step"], node["progress"]["fastest_step"], node["progress"]["phase"])
                       for node in state["nodes"])
        self.assertEqual(nodes, [(10, 20, "train"), (30, 40, "train")])
        shown = subprocess.run([MUSTERCTL, "status", "job"], env=self.environment, capture_output=True, text=True,
                               timeout=PATIENCE, check=True).stdout
        self.assertRegex(shown, r"(?m)^  step +40$")
        self.assertRegex(shown, r"10 to 20 +train +\d+\.\ds")
        for job in jobs:
            job.send_signal(signal.SIGTERM)
        for job in jobs:
            job.communicate(timeout=PATIENCE)
        self.assertTrue(gate.exists())

    def test_a_node_is_taken_in_when_a_worker_has_saved(self):
        gate = self.fifo("gate")
        self.python("import time\n"
                    "from muster import beacon\n"
                    "with open('worlds', 'a') as worlds: worlds.write(os.environ['WORLD_SIZE'] + '\\n')\n"
                    "beacon.step(1)\n"
                    "if os.environ['WORLD_SIZE'] == '1':\n"
                    "    open('gate').read()\n"
                    "    while True: beacon.saved(); time.sleep(0.05)\n")
        first, _ = self.node("1:2", "--scale-up=checkpoint", "worker.py")
        wait_for(lambda: self.lines_of("worlds") == ["1"], "the first round")
        second, said = self.node("1:2", "--scale-up=checkpoint", "worker.py")
        wait_for(lambda: "taken in when a worker has saved\n" in said(), "the newcomer to be told", 30)
        self.assertEqual(self.lines_of("worlds"), ["1"])
        gate.write_text("save\n")
        self.assertEqual([job.wait(PATIENCE) for job in (first, second)], [0, 0])
        self.assertEqual(self.lines_of("worlds"), ["1", "2", "2"])

    def test_a_worker_that_heeds_its_beacon_saves_before_its_machine_goes(self):
        self.python("import time\n"
                    "from muster import beacon\n"
                    "beacon.checkpoint_requested()\n"
                    "if os.environ['WORLD_SIZE'] == '1': sys.exit()\n"
                    "open('ready.' + os.environ['RANK'], 'w').close()\n"
                    "while not beacon.checkpoint_requested(): time.sleep(0.01)\n"
                    "assert beacon.leaving() and beacon.seconds_left() > 60\n"
                    "open('saved.' + os.environ['RANK'], 'w').close()\n"
                    "beacon.saved()\n"
                    "if os.environ['RANK'] == '0': time.sleep(1000)\n")
        flags = ["--prefer=2", "--preempt-deadline=1h"]
        host, _ = self.node("1:2", *flags, "worker.py")
        wait_for(self.status, "the server")
        leaver, _ = self.node("1:2", *flags, "worker.py")
        wait_for(lambda: len(list(self.folder.glob("ready.*"))) == 2, "both workers")
        leaver.send_signal(signal.SIGTERM)
        self.assertEqual(leaver.wait(PATIENCE), 75)  # Long before its hour is over.
        self.assertEqual(host.wait(PATIENCE), 0)
        self.assertEqual(sorted(path.name for path in self.folder.glob("saved.*")), ["saved.0", "saved.1"])


if __name__ == "__main__":
    unittest.main()
