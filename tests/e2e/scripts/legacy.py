"""legacy.py --local_rank=N --name NAME: a script for the launcher that PyTorch had before torchrun.

It takes its local rank from the command line, where newer launchers put it into the environment.
"""

import argparse
import sys

import torch
import torch.distributed as dist

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", "--local-rank", type=int, required=True)
parser.add_argument("--name", required=True)
arguments = parser.parse_args()

dist.init_process_group("gloo", init_method="env://")
total = torch.tensor([arguments.local_rank + 1])
dist.all_reduce(total)
sys.stdout.write(f"{' '.join(sys.argv[1:])}, sum {total.item()}\n")
dist.destroy_process_group()
