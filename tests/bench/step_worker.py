"""Takes small steps of an optimizer, and prints what one costs: the lower quartile of blocks of them.

    step_worker.py plain|tracked BLOCKS
"""

import json
import sys
import time

import torch

BLOCK = 200


def main():
    is_tracked, blocks = sys.argv[1] == "tracked", int(sys.argv[2])
    torch.set_num_threads(1)
    weight = torch.nn.Parameter(torch.zeros(1))
    weight.grad = torch.ones(1)
    optimizer = torch.optim.SGD([weight], lr=0.1)

    def block():
        began = time.perf_counter()
        for _ in range(BLOCK):
            optimizer.step()
        return (time.perf_counter() - began) / BLOCK

    block()
    times = sorted(block() for _ in range(blocks))
    counted = optimizer.__dict__.get("_muster_steps", 0)
    if counted != (BLOCK * (blocks + 1) if is_tracked else 0):
        sys.exit(f"{counted} steps were counted")
    print(json.dumps({"us_per_step": 1e6 * times[len(times) // 4]}))


if __name__ == "__main__":
    main()
