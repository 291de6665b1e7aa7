#!/usr/bin/python3
"""What a scheduler says in the environment is not said again in flags: faked variables, and a real Slurm."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from cluster import needs_cluster
from job import MUSTER, PATIENCE, ROOT, JobTest, wait_for
from many_nodes import MEMBER, ManyNodes, Node

HELLO = """#!/bin/sh
echo "rank $RANK of $WORLD_SIZE, local $LOCAL_RANK of $LOCAL_WORLD_SIZE, node $GROUP_RANK, job $TORCHELASTIC_RUN_ID" >> ranks
"""


def step(task, nodes="h[0-1]", tasks=2, **more):
    """The variables of one task of a step of Slurm's on two nodes."""
    return {
        "SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": nodes, "SLURM_STEP_NUM_NODES": "2",
        "SLURM_STEP_NUM_TASKS": str(tasks), "SLURM_STEP_TASKS_PER_NODE": f"{tasks // 2}(x2)",
        "SLURM_PROCID": str(task), "SLURM_NODEID": str(task * 2 // tasks), **more,
    }


class Steps(ManyNodes):
    def task(self, host, *command, **variables):
        return self.launch(Node, host, [MUSTER, *command, MEMBER, self.folder], **variables)

    def test_two_tasks_need_no_flag(self):
        other = self.task(1, **step(1))
        first = self.task(0, **step(0, SLURM_GPUS_ON_NODE="2"))
        met = self.meets(3, job="4711.0")
        self.assertEqual(met.hosts(), ["h0", "h0", "h1"])  # In Slurm's order, whoever came first.
        first.says(r"from Slurm: 2 workers \(SLURM_GPUS_ON_NODE\), 2 nodes \(SLURM_STEP_NUM_TASKS\), "
                   r"node rank 0 \(SLURM_PROCID\), endpoint h0:24711 ")
        first.says("hosting the rendezvous at h0:24711")
        self.finish(first, other)

    def test_one_task_a_gpu(self):
        tasks = [self.task(task // 2, **step(task, tasks=4)) for task in (3, 2, 1, 0)]
        met = self.meets(4, job="4711.0")
        self.assertEqual([(line.host, line.local, line.local_world) for line in met.lines],
                         [("h0", 0, 2), ("h0", 1, 2), ("h1", 0, 2), ("h1", 1, 2)])
        self.finish(*tasks)

    def test_a_task_of_another_job_is_refused_and_both_are_named(self):
        first = self.task(0, **step(0))
        first.says("hosting the rendezvous")
        stranger = self.task(1, "--rdzv-backend=c10d", "--rdzv-endpoint=h0:24711", "--rdzv-id=4711.0",
                             **step(1, SLURM_JOB_ID="4712"))
        self.assertEqual(stranger.ended(), 2)
        stranger.says(r"4711\.0\.0.* 4712\.0\.0")
        other = self.task(1, **step(1))
        self.meets(2, job="4711.0")
        self.finish(first, other)

    def test_a_first_node_whose_name_is_another_one_on_each_machine_is_refused(self):
        other = self.task(1, **step(1, nodes="localhost,h1"))
        self.assertEqual(other.ended(), 1)
        other.says("localhost is 127.0.0.1 here, but another machine")


class MpiRuns(JobTest):
    def test_each_process_is_a_node_of_one_machine(self):
        self.script(HELLO)
        processes = [
            self.start("./worker.sh", env={**self.environment, "OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_LOCAL_SIZE": "3",
                                           "OMPI_COMM_WORLD_RANK": str(rank), "PMIX_NAMESPACE": self.mark})
            for rank in range(3)
        ]
        for process in processes:
            _, err = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 0, err)
        self.assertEqual(sorted(self.lines_of("ranks")), [
            f"rank {rank} of 3, local {rank} of 3, node {rank}, job {self.mark}" for rank in range(3)])


class BareAllocation(JobTest):
    ALLOCATION = {"SLURM_JOB_ID": "4711", "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_CPUS_PER_NODE": "8(x2)"}

    def setUp(self):
        super().setUp()
        self.path = self.folder / "bin"
        self.path.mkdir()
        self.environment.update(self.ALLOCATION, PATH=f"{self.path}:/usr/bin:/bin")

    def srun(self, text):
        program = self.path / "srun"
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)

    def test_becomes_srun_once(self):
        self.srun('echo $$ "$@" > called; env > environment; shift 4; exec "$@"')
        self.script("#!/bin/sh\nexit 0\n")
        job = self.start("--nnodes", "1:2", "./worker.sh", "a b")
        _, err = job.communicate(timeout=PATIENCE)
        self.assertEqual(job.returncode, 2, err)  # Of the muster that this srun starts, in no step.
        self.assertRegex(err, r"srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=8 \S+ "
                              r"--nnodes 1:2 \./worker\.sh 'a b'\n")
        self.assertIn("srun has started muster already (MUSTER_RELAUNCHED)", err)
        self.assertEqual(self.lines_of("called"), [
            f"{job.pid} --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=8 {MUSTER} --nnodes 1:2 ./worker.sh a b"])
        self.assertIn("MUSTER_RELAUNCHED=4711", self.lines_of("environment"))

    def test_signals_and_the_exit_code_are_those_of_srun(self):
        self.srun("trap 'exit 77' USR1; touch ready; while :; do sleep 0.1; done")
        self.script("#!/bin/sh\nexit 0\n")
        job = self.start("./worker.sh")
        wait_for((self.folder / "ready").exists, "srun to be there")
        job.send_signal(signal.SIGUSR1)
        self.assertEqual(job.wait(PATIENCE), 77)

    def test_without_srun_it_says_the_command_and_waits_for_nobody(self):
        if shutil.which("srun", path="/usr/bin:/bin"):
            for name in ("sh", "flock"):
                (self.path / name).symlink_to(shutil.which(name))
            self.environment["PATH"] = str(self.path)
        self.script("#!/bin/sh\nexit 0\n")
        code, out, err = self.run_job("./worker.sh")
        self.assertEqual((code, out), (2, ""))
        self.assertIn(f"srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=8 {MUSTER} ./worker.sh", err)
        code, _, err = self.run_job("--nnodes", "1", "./worker.sh")
        self.assertEqual(code, 0, err)

    def test_of_one_node_changes_nothing(self):
        self.environment["SLURM_JOB_NUM_NODES"] = "1"
        self.script(HELLO)
        code, _, err = self.run_job("./worker.sh")
        self.assertEqual(code, 0, err)
        self.assertNotIn("from Slurm", err)
        self.assertRegex("".join(self.lines_of("ranks")), "^rank 0 of 1, ")


class Explain(JobTest):
    def explain(self, *arguments, **variables):
        code, out, err = self.run_job("--explain", *arguments, env={**self.environment, **variables})
        self.assertEqual(code, 0, err)
        return out

    def test_says_every_value_and_its_origin_and_starts_nothing(self):
        (self.folder / "job.toml").write_text("max-restarts = 3\n")
        self.script("#!/bin/sh\ntouch started\n")
        said = self.explain("--config", "job.toml", "--nproc-per-node", "2", "./worker.sh", "a b", PET_ROLE="trainer",
                            **step(1, nodes="no-such-host.invalid,h1"))
        for flag, value, origin in (("nproc-per-node", "2", "--nproc-per-node"), ("role", "trainer", "PET_ROLE"),
                                    ("max-restarts", "3", r"job\.toml:1: max-restarts"), ("nnodes", "2", "SLURM_STEP_NUM_TASKS"),
                                    ("node-rank", "1", "SLURM_PROCID"), ("shutdown-timeout", "25000ms", "default"),
                                    ("rdzv-endpoint", r"no-such-host\.invalid:24711", "the first of SLURM_STEP_NODELIST"),
                                    ("lease", "10s", "default"), ("fold", "off", "default")):
            self.assertRegex(said, rf"(?m)^  {flag} +{value} +{origin}$")
        for line in ("./worker.sh 'a b'", "RANK=3", "WORLD_SIZE=4", "LOCAL_RANK=1", "ROLE_NAME=trainer",
                     "MASTER_PORT=<by the rendezvous>", "TORCHELASTIC_RUN_ID=4711.0", "TORCHELASTIC_MAX_RESTARTS=3"):
            self.assertRegex(said, rf"(?m)^ +{re.escape(line)}$")
        self.assertFalse((self.folder / "started").exists())

    def test_notes_a_script_that_is_missing_and_needs_none(self):
        self.assertRegex(self.explain("missing.py"), r"(?m)^  none yet: no file 'missing\.py'")
        self.assertIn("  none yet: ", self.explain())

    def test_shows_the_srun_of_a_bare_allocation(self):
        said = self.explain("x", **BareAllocation.ALLOCATION)
        self.assertIn("\n  srun --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpus-per-task=8 and this command line\n", said)


class Slurm(JobTest):
    """Debian's Slurm, on two hosts that are network namespaces."""

    CLUSTER = ROOT / "tests/tools/slurm-cluster.sh"

    @classmethod
    def setUpClass(cls):
        if os.environ.get("MUSTER_LONG") != "1":
            raise unittest.SkipTest("a real Slurm is started by ctest -L long")
        needs_cluster()
        missing = [name for name in ("slurmctld", "slurmd", "munged", "srun")
                   if not shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")]
        if missing:
            why = f"needs {', '.join(missing)}: run ./x setup test"
            if os.environ.get("CI") == "true":
                raise AssertionError(why)
            raise unittest.SkipTest(why)
        state = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, state)
        cls.place = {"NETNS_CLUSTER": f"slurm{os.getpid()}", "SLURM_CLUSTER_STATE": state}
        cls.addClassCleanup(cls.cluster, "down")
        cls.cluster("up", 2)

    @classmethod
    def cluster(cls, *words):
        run = subprocess.run([cls.CLUSTER, *map(str, words)], env={**os.environ, **cls.place}, capture_output=True, text=True,
                             timeout=PATIENCE, check=False)
        if run.returncode != 0:
            raise AssertionError(f"slurm-cluster.sh {words}: {run.stdout}{run.stderr}")

    def slurm(self, *words):
        """Runs a program of Slurm's on the first host, and returns (exit code, output)."""
        run = subprocess.run([self.CLUSTER, "exec", *map(str, words)], cwd=self.folder,
                             env={**self.environment, **self.place}, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE, check=False)
        return run.returncode, run.stdout

    def test_srun_needs_no_flag(self):
        self.script(HELLO)
        code, said = self.slurm("srun", "--nodes=2", "--gpus-per-node=2", "--cpus-per-task=2", MUSTER, "./worker.sh")
        self.assertEqual(code, 0, said)
        ranks = sorted(self.lines_of("ranks"))
        self.assertEqual([line.split(", job ")[0] for line in ranks], [
            f"rank {rank} of 4, local {rank % 2} of 2, node {rank // 2}" for rank in range(4)], said)

    def test_one_task_a_gpu(self):
        self.script(HELLO)
        code, said = self.slurm("srun", "--nodes=2", "--ntasks-per-node=2", "--gpus-per-task=1", MUSTER, "./worker.sh")
        self.assertEqual(code, 0, said)
        ranks = sorted(self.lines_of("ranks"))
        self.assertEqual([line.split(", job ")[0] for line in ranks], [
            f"rank {rank} of 4, local {rank % 2} of 2, node {rank}" for rank in range(4)], said)
        self.assertIn("srun --gpu-bind=none", said)

    def test_sbatch_needs_no_srun(self):
        both = 'until test "$(wc -l < ranks)" = 2; do sleep 0.02; done'
        self.script(f'{HELLO}echo "$WORD" >> words\ntest "$RANK" = 1 || exit 0\n{both}\nexit 7\n')
        for flags in (["--cpus-per-task=4"], ["--gpus-per-node=1", "--export=NONE"]):
            code, said = self.slurm("sbatch", "--wait", "--nodes=2", *flags, "--output=out", "--wrap",
                                    f"export WORD=scripts; exec {MUSTER} ./worker.sh")
            said += (self.folder / "out").read_text()
            self.assertEqual(code, 7, said)
            ranks = sorted(self.lines_of("ranks"))
            self.assertEqual([line.split(", job ")[0] for line in ranks], [
                f"rank {rank} of 2, local 0 of 1, node {rank}" for rank in range(2)], said)
            self.assertEqual(self.lines_of("words"), ["scripts"] * 2)  # What the script has set reaches the workers.
            for name in ("ranks", "words"):
                (self.folder / name).unlink()

    def test_sbatch_that_asked_for_gpus_by_task_has_them_all_on_each_node(self):
        self.script(HELLO)
        code, said = self.slurm("sbatch", "--wait", "--nodes=2", "--ntasks-per-node=2", "--gpus-per-task=1", "--output=out",
                                "--wrap", f"{MUSTER} ./worker.sh")
        said += (self.folder / "out").read_text()
        self.assertEqual(code, 0, said)
        self.assertEqual([line.split(", job ")[0] for line in sorted(self.lines_of("ranks"))], [
            f"rank {rank} of 4, local {rank % 2} of 2, node {rank // 2}" for rank in range(4)], said)

    def test_sbatch_from_within_a_step_is_not_taken_for_that_step(self):
        self.script(HELLO)
        code, said = self.slurm("srun", "--nodes=1", "--overcommit", "sbatch", "--wait", "--nodes=2", "--overcommit",
                                "--output=out", "--wrap", f"{MUSTER} ./worker.sh")
        said += (self.folder / "out").read_text()
        self.assertEqual(code, 0, said)
        self.assertEqual(len(self.lines_of("ranks")), 2, said)

    def test_a_signal_of_the_schedulers_reaches_every_worker(self):
        self.script(f"{HELLO}trap 'touch saved.$RANK; exit 0' USR1\ntouch ready.$RANK\nwhile :; do sleep 0.1; done\n")
        code, said = self.slurm("sbatch", "--parsable", "--nodes=2", "--output=out", "--wrap", f"{MUSTER} ./worker.sh")
        self.assertEqual(code, 0, said)
        wait_for(lambda: len(list(self.folder.glob("ready.*"))) == 2, "the workers to be there")
        self.assertEqual(self.slurm("scancel", "--signal=USR1", said.strip())[0], 0)
        wait_for(lambda: len(list(self.folder.glob("saved.*"))) == 2, "the workers to save")
        wait_for(lambda: not self.slurm("squeue", "--noheader", "--jobs", said.strip(), "--states=R,CG")[1].strip(), "the job to end")

    def test_an_interrupt_ends_a_job_that_became_srun(self):
        self.script(f"{HELLO}trap 'touch got.$RANK; exit 0' INT TERM\ntouch ready.$RANK\nwhile :; do sleep 0.1; done\n")
        code, said = self.slurm("salloc", "--nodes=2", "sh", "-c", f"env --default-signal=INT {MUSTER} ./worker.sh & "
                                "until test -e ready.0 -a -e ready.1; do sleep 0.02; done; kill -INT $!; wait $!")
        self.assertEqual(code, 130, said)
        self.assertIn("the launcher got SIGINT", said)
        self.assertEqual(len(list(self.folder.glob("got.*"))), 2, said)

    def test_fewer_processors_than_the_job_has_are_warned_of(self):
        self.script("#!/bin/sh\nexit 0\n")
        _, said = self.slurm("sbatch", "--wait", "--nodes=2", "--cpus-per-task=4", "--output=out", "--wrap",
                             f"srun --cpus-per-task=1 --ntasks-per-node=1 {MUSTER} ./worker.sh")
        said += (self.folder / "out").read_text()
        self.assertIn("has 1 processor here (SLURM_CPUS_ON_NODE) for 1 worker, of 4 that the job has: give srun "
                      "--cpus-per-task=4", said)

    def test_one_node_changes_nothing(self):
        self.script(HELLO)
        code, said = self.slurm("sbatch", "--wait", "--nodes=1", "--output=out", "--wrap", f"{MUSTER} ./worker.sh")
        said += (self.folder / "out").read_text()
        self.assertEqual(code, 0, said)
        self.assertNotIn("from Slurm", said)
        self.assertRegex("".join(self.lines_of("ranks")), "^rank 0 of 1, ")


if __name__ == "__main__":
    unittest.main()
