"""The tables of docs/benchmarks.md: ratios first, then medians."""

from harness import budgets, launch, store
from harness.budgets import FLOOR, LIBUV, MUSTER, OURS

LAUNCH = """\
From exec of the launcher to the first instruction of native workers that exit at once. `dash`
starts the same static programs in the background and waits for them. torchrun 1.13 runs with a
monitor interval of 0.1 s: its default of 5 s would add that to the wall time.
"""

COST = """\
Resident memory is the sum over the launcher's own processes (of muster: keeper and agent) while 8
workers stay. The CPU seconds are those of the whole tree, workers included.
"""

RESTART = """\
4 workers that end on SIGTERM at once. One is killed with SIGKILL: from that signal to the first
instructions of the new group.
"""

OUTPUT = """\
Rank 0, or each of 8 workers its share, prints lines of 100 bytes, 200 MiB of them, into a pipe, and
every line must come out of it: from a worker's first instruction to the last byte. The rate counts
what the workers printed.
"""

STEPS = """\
Steps of SGD with one parameter, the cheapest there are: the lower quartile of blocks of 200 in one
worker, and of several workers, with and without in turns, the median.
"""

LOAD = """\
`set` is a SET and the PING that acknowledges it; `wait_get` is what PyTorch's `get` sends: WAIT,
then GET (two round trips with one in flight, one write for both when pipelined). The floor is a
bare epoll loop, one recv and one send per event: it gets as many bytes, sends as many, and does
nothing else.
"""

CROWDS = f"""\
Opened: from the first connect to the last answer; each connection is greeted and then answered one
ADD, at most {store.ON_THEIR_WAY} are on their way at once. Woken: all wait for one key; from the
SET that creates it to the first, middle and last wake-up read. The client side, one process on the
other core, takes as long as the server: CPU shows the server's own part.
"""

MEET = """\
Agents with one worker each on this machine, which is two cores for all of them; the first to bind
serves. From exec of the shell that starts them to the first instruction of native workers. Of
torchrun most is the import of torch, by each agent; for "imports done" all agents have imported it
before the clock starts.
"""

CHANGES = """\
Two agents of `--nnodes 1:2` with one worker each. Killed: from SIGKILL of one agent (the one that
does not serve) to the survivor's worker in a world of one; under torchrun the dead agent's worker
is killed too, and the survivor's, as if it had noticed the loss of its peer: else nothing happens.
Silent: all processes of one node are stopped, with a lease of 2 s. Joined: from the start of a
second agent to the last worker in a world of two. "never": no run of torchrun got there within 110
s.
"""

SWARM = """\
One job on one `musterd`; its agents are simulated by one process, their connections are real.
Joined: from the first connect to the last Assignment. At rest each agent pings five times a lease
of 10 s. Stop: from an agent's farewell to its arrival at the first and at the last of the others;
smaller: to their next Assignment. Replaced: the same, while a spare stands by. Grown: from the
connect of one more agent to the last Assignment of the larger round, 0.5 s of waiting for others
included. Bytes are those of an agent in the middle from its connect to its workers' start; "most"
leaves out that of node rank 0, which alone is told of all nodes.
"""


def number(value, form="{:,.1f}"):
    return "" if value is None else form.format(value)


def ratio(value):
    return number(value, "{:.2f}")


def table(head, rows, numbers_from=1):
    rows = list(rows)
    if not rows:
        return ""
    rule = ["---" if column < numbers_from else "---:" for column in range(len(head))]
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in [head, rule, *rows])


def titled(title, rows, prose=""):
    return "\n".join(part for part in (f"## {title}\n", rows, prose) if part) if rows else ""


def starts(s):
    def row(workers, name):
        about = {"part": "start", "workers": workers}
        who = {"launcher": name}
        of = about | who
        return [
            f"{workers} workers, {name}",
            ratio(s.ratio("last_ms", who, MUSTER, **about)),
            ratio(s.ratio("wall_ms", who, MUSTER, **about)),
            number(s.median("first_ms", **of)),
            number(s.median("last_ms", **of)),
            number(s.least("last_ms", **of)),
            number(s.median("wall_ms", **of)),
            len(s.where(**of)),
        ]

    head = ["", "last worker, times muster's", "wall, times muster's", "first worker ms",
            "last worker ms", "best", "wall ms", "runs"]
    rows = (row(workers, name) for workers in s.each("workers", part="start")
            for name in s.each("launcher", part="start", workers=workers))
    return titled("Launch", table(head, rows), LAUNCH)


def cost(s):
    def row(name):
        of = {"part": "memory", "launcher": name}
        memory = (s.median(figure, **of)
                  for figure in ("processes", "peak_kib", "resident_kib", "pss_kib"))
        cpu = s.median("cpu_s", part="start", launcher=name, workers=8)
        return [name, *(number(value, "{:,.0f}") for value in memory), number(cpu, "{:.4f}")]

    head = ["", "processes", "peak resident KiB", "resident KiB", "proportional KiB",
            "CPU s of a short job of 8"]
    return titled("The launcher's own cost",
                  table(head, map(row, s.each("launcher", part="memory"))), COST)


def restarts(s):
    ours = s.median("last_ms", part="restart", launcher="muster")

    def row(name):
        of = {"part": "restart", "launcher": name}
        last = s.median("last_ms", **of)
        return [
            name,
            ratio(last / ours if ours else None),
            number(s.median("first_ms", **of)),
            number(last),
            number(s.least("last_ms", **of)),
            len(s.where(**of)),
        ]

    head = ["", "last successor, times muster's", "first successor ms", "last successor ms", "best",
            "runs"]
    return titled("Restart", table(head, map(row, s.each("launcher", part="restart"))), RESTART)


def output(s):
    def row(part_and_name):
        part, name = part_and_name
        ways = [{"part": part, "launcher": name, "way": way} for way in ("inherited", "tee")]
        rates = [budgets.mib_per_s(s, way) for way in ways]
        return [
            f"{name}, {launch.PRINTERS} workers" if part == launch.PRINT_OF_MANY else name,
            ratio(rates[1] / rates[0] if all(rates) else None),
            *(number(rate, "{:,.0f}") for rate in rates),
            *(number(s.median("cpu_s", **way), "{:.2f}") for way in ways),
        ]

    rows = [(part, name) for part in ("print", launch.PRINT_OF_MANY)
            for name in s.each("launcher", part=part)]
    head = ["", "tee, of inherited", "inherited MiB/s", "tee MiB/s", "CPU s inherited", "CPU s tee"]
    return titled("Output", table(head, map(row, rows)), OUTPUT)


def steps(s):
    def row(torch):
        plain, tracked = (s.median("us_per_step", part="steps", torch=torch, way=way)
                          for way in ("plain", "tracked"))
        return [f"PyTorch {torch}", number(budgets.added_us_per_step(s, torch), "{:+.2f}"),
                number(plain, "{:.2f}"), number(tracked, "{:.2f}"),
                len(s.where(part="steps", torch=torch, way="tracked"))]

    head = ["", "added us a step", "plain us", "tracked us", "runs"]
    return titled("Counting steps", table(head, map(row, s.each("torch", part="steps"))), STEPS)


def load(s):
    def row(cell):
        about = {"part": "load"} | cell.about()
        return [
            f"{cell.operation}, {cell.value_bytes:,} B, {cell.connections:,} x {cell.depth}",
            ratio(s.ratio("ops_per_s", OURS, LIBUV, **about)),
            ratio(s.ratio("server_us_per_op", OURS, LIBUV, **about)),
            ratio(s.ratio("server_us_per_op", OURS, FLOOR, **about)),
            *(number(s.median("ops_per_s", **about, **who), "{:,.0f}") for who in (OURS, LIBUV)),
            *(number(s.median(figure, **about, **who))
              for who in (OURS, LIBUV) for figure in ("p50_us", "p99_us")),
            *(number(s.median("server_us_per_op", **about, **who), "{:.2f}")
              for who in (OURS, LIBUV, FLOOR)),
        ]

    cells = dict.fromkeys(
        store.Cell(*(sample[key] for key in ("operation", "value_bytes", "connections", "depth")))
        for sample in s.where(part="load"))
    order = sorted(cells, key=lambda c: (c.operation, c.value_bytes, c.connections, c.depth))
    head = ["operation, value, connections x in flight", "ops/s, times libuv",
            "CPU, times libuv", "CPU, times floor", "ops/s", "libuv", "p50 us", "p99 us",
            "libuv p50", "libuv p99", "CPU us/op", "libuv", "floor"]
    return titled("Store, a few connections", table(head, map(row, order)), LOAD)


def crowds(s):
    def row(connections, name):
        about = {"part": "crowd", "connections": connections}
        who = {"server": name}
        figures = (s.median(figure, **about, **who) for figure in (
            "open_ms", "open_server_ms", "wake_first_ms", "wake_half_ms", "wake_all_ms",
            "wake_server_ms"))
        return [
            f"{connections:,}, {name}",
            ratio(s.ratio("open_ms", who, OURS, **about)),
            ratio(s.ratio("wake_all_ms", who, OURS, **about)),
            *map(number, figures),
            number(s.median("server_growth_kib", **about, **who), "{:,.0f}"),
        ]

    head = ["connections, server", "opened, times muster's", "woken, times muster's", "opened ms",
            "server CPU ms", "first woken ms", "half ms", "all ms", "server CPU ms", "memory KiB"]
    rows = (row(connections, name) for connections in s.each("connections", part="crowd")
            for name in s.each("server", part="crowd"))
    return titled("Store, very many connections", table(head, rows), CROWDS)


def meets(s):
    def row(agents, name):
        of = {"part": "meet", "agents": agents, "launcher": name}
        return [f"{agents} agents, {name}",
                *(number(s.median(figure, **of)) for figure in ("first_ms", "last_ms")),
                number(s.least("last_ms", **of)), number(s.median("wall_ms", **of)),
                number(s.median("cpu_s", **of), "{:.3f}"), len(s.where(**of))]

    head = ["", "first worker ms", "last worker ms", "best", "wall ms", "CPU s of all", "runs"]
    rows = (row(agents, name) for agents in s.each("agents", part="meet")
            for name in s.each("launcher", part="meet", agents=agents))
    return titled("Many nodes: the start", table(head, rows), MEET)


def changes(s):
    def shown(name, way):
        of = {"part": "change", "launcher": name, "way": way}
        if not s.where(**of):
            return ["", ""]
        median = s.median("change_ms", **of)
        return ["never" if median is None else number(median, "{:,.0f}"), len(s.where(**of))]

    head = ["", "killed ms", "runs", "silent ms", "runs", "joined ms", "runs"]
    rows = ([name, *(cell for way in ("killed", "silent", "joined") for cell in shown(name, way))]
            for name in s.each("launcher", part="change"))
    return titled("Many nodes: one is lost, one joins", table(head, rows), CHANGES)


def swarms(s):
    figures = (("joined_ms", "{:,.0f}"), ("join_server_ms", "{:,.0f}"), ("kib_per_agent", "{:.1f}"),
               ("rest_cpu_share", "{:.4f}"), ("first_stop_ms", "{:,.1f}"),
               ("last_stop_ms", "{:,.1f}"), ("smaller_ms", "{:,.0f}"), ("replaced_ms", "{:,.0f}"),
               ("grown_ms", "{:,.0f}"), ("agent_sent_bytes", "{:,.0f}"),
               ("agent_received_bytes", "{:,.0f}"), ("most_received_bytes", "{:,.0f}"))

    def row(agents):
        of = {"part": "swarm", "agents": agents}
        return [f"{agents:,}", *(number(s.median(name, **of), form) for name, form in figures),
                len(s.where(**of))]

    head = ["agents", "joined ms", "server CPU ms", "KiB each", "CPU at rest, cores",
            "first Stop ms", "last Stop ms", "smaller ms", "replaced ms", "grown ms", "bytes sent",
            "received", "most", "runs"]
    return titled("Many nodes: thousands of agents",
                  table(head, map(row, s.each("agents", part="swarm"))), SWARM)


ALL = (starts, cost, restarts, output, steps, meets, changes, swarms, load, crowds)
