"""first_prepares.py FOLDER: rank 0 makes a data set once, while the others wait in a barrier."""

import os
import pathlib
import sys

import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
data_set = pathlib.Path(sys.argv[1], "data set")

if rank != 0:
    dist.barrier()
if not data_set.exists():
    sys.stdout.write(f"prepared by rank {rank}\n")
    unfinished = data_set.with_suffix(".unfinished")
    unfinished.write_text("prepared")
    os.replace(unfinished, data_set)
if rank == 0:
    dist.barrier()

sys.stdout.write(f"rank {rank} found it {data_set.read_text()}\n")
dist.barrier()
dist.destroy_process_group()
