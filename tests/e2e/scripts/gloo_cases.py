"""gloo_cases.py WORLD_SIZE:PORT...: Gloo groups of some sizes that meet at stores on 127.0.0.1.

Run by store_clients_test.py with each version of PyTorch. The ranks are forked from this process,
which has imported torch and started no thread yet: importing it in each would take most of the
time. They find the store as under a launcher. A case is good when it was good on every rank.
"""

import datetime
import json
import os
import signal
import sys
import traceback

import torch
import torch.distributed as dist
from case_list import SOON, case, expect, outcomes, report

TIMEOUT = datetime.timedelta(seconds=SOON)


@case
def init_from_the_environment(rank, world):
    expect((dist.get_rank(), dist.get_world_size()), (rank, world))
    expect(dist.get_backend(), "gloo")


@case
def all_reduce(rank, world):
    tensor = torch.tensor([rank + 1, 10 * rank])
    dist.all_reduce(tensor)
    expect(tensor.tolist(), [world * (world + 1) // 2, 10 * world * (world - 1) // 2])


@case
def all_reduce_of_a_large_tensor(rank, world):
    tensor = torch.full((1 << 20,), float(rank))
    dist.all_reduce(tensor, op=dist.ReduceOp.MAX)
    expect(bool((tensor == world - 1).all()), True)


@case
def barrier(rank, world):
    for _ in range(3):
        dist.barrier()


@case
def monitored_barrier(rank, world):
    dist.monitored_barrier(timeout=TIMEOUT)


@case
def broadcast(rank, world):
    tensor = torch.full((3,), rank)
    dist.broadcast(tensor, src=world - 1)
    expect(tensor.tolist(), [world - 1] * 3)


@case
def all_gather(rank, world):
    parts = [torch.zeros(1, dtype=torch.long) for _ in range(world)]
    dist.all_gather(parts, torch.tensor([rank * rank]))
    expect([part.item() for part in parts], [other * other for other in range(world)])


@case
def scatter_and_gather(rank, world):
    mine = torch.zeros(1)
    dist.scatter(mine, [torch.ones(1) * other for other in range(world)] if rank == 0 else None)
    expect(mine.item(), rank)
    parts = [torch.zeros(1) for _ in range(world)] if rank == 0 else None
    dist.gather(mine, parts)
    if rank == 0:
        expect([part.item() for part in parts], list(range(world)))


@case
def send_around_a_ring(rank, world):
    received = torch.zeros(1)
    sending = dist.isend(torch.ones(1) * rank, (rank + 1) % world)
    dist.recv(received, (rank - 1) % world)
    sending.wait()
    expect(received.item(), (rank - 1) % world)


@case
def all_gather_object(rank, world):
    objects = [None] * world
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * rank})
    expect(objects, [{"rank": other, "text": "x" * other} for other in range(world)])


@case
def broadcast_object_list(rank, world):
    objects = [("from", rank), None]
    dist.broadcast_object_list(objects, src=0)
    expect(objects, [("from", 0), None])


@case
def new_group_of_two(rank, world):
    group = dist.new_group([0, world - 1], timeout=TIMEOUT)
    if rank in (0, world - 1):
        tensor = torch.tensor([rank])
        dist.all_reduce(tensor, group=group)
        expect(tensor.item(), world - 1)


@case
def new_group_for_each_rank_and_for_all(rank, world):
    alone = [dist.new_group([other], timeout=TIMEOUT) for other in range(world)]
    expect(dist.get_world_size(alone[rank]), 1)
    together = dist.new_group(timeout=TIMEOUT)
    tensor = torch.ones(1)
    dist.all_reduce(tensor, group=together)
    expect(tensor.item(), world)


@case
def destroy_of_a_group_leaves_the_others(rank, world):
    group = dist.new_group(timeout=TIMEOUT)
    dist.barrier(group)
    dist.destroy_process_group(group)
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    expect(tensor.item(), world)


@case
def destroy_of_all_groups(rank, world):
    dist.barrier()
    dist.destroy_process_group()
    expect(dist.is_initialized(), False)


def be_rank(rank, world, port):
    """Runs all cases as a worker; returns the problems by case."""
    os.environ.update(
        RANK=str(rank),
        WORLD_SIZE=str(world),
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        TORCHELASTIC_USE_AGENT_STORE="True",
        TORCHELASTIC_RESTART_COUNT="0",
    )
    dist.init_process_group("gloo", timeout=TIMEOUT)
    return dict(outcomes(rank, world))


def fork_rank(rank, world, port):
    """Returns the process's id and a file to which it writes its problems."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid != 0:
        os.close(writer)
        return pid, open(reader)
    code = 1
    try:
        signal.alarm(3 * SOON)  # A rank that hangs ends, so that the others and the test do.
        problems = be_rank(rank, world, port)
        with open(writer, "w") as file:
            json.dump(problems, file)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)  # Not the interpreter's end: PyTorch 1.13's threads may want its lock there.


def run_group(world, port):
    ranks = [fork_rank(rank, world, port) for rank in range(world)]
    problems = {}  # Lists of problems by case.
    for rank, (pid, file) in enumerate(ranks):
        with file:
            text = file.read()
        _, status = os.waitpid(pid, 0)
        if status != 0:
            raise SystemExit(f"rank {rank} of {world} ended with wait status {status}")
        for name, problem in json.loads(text).items():
            problems.setdefault(name, []).extend([f"rank {rank}: {problem}"] if problem else [])
    for name, found in problems.items():
        report(f"{name}, {world} ranks", "\n".join(found) or None)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        run_group(*map(int, argument.split(":")))
