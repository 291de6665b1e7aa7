"""Steps optimizers in the ways that scripts do, another one in each rank, and prints what its beacon's page says then:
`CASE: STEP`. It knows nothing of muster."""

import os
import struct
import subprocess
import sys

import torch

torch.set_num_threads(1)


def parameter():
    made = torch.nn.Parameter(torch.zeros(2))
    made.grad = torch.ones(2)
    return made


def plain():
    optimizer = torch.optim.SGD([parameter()], lr=0.1)
    for _ in range(5):
        optimizer.step()


def two_in_turn():
    first, second = torch.optim.Adam([parameter()]), torch.optim.SGD([parameter()], lr=0.1)
    for _ in range(4):
        first.step()
        second.step()


def scheduled():
    optimizer = torch.optim.AdamW([parameter()])
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    for _ in range(6):
        optimizer.step()
        scheduler.step()


def own_class():
    class Mine(torch.optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    optimizer = Mine([parameter()], lr=0.1)
    for _ in range(3):
        optimizer.step()


def resumed():
    weight = parameter()
    before = torch.optim.Adam([weight])
    state = before.state_dict()
    state["state"] = {0: {"step": torch.tensor(1000.0), "exp_avg": torch.zeros(2), "exp_avg_sq": torch.zeros(2)}}
    optimizer = torch.optim.Adam([weight])
    optimizer.load_state_dict(state)
    for _ in range(2):
        optimizer.step()


def scaled():
    weight = parameter()
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scaler = torch.cuda.amp.GradScaler(enabled=False)
    for _ in range(2):
        scaler.step(optimizer)
        scaler.update()


def beside_a_child():
    plain()
    other = "import torch; w = torch.nn.Parameter(torch.zeros(1)); w.grad = torch.ones(1); o = torch.optim.SGD([w], lr=1)\n"
    subprocess.run([sys.executable, "-c", other + "for _ in range(100): o.step()"], check=True)


CASES = (plain, two_in_turn, scheduled, own_class, resumed, scaled, beside_a_child)

case = CASES[int(os.environ["RANK"])]
case()
with open(os.environ["MUSTER_BEACON"], "rb") as page:
    page.seek(136)
    print(f"{case.__name__}: {struct.unpack('Q', page.read(8))[0]}\n", end="", flush=True)
