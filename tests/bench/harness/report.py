"""docs/benchmarks.md, from the raw samples and the notes beside them."""

import json
import re

from harness import budgets, store
from harness.budgets import Samples

INTRODUCTION = """# Benchmarks

Written by `./x bench` from `benchmarks/samples.json`; what a person has to say about it is in `benchmarks/notes.md`.

{machine}

Ratios are medians of the ratios of runs made side by side, in turns; other figures are medians. The store's servers run in
a process of their own, each pinned to one core, the load generator (C++, epoll, one thread, every reply verified) to
another. Names are {names}: PyTorch's servers look up each client's name, and a resolver that stays mute would be all that
is measured of them. Before and after each load the server is let come to rest, so that its CPU time is all of that load's.
"""


def write(folder, document):
    """`folder` is docs/: the samples are read from below it, the page is written there. Returns the verdicts."""
    samples = Samples(_with_flat_crowds(document["samples"]))
    verdicts = budgets.verdicts(samples)
    notes = _notes(folder / "benchmarks/notes.md")
    parts = [INTRODUCTION.format(machine=_machine(document["machine"]), names=_names(document["machine"])),
             _failures(document["failures"]), _budgets(verdicts), _explanations(verdicts, notes),
             _starts(samples), _launcher_cost(samples), _restarts(samples), _prints(samples),
             _load(samples), _crowds(samples), notes.get("remarks", "")]
    (folder / "benchmarks.md").write_text("\n".join(part for part in parts if part), encoding="utf-8")
    return verdicts


def save(folder, document):
    """One sample a line, so that a new run makes a readable difference."""
    target = folder / "benchmarks/samples.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(sample) for sample in document["samples"])
    head = json.dumps({key: value for key, value in document.items() if key != "samples"}, indent=1)
    target.write_text(f"{head[:-2]},\n \"samples\": [\n{lines}\n]}}\n", encoding="utf-8")


def load(folder):
    return json.loads((folder / "benchmarks/samples.json").read_text(encoding="utf-8"))


def _with_flat_crowds(samples):
    crowds = [sample for sample in samples if sample["part"] == "crowd"]
    return [sample for sample in samples if sample["part"] != "crowd"] + budgets.flat_wakes(crowds)


def _machine(m):
    kind = "virtual machine, " if m["virtual"] else ""
    return (f"Machine: {m['cpu']}, {m['cores']} cores ({kind}{m['memory_gib']} GiB), Linux {m['kernel']}, "
            f"{m['system']}, {m['compiler']}, {m['build_type']} build of {m['commit']}, {m['date']}, load before the run "
            f"{m['load_before']}.")


def _names(machine):
    return "from /etc/hosts only" if machine["names"] == "files" else machine["names"]


def _failures(failures):
    if not failures:
        return ""
    return "**Runs that failed, whose samples are missing below:**\n" + "".join(f"- {one}\n" for one in failures)


def _notes(path):
    """Heading to text."""
    if not path.exists():
        return {}
    parts = re.split(r"^## (.+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name.strip(): text.strip() + "\n" for name, text in zip(parts[1::2], parts[2::2])}


def _table(head, rows, numbers_from=1):
    rows = list(rows)
    if not rows:
        return ""
    rule = ["---" if column < numbers_from else "---:" for column in range(len(head))]
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in [head, rule, *rows])


def _titled(title, table, *after):
    return "\n".join([f"## {title}\n", table, *after]) if table else ""


def _number(value, form="{:,.1f}"):
    return "" if value is None else form.format(value)


def _ratio(value):
    return _number(value, "{:.2f}")


def _budgets(verdicts):
    word = {True: "met", False: "**MISSED**", None: "not measured"}
    return _titled("Budgets", _table(
        ["budget", "measured", "", "torchrun 2.15, its libuv store"],
        ([v.budget, v.measured or "", word[v.met], v.peer] for v in verdicts), 4))


def _explanations(verdicts, notes):
    missed = [v for v in verdicts if v.met is False]
    return "\n".join(f"### Missed: {v.name}\n\n" + notes.get(
        v.name, f"Not explained yet: `benchmarks/notes.md` has no section `{v.name}`.\n") for v in missed)


def _launcher_names(s, **wanted):
    return list(dict.fromkeys(sample["launcher"] for sample in s.where(**wanted)))


def _starts(s):
    ours = {"launcher": "muster"}

    def row(workers, name):
        about = {"part": "start", "workers": workers}
        other = {"launcher": name}
        of = about | other
        return [f"{workers} workers, {name}", _ratio(s.ratio("last_ms", other, ours, **about)),
                _ratio(s.ratio("wall_ms", other, ours, **about)),
                *(_number(s.median(figure, **of)) for figure in ("first_ms", "last_ms")),
                _number(s.least("last_ms", **of)), _number(s.median("wall_ms", **of)), len(s.where(**of))]

    counts = dict.fromkeys(sample["workers"] for sample in s.where(part="start"))
    table = _table(["", "last worker, times muster's", "wall, times muster's", "first worker ms", "last worker ms",
                    "best", "wall ms", "runs"],
                   (row(workers, name) for workers in counts
                    for name in _launcher_names(s, part="start", workers=workers)))
    return _titled("Launch", table,
                   "From exec of the launcher to the first instruction of native workers that exit at once; `dash` starts "
                   "the same static programs in the\nbackground and waits. torchrun 1.13 runs with a monitor interval of "
                   "0.1 s: its default of 5 s would add that to the wall time.\n")


def _launcher_cost(s):
    def row(name):
        of = {"part": "memory", "launcher": name}
        start = {"part": "start", "launcher": name, "workers": 8}
        return [name, *(_number(s.median(figure, **of), "{:,.0f}")
                        for figure in ("processes", "peak_kib", "resident_kib", "pss_kib")),
                _number(s.median("cpu_s", **start), "{:.4f}")]

    return _titled("The launcher's own cost", _table(
        ["", "processes", "peak resident KiB", "resident KiB", "proportional KiB", "CPU s of a short job of 8"],
        map(row, _launcher_names(s, part="memory"))),
        "Resident memory is the sum over the launcher's own processes (of muster: keeper and agent) while 8 workers stay. "
        "The CPU seconds are\nthose of the whole tree, workers included.\n")


def _restarts(s):
    def row(name):
        of = {"part": "restart", "launcher": name}
        ours = s.median("last_ms", part="restart", launcher="muster")
        last = s.median("last_ms", **of)
        return [name, _ratio(last / ours if ours and last else None), _number(s.median("first_ms", **of)),
                _number(last), _number(s.least("last_ms", **of)), len(s.where(**of))]

    return _titled("Restart", _table(
        ["", "last successor, times muster's", "first successor ms", "last successor ms", "best", "runs"],
        map(row, _launcher_names(s, part="restart"))),
        "4 workers that end on SIGTERM at once; one is killed with SIGKILL: from that signal to the first instructions of "
        "the new group.\n")


def _prints(s):
    def row(name):
        of = {"part": "print", "launcher": name}
        rates = [budgets.mib_per_s(s, of | {"way": way}) for way in ("inherited", "tee")]
        return [name, _ratio(rates[1] / rates[0] if all(rates) else None), *(_number(rate, "{:,.0f}") for rate in rates),
                *(_number(s.median("cpu_s", **of, way=way), "{:.2f}") for way in ("inherited", "tee"))]

    return _titled("Output", _table(
        ["", "tee, of inherited", "inherited MiB/s", "tee MiB/s", "CPU s inherited", "CPU s tee"],
        map(row, _launcher_names(s, part="print", way="tee"))),
        "Rank 0 prints 200 MiB in lines of 100 bytes to a pipe; every line must come. From its first instruction to the "
        "last byte.\n")


def _load(s):
    cells = list(dict.fromkeys(
        store.Cell(*(sample[key] for key in ("operation", "value_bytes", "connections", "depth")))
        for sample in s.where(part="load")))

    def row(cell):
        about = {"part": "load"} | cell.about()
        muster, floor, libuv = ({"server": name} for name in ("muster", "floor", "libuv"))
        return [f"{cell.operation}, {cell.value_bytes} B, {cell.connections} x {cell.depth}",
                _ratio(s.ratio("ops_per_s", muster, libuv, **about)),
                _ratio(s.ratio("server_us_per_op", muster, libuv, **about)),
                _ratio(s.ratio("server_us_per_op", muster, floor, **about)),
                *(_number(s.median("ops_per_s", **about, **server), "{:,.0f}") for server in (muster, libuv)),
                *(_number(s.median(figure, **about, **server))
                  for server in (muster, libuv) for figure in ("p50_us", "p99_us")),
                *(_number(s.median("server_us_per_op", **about, **server), "{:.2f}")
                  for server in (muster, libuv, floor))]

    order = sorted(cells, key=lambda c: (c.operation, c.value_bytes, c.connections, c.depth))
    return _titled("Store, a few connections", _table(
        ["operation, value, connections x in flight", "ops/s, times libuv", "CPU, times libuv", "CPU, times floor",
         "ops/s", "libuv", "p50 us", "p99", "libuv p50", "p99", "CPU us/op", "libuv", "floor"], map(row, order)),
        "`set` is a SET and the PING that acknowledges it; `wait_get` is what PyTorch's `get` sends: WAIT, then GET (two "
        "round trips with one\nin flight, one write for both when pipelined). The floor is a bare epoll loop, one recv and "
        "one send per event, that gets as many bytes\nand sends as many, and does nothing else.\n")


def _crowds(s):
    def row(connections, name):
        about = {"part": "crowd", "connections": connections}
        of, ours = {"server": name}, {"server": "muster"}
        return [f"{connections:,}, {name}", _ratio(s.ratio("open_ms", of, ours, **about)),
                _ratio(s.ratio("wake_all_ms", of, ours, **about)),
                *(_number(s.median(figure, **about, **of))
                  for figure in ("open_ms", "open_server_ms", "wake_first_ms", "wake_half_ms", "wake_all_ms",
                                 "wake_server_ms")),
                _number(s.median("server_growth_kib", **about, **of), "{:,.0f}")]

    counts = dict.fromkeys(sample["connections"] for sample in s.where(part="crowd"))
    names = dict.fromkeys(sample["server"] for sample in s.where(part="crowd"))
    return _titled("Store, very many connections", _table(
        ["connections, server", "opened, times ours", "woken, times ours", "opened ms", "server CPU ms", "first woken ms",
         "half", "all", "server CPU ms", "memory KiB"],
        (row(connections, name) for connections in counts for name in names)),
        f"Opened: from the first connect to the last answer, each connection greeted and answered one ADD; at most "
        f"{store.ON_THEIR_WAY} on their way\nat once. Woken: all wait for one key; from the SET that creates it to the "
        "first, middle and last wake-up read.\n")
