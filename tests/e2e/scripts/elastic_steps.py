"""elastic_steps.py FOLDER: counts steps with an all-reduce each, until FOLDER/orders/end is there.

What it has counted is in FOLDER/checkpoint, which rank 0 writes; a new attempt goes on from there. Each worker holds the
lock of its rank for its life, and says in FOLDER/log what `member`, the worker without PyTorch, says there.
"""

import datetime
import fcntl
import os
import pathlib
import socket
import sys
import time

folder = pathlib.Path(sys.argv[1])
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
job = os.environ["TORCHELASTIC_RUN_ID"].replace("/", "_")


def append(name, line):
    with open(folder / name, "a", encoding="utf-8") as file:
        file.write(line + "\n")


lock = open(folder / f"locks/{job}.{rank}", "w", encoding="utf-8")
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    append("locks/violations", f"a second holder of rank {rank}")
    sys.exit(99)

import torch  # noqa: E402  Not before the lock: it takes seconds.
import torch.distributed as dist  # noqa: E402

PAUSE = 0.02  # Seconds a step.
KEYS = {"local": "LOCAL_RANK", "local_world": "LOCAL_WORLD_SIZE", "node": "GROUP_RANK", "nodes": "GROUP_WORLD_SIZE",
        "restarts": "TORCHELASTIC_RESTART_COUNT", "master": "MASTER_ADDR", "port": "MASTER_PORT"}


def say(event, **more):
    facts = {"at": time.monotonic_ns(), "host": socket.gethostname(), "pid": os.getpid(), "job": job, "rank": rank,
             "world": world, **{name: os.environ.get(variable, "") for name, variable in KEYS.items()}, **more}
    append("log", " ".join([event, *(f"{name}={value}" for name, value in facts.items())]))


say("began")
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=120))
names = [None] * world
dist.all_gather_object(names, f"{socket.gethostname()}/{os.getpid()}")
checkpoint = folder / "checkpoint"
state = torch.zeros(2, dtype=torch.long)  # The step, and whether this is the end.
if rank == 0 and checkpoint.exists():
    state[0] = int(checkpoint.read_text())
say("met", round=names[0])
while True:
    if rank == 0:
        state[1] = int((folder / "orders/end").exists())
    dist.broadcast(state, 0)
    if state[1]:
        break
    one = torch.ones(1)
    dist.all_reduce(one)
    if one.item() != world:
        raise SystemExit(f"{one.item()} of {world} ranks took part")
    state[0] += 1
    if rank == 0:
        partial = checkpoint.with_suffix(".partial")
        partial.write_text(str(state[0].item()))
        partial.rename(checkpoint)
    time.sleep(PAUSE)
dist.barrier()
dist.destroy_process_group()
say("told")
