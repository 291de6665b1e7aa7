"""Trains a small network on handwritten digits, on several workers that can be killed at any time.

It is an ordinary PyTorch script: DistributedDataParallel over Gloo, started by anything that sets
RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, for instance

    muster --nproc-per-node 4 train.py --out /tmp/digits

Rank 0 saves a checkpoint after each epoch; started again with the same --out, the job goes on from
there. An epoch that was cut short is done again from its beginning, with the same digits in the
same order and the same dropout. So the weights that come out are the same to the bit however often
the workers died on the way; result.json has their sha256. This holds for one PyTorch, one kind of
machine and one number of workers.
"""

import argparse
import csv
import gzip
import hashlib
import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

SEED = 20240229
BATCH = 16  # Digits a worker and step.
TEST_EVERY = 5  # Each fifth digit is kept for the test.


def load_digits():
    """The training and the test set: images of 1 x 8 x 8, values of 0 to 1, and their digits."""
    with gzip.open(Path(__file__).with_name("digits.csv.gz"), "rt", newline="") as lines:
        rows = torch.tensor([[float(value) for value in row] for row in csv.reader(lines)])
    images, labels = rows[:, :64].reshape(-1, 1, 8, 8) / 16, rows[:, 64].long()
    is_test = torch.arange(len(rows)) % TEST_EVERY == 0
    training_set = TensorDataset(images[~is_test], labels[~is_test])
    test_set = TensorDataset(images[is_test], labels[is_test])
    return training_set, test_set


def make_network():
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(32 * 4 * 4, 64),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(64, 10),
    )


def settle_buckets(model):
    """Makes DDP arrange its gradient buckets now.

    DDP packs gradients into buckets and packs them anew, in the order in which they really became
    ready, once it has seen one backward pass. Where a gradient lies in its bucket decides in which
    order the workers' shares are added up, and that changes the last bits of the sum. A resumed job
    would make its first step with the first arrangement where an undisturbed one had the second.
    One backward pass on a blank image, whose gradients are thrown away, puts that behind us.
    """
    model(torch.zeros(1, 1, 8, 8)).sum().backward()
    model.zero_grad()


def all_sum(*values):
    """The sums of some numbers over all workers."""
    total = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(total)
    return total.tolist()


def evaluate(network, test_set):
    """Accuracy on the test set; each worker looks at its share of it."""
    images, labels = test_set[dist.get_rank() :: dist.get_world_size()]
    network.eval()
    with torch.no_grad():
        right = (network(images).argmax(dim=1) == labels).sum().item()
    network.train()
    right, seen = all_sum(right, len(labels))
    return right / seen


def save_atomically(state, path):
    """Whoever reads `path` sees the old file or the new one, never half of one."""
    unfinished = path.with_suffix(".unfinished")
    with open(unfinished, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)


def sha256_of(network):
    """A hash of all weights, in the order of their names."""
    digest = hashlib.sha256()
    for name, weight in sorted(network.state_dict().items()):
        digest.update(name.encode())
        digest.update(bytes(weight.flatten().view(torch.uint8).tolist()))
    return digest.hexdigest()


def train(arguments):
    """Trains from the checkpoint (or the beginning) to the last epoch and saves the result."""
    rank, world_size = dist.get_rank(), dist.get_world_size()

    def say(text):
        if rank == 0:
            print(text, flush=True)

    training_set, test_set = load_digits()
    sampler = DistributedSampler(training_set, seed=SEED)
    loader = DataLoader(training_set, batch_size=BATCH, sampler=sampler)

    network = make_network()
    model = DistributedDataParallel(network)
    settle_buckets(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=arguments.epochs)
    loss_function = nn.CrossEntropyLoss()

    # Every worker reads the checkpoint itself: nobody writes a new one before all have met in the
    # first step.
    arguments.out.mkdir(parents=True, exist_ok=True)
    checkpoint = arguments.out / "checkpoint.pt"
    first_epoch = 0
    if checkpoint.exists():
        state = torch.load(checkpoint, map_location="cpu")
        network.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        first_epoch = state["epochs_done"]
    say(f"torch {torch.__version__}, {world_size} workers, starting at epoch {first_epoch}")

    for epoch in range(first_epoch, arguments.epochs):
        sampler.set_epoch(epoch)
        torch.manual_seed(SEED + epoch * world_size + rank)  # Dropout differs by epoch and rank.
        loss_sum = 0.0
        for batch, (images, labels) in enumerate(loader, start=1):
            optimizer.zero_grad()
            loss = loss_function(model(images), labels)
            loss.backward()
            optimizer.step()
            loss_sum += loss.item()
            step = epoch * len(loader) + batch
            if step % arguments.log_every == 0:
                say(f"epoch {epoch} step {step} loss {loss.item():.4f}")
        scheduler.step()

        mean_loss = all_sum(loss_sum)[0] / (len(loader) * world_size)
        accuracy = evaluate(network, test_set)
        if rank == 0:
            save_atomically(
                {
                    "model": network.state_dict(),
                    "optimizer": optimizer.state_dict(),
                    "scheduler": scheduler.state_dict(),
                    "epochs_done": epoch + 1,
                },
                checkpoint,
            )
        say(
            f"epoch {epoch} done, step {step}, mean loss {mean_loss:.4f}, "
            f"test accuracy {accuracy:.2%}"
        )

    accuracy = evaluate(network, test_set)
    if rank == 0:
        result = {
            "torch": torch.__version__,
            "workers": world_size,
            "first_epoch": first_epoch,
            "accuracy": accuracy,
            "sha256": sha256_of(network),
        }
        (arguments.out / "result.json").write_text(json.dumps(result, indent=2) + "\n")
        say(f"test accuracy {accuracy:.2%}, weights {result['sha256']}")


def parse_arguments():
    parser = argparse.ArgumentParser(description="Train a small network on handwritten digits.")
    parser.add_argument("--out", type=Path, required=True, help="folder for checkpoint and result")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--log-every", type=int, default=10, help="steps from one line to the next")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    torch.set_num_threads(1)  # The network is small: more threads would be in each other's way.
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(SEED)

    dist.init_process_group("gloo")
    # A function, so that DDP's object is gone before its group. It holds the group too, and PyTorch
    # 1.13 can hang when the last to let go of a group is DDP.
    train(arguments)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
