"""Workers that leave their process group and make another one, in the same processes.

The second group meets under a prefix of its own. Without it a fast rank could read where a peer was
in the first group: the store keeps keys for as long as the workers live, under torchrun too.
"""

import datetime
import os
import sys

import torch
import torch.distributed as dist

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def take_part(group_number):
    total = torch.tensor([rank + group_number])
    dist.all_reduce(total)
    sys.stdout.write(f"group {group_number} rank {rank} sum {total.item()}\n")


dist.init_process_group("gloo")
take_part(1)
dist.destroy_process_group()

address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
store = dist.TCPStore(address, port, world, False, datetime.timedelta(minutes=1))
store = dist.PrefixStore("second", store)
dist.init_process_group("gloo", store=store, rank=rank, world_size=world)
take_part(2)
dist.destroy_process_group()
