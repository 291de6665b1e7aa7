"""meet_by_address.py [PORT]: workers that give the meeting point as a tcp:// address.

Written as for PyTorch before it knew env://. Without PORT they use the launcher's.
"""

import os
import sys

import torch
import torch.distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
port = sys.argv[1] if len(sys.argv) > 1 else os.environ["MASTER_PORT"]
meeting_point = f"tcp://{os.environ['MASTER_ADDR']}:{port}"
dist.init_process_group("gloo", init_method=meeting_point, rank=rank, world_size=world)

total = torch.tensor([rank + 1])
dist.all_reduce(total)
sys.stdout.write(f"rank {rank} sum {total.item()}\n")
dist.destroy_process_group()
