"""late_after_restart.py FOLDER: in the first attempt rank 1 dies; in the second it comes late.

Where the first attempt's addresses are still in the store, rank 0 takes rank 1's from there and
calls a process that is dead. Rank 1 is late by the time that it takes to import torch.
"""

import os
import pathlib
import sys
import time

IMPORT_SECONDS = 60  # For rank 0 to import torch, at most.

rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
about_to_meet = pathlib.Path(sys.argv[1], f"about to meet {attempt}")

if rank == 1 and attempt == 1:
    deadline = time.monotonic() + IMPORT_SECONDS
    while not about_to_meet.exists():
        if time.monotonic() > deadline:
            sys.exit("rank 0 never came")
        time.sleep(0.01)

import torch
import torch.distributed as dist

if rank == 0:
    about_to_meet.touch()
dist.init_process_group("gloo")
total = torch.tensor([rank + 1])
dist.all_reduce(total)
if rank == 1 and attempt == 0:
    sys.exit(7)
dist.barrier()
sys.stdout.write(f"rank {rank} attempt {attempt} sum {total.item()}\n")
dist.destroy_process_group()
