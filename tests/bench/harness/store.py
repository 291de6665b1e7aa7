"""The store under load, beside PyTorch's libuv server and a bare epoll loop that get the same."""

import contextlib
import dataclasses

from harness import servers, tools


@dataclasses.dataclass(frozen=True)
class Cell:
    """One load: an operation, its value's size, connections, and operations in flight on each."""
    operation: str
    value_bytes: int
    connections: int
    depth: int

    def about(self):
        return dataclasses.asdict(self)


# Those with a budget: single requests, so that one reply is one request's.
BUDGET_OPERATIONS = (("ping", 16), ("get", 16), ("add", 16))
OPERATIONS = (("ping", 16), ("add", 16), ("check", 16),
              *((name, size) for name in ("get", "set", "wait_get") for size in (16, 100, 10_000)))


@dataclasses.dataclass(frozen=True)
class Plan:
    """How much is measured. Repetitions are taken in turns by all servers: A B C, A B C."""
    budget_repetitions: int
    budget_seconds: float
    repetitions: int
    seconds: float
    connections: tuple
    many: int
    crowds: tuple  # Of (connections, repetitions).
    wakes: int


FULL = Plan(budget_repetitions=9, budget_seconds=0.35, repetitions=5, seconds=0.12,
            connections=(1, 8, 64), many=1_000, crowds=((5_000, 5), (10_000, 3)), wakes=5)
ON_THEIR_WAY = 512  # As kMostOnTheirWay of the load generator.
QUICK = Plan(budget_repetitions=1, budget_seconds=0.05, repetitions=1, seconds=0.02,
             connections=(1, 8), many=100, crowds=((200, 1),), wakes=2)


def budget_cells():
    return [Cell(name, size, 64, depth) for depth in (1, 16) for name, size in BUDGET_OPERATIONS]


def matrix_cells(plan):
    cells = [Cell(name, size, connections, depth) for name, size in OPERATIONS
             for connections in plan.connections for depth in (1, 16)]
    cells += [Cell(name, 16, plan.many, 1) for name in ("add", "get")]
    return [cell for cell in cells if cell not in budget_cells()]


def load_command(programs, server, cell, seconds):
    command = [programs.store_load, "run", "--address", server.address, "--server", str(server.pid),
               "--operation", cell.operation, "--value-bytes", str(cell.value_bytes),
               "--connections", str(cell.connections), "--depth", str(cell.depth),
               "--seconds", str(seconds)]
    return command + (["--floor"] if server.name == "floor" else [])


def has_floor(cell):
    """PyTorch's get is two round trips, which a floor that knows one size of request can't play."""
    return not (cell.operation == "wait_get" and cell.depth == 1)


def run(programs, journal, plan, with_peer=True):
    server_cpu, _ = tools.two_cpus()
    commands = servers.commands(programs, with_peer)
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(servers.Server(name, command, server_cpu))
                   for name, command in commands.items()]
        for cell in budget_cells():
            take_turns(programs, journal, running, cell,
                       plan.budget_repetitions, plan.budget_seconds)
        for cell in matrix_cells(plan):
            take_turns(programs, journal, running, cell, plan.repetitions, plan.seconds)
    for connections, repetitions in plan.crowds:
        for repetition in range(repetitions):
            journal.say(f"store: {connections} connections opened and woken, {repetition + 1} of "
                        f"{repetitions}")
            for name, command in commands.items():
                crowd(programs, journal, name, command, connections, repetition, plan.wakes)


def take_turns(programs, journal, running, cell, repetitions, seconds):
    _, load_cpu = tools.two_cpus()
    journal.say(f"store: {cell.operation} of {cell.value_bytes} bytes, {cell.connections} "
                f"connections, {cell.depth} in flight")
    for repetition in range(repetitions):
        for server in running:
            if server.name == "floor" and not has_floor(cell):
                continue
            about = {"part": "load", "server": server.name, "repetition": repetition}
            command = load_command(programs, server, cell, seconds)
            journal.take(about | cell.about(), command, load_cpu)


def crowd(programs, journal, name, command, connections, repetition, wakes):
    """A fresh server each time: memory of connections that are gone would hide that of new ones."""
    server_cpu, load_cpu = tools.two_cpus()
    with servers.Server(name, command, server_cpu) as server:
        load = [programs.store_load, "crowd", "--address", server.address,
                "--server", str(server.pid), "--connections", str(connections),
                "--wakes", str(wakes)]
        about = {"part": "crowd", "server": name, "connections": connections}
        journal.take(about | {"repetition": repetition},
                     load + (["--floor"] if name == "floor" else []), load_cpu)
