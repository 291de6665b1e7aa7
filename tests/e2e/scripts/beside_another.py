"""beside_another.py MY_FILE OTHER_FILE NUMBER: a job that meets while another one runs beside it.

Rank 0 says by a file that its group has met, and goes on when the other job's has.
"""

import pathlib
import sys
import time

import torch
import torch.distributed as dist

OTHER_JOB_SECONDS = 120  # For the other job to start.

mine, others, number = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
dist.init_process_group("gloo")
dist.barrier()
if dist.get_rank() == 0:
    mine.touch()
    deadline = time.monotonic() + OTHER_JOB_SECONDS
    while not others.exists():
        if time.monotonic() > deadline:
            sys.exit("the other job never met")
        time.sleep(0.01)
total = torch.tensor([number])
dist.all_reduce(total)
sys.stdout.write(f"rank {dist.get_rank()} of {dist.get_world_size()} sum {total.item()}\n")
dist.destroy_process_group()
