"""The budgets that concern one machine, and how far a run's samples keep them."""

import dataclasses
import statistics

from harness.launch import LINE_BYTES
from harness.store import BUDGET_OPERATIONS


@dataclasses.dataclass(frozen=True)
class Verdict:
    """One budget against what was measured; `measured` is None where the run has no figure for it."""
    name: str      # Also the heading in notes.md that explains a miss.
    budget: str
    measured: str | None
    met: bool | None
    peer: str


class Samples:
    """Samples of one run, asked by what they are of."""

    def __init__(self, samples):
        self._samples = samples

    def where(self, **wanted):
        return [sample for sample in self._samples
                if all(sample.get(key) == value for key, value in wanted.items())]

    def median(self, figure, **wanted):
        values = [sample[figure] for sample in self.where(**wanted) if sample.get(figure) is not None]
        return statistics.median(values) if values else None

    def least(self, figure, **wanted):
        return min((sample[figure] for sample in self.where(**wanted)), default=None)

    def ratio(self, figure, ours, theirs, **wanted):
        """The median of the ratios of those samples that were taken side by side."""
        others = {sample["repetition"]: sample[figure] for sample in self.where(**wanted, **theirs)}
        ratios = [sample[figure] / others[sample["repetition"]] for sample in self.where(**wanted, **ours)
                  if others.get(sample["repetition"])]
        return statistics.median(ratios) if ratios else None


def flat_wakes(samples):
    """Each crowd sample woke its members several times: its medians, as figures of their own."""
    wakes = [key for key in samples[0] if key.startswith("wake_")] if samples else []
    return [sample | {key: statistics.median(sample[key]) for key in wakes if sample[key]}
            for sample in samples]


def verdicts(samples):
    return [*_launch(samples), *_store(samples)]


def _at_most(name, budget, limit, value, text, peer):
    if value is None:
        return Verdict(name, budget, None, None, peer)
    return Verdict(name, budget, text.format(value), value <= limit, peer)


def _ms(value):
    return "not measured" if value is None else f"{value:,.1f} ms"


def _launch(s):
    muster, dash, torchrun = ({"launcher": name} for name in ("muster", "dash", "torchrun 2.15"))
    eight = {"part": "start", "workers": 8}
    for name, figure, limit, budget in (
            ("launch-8", "last_ms", 2.0, "exec to the first instruction of the last of 8 native workers: "
                                         "2 times dash"),
            ("job-8", "wall_ms", 2.5, "a job of 8 workers that exit at once, whole wall time: 2.5 times dash")):
        value = s.ratio(figure, muster, dash, **eight)
        text = f"{{:.2f}} times ({_ms(s.median(figure, **muster, **eight))} against " \
               f"{_ms(s.median(figure, **dash, **eight))})"
        yield _at_most(name, budget, limit, value, text, _ms(s.median(figure, **torchrun, **eight)))
    restart = {"part": "restart"}
    yield _at_most("restart-4", "a worker's death to the first instruction of the last of 4 successors: 25 ms",
                   25.0, s.median("last_ms", **restart, **muster), "{:.1f} ms",
                   _ms(s.median("last_ms", **restart, **torchrun)))
    memory = {"part": "memory", "workers": 8}
    peer = s.median("peak_kib", **memory, **torchrun)
    yield _at_most("memory-8", "peak resident memory of all processes of muster with 8 workers: 30 MB",
                   30e6 / 1024, s.median("peak_kib", **memory, **muster), "{:,.0f} KiB",
                   "not measured" if peer is None else f"{peer:,.0f} KiB")
    peer = s.median("cpu_s", **eight, **torchrun)
    yield _at_most("cpu-8", "CPU of a whole short job of 8 workers, theirs included: 0.05 s",
                   0.05, s.median("cpu_s", **eight, **muster), "{:.4f} s",
                   "not measured" if peer is None else f"{peer:.2f} s")
    yield _tee(s, muster, torchrun)


def _tee(s, muster, torchrun):
    tee = {"part": "print", "way": "tee"}
    share = s.ratio("seconds", muster | {"way": "inherited"}, muster | {"way": "tee"}, part="print")
    against = s.ratio("seconds", torchrun, muster, **tee)
    budget = "lines through tee: half of the rate of an inherited stdout, and ahead of torchrun"
    theirs = mib_per_s(s, tee | torchrun)
    peer = "not measured" if theirs is None else f"{theirs:,.0f} MiB/s"
    if share is None:
        return Verdict("tee", budget, None, None, peer)
    beside = "torchrun not measured" if against is None else f"{against:.2f} times torchrun's"
    ours = mib_per_s(s, tee | muster)
    return Verdict("tee", budget, f"{share:.2f} of inherited, {beside} ({ours:,.0f} MiB/s)",
                   share >= 0.5 and (against is None or against > 1.0), peer)


def mib_per_s(s, about):
    """Of what the worker printed, without what a launcher puts before each line."""
    lines, seconds = s.median("lines", **about), s.median("seconds", **about)
    return lines * LINE_BYTES / (1 << 20) / seconds if lines else None


def _store(s):
    ours, floor, libuv = ({"server": name} for name in ("muster", "floor", "libuv"))

    def worst(figure, theirs, pick, depth, turned):
        found = {}
        for operation, size in BUDGET_OPERATIONS:
            cell = {"part": "load", "operation": operation, "value_bytes": size, "connections": 64,
                    "depth": depth}
            pair = (theirs, ours) if turned else (ours, theirs)
            found[operation] = s.ratio(figure, *pair, **cell)
        if None in found.values():
            return None, ""
        shown = ", ".join(f"{name} {value:.2f}" for name, value in found.items())
        return pick(found.values()), shown

    value, shown = worst("server_us_per_op", floor, max, 1, False)
    theirs = s.ratio("server_us_per_op", libuv, floor, part="load", operation="ping", connections=64, depth=1)
    yield _at_most("store-64x1", "64 connections, one request each: server CPU per request 1.1 times a bare "
                   "loop's, in the worst of ping, get, add", 1.1, value, f"{{:.2f}} times ({shown})",
                   "not measured" if theirs is None else f"{theirs:.2f} times")
    value, shown = worst("ops_per_s", libuv, min, 16, False)
    above = s.ratio("ops_per_s", floor, libuv, part="load", operation="ping", connections=64, depth=16)
    budget = "64 connections, 16 requests pipelined: 8 times libuv's throughput, in the worst of ping, get, add"
    peer = "not measured" if above is None else f"a bare loop: {above:.1f} times"
    yield Verdict("store-64x16", budget, value and f"{value:.1f} times ({shown})", value and value >= 8, peer)
    crowd = {"part": "crowd", "connections": 5_000}
    yield _at_most("open-5000", "5,000 connections opened: no slower than libuv", 1.0,
                   s.ratio("open_ms", ours, libuv, **crowd),
                   f"{{:.2f}} times ({_ms(s.median('open_ms', **ours, **crowd))})",
                   _ms(s.median("open_ms", **libuv, **crowd)))
    yield _at_most("wake-5000", "5,000 connections woken by one SET: 1.3 times a bare loop of one send each", 1.3,
                   s.ratio("wake_all_ms", ours, floor, **crowd),
                   f"{{:.2f}} times ({_ms(s.median('wake_all_ms', **ours, **crowd))})",
                   _ms(s.median("wake_all_ms", **libuv, **crowd)))
