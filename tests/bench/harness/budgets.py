"""The budgets, and how far a run's samples keep them."""

import dataclasses

from harness.launch import LINE_BYTES, PRINT_OF_MANY, PRINTERS
from harness.nodes import LEASE_S, SILENT_BUDGET_S
from harness.store import BUDGET_OPERATIONS

MUSTER, DASH, TORCHRUN = ({"launcher": name} for name in ("muster", "dash", "torchrun 2.15"))
OURS, FLOOR, LIBUV = ({"server": name} for name in ("muster", "floor", "libuv"))
EIGHT = {"part": "start", "workers": 8}
NOT_MEASURED = "not measured"


@dataclasses.dataclass(frozen=True)
class Verdict:
    """One budget against what was measured; both are None where the run has no figure for it."""
    name: str      # Also the heading in notes.md that explains a miss.
    budget: str
    measured: str | None
    met: bool | None
    peer: str


def verdicts(s):
    return [
        _against_dash(
            s, "launch-8", "last_ms", 2.0,
            "exec to the first instruction of the last of 8 native workers: 2 times dash"),
        _against_dash(
            s, "job-8", "wall_ms", 2.5,
            "a job of 8 workers that exit at once, whole wall time: 2.5 times dash"),
        _restart(s), _memory(s), _cpu(s), _tee(s, "tee", "print", "lines"),
        _tee(s, "tee-8", PRINT_OF_MANY, f"lines of {PRINTERS} workers"),
        _steps(s), _store_alone(s), _store_pipelined(s), _opened(s), _woken(s),
        _meet(s, 2, 20.0), _meet(s, 16, 100.0), _restart_across(s),
        _change(s, "killed", 500.0, "an agent killed, to the survivor running at the smaller world "
                "size: 0.5 s"),
        _change(s, "silent", SILENT_BUDGET_S * 1e3, "a node that falls silent, to the same: 1.25 "
                f"leases (here of {LEASE_S} s) and 1 s"),
        _change(s, "joined", 1_000.0, "an agent joins a running elastic job that it fills, to the "
                "larger world running: 1 s"),
        _swarm(s, 1_000, "joined_ms", 300.0, "{:,.0f} ms", "rendezvous of 1,000 agents: 0.3 s"),
        _swarm(s, 10_000, "joined_ms", 3_000.0, "{:,.0f} ms", "rendezvous of 10,000 agents: 3 s"),
        _swarm(s, 10_000, "kib_per_agent", 8.0, "{:.1f} KiB",
               "memory of the server at rest: 8 KiB for each of 10,000 agents"),
        _swarm(s, 10_000, "rest_cpu_share", 0.10, "{:.3f} of a core",
               "CPU of the server while 10,000 agents rest: 10 % of a core"),
        _swarm(s, 1_000, "last_stop_ms", 100.0, "{:,.0f} ms",
               "a farewell to Stop at all of 1,000 survivors: 100 ms"),
        _bytes(s),
    ]


def _shown(value, form):
    return NOT_MEASURED if value is None else form.format(value)


def _ms(value):
    return _shown(value, "{:,.1f} ms")


def _at_most(name, budget, limit, value, text, peer):
    if value is None:
        return Verdict(name, budget, None, None, peer)
    return Verdict(name, budget, text.format(value), value <= limit, peer)


def _against_dash(s, name, figure, limit, budget):
    ours, shell, torchrun = (
        _ms(s.median(figure, **who, **EIGHT)) for who in (MUSTER, DASH, TORCHRUN))
    return _at_most(name, budget, limit, s.ratio(figure, MUSTER, DASH, **EIGHT),
                    f"{{:.2f}} times ({ours} against {shell})", torchrun)


def _restart(s):
    ours, theirs = (s.median("last_ms", part="restart", **who) for who in (MUSTER, TORCHRUN))
    return _at_most(
        "restart-4", "a worker's death to the first instruction of the last of 4 successors: 25 ms",
        25.0, ours, "{:.1f} ms", _ms(theirs))


def _memory(s):
    ours, theirs = (
        s.median("peak_kib", part="memory", workers=8, **who) for who in (MUSTER, TORCHRUN))
    return _at_most(
        "memory-8", "peak resident memory of all processes of muster with 8 workers: 30 MB",
        30e6 / 1024, ours, "{:,.0f} KiB", _shown(theirs, "{:,.0f} KiB"))


def _cpu(s):
    ours, theirs = (s.median("cpu_s", **who, **EIGHT) for who in (MUSTER, TORCHRUN))
    return _at_most("cpu-8", "CPU of a whole short job of 8 workers, theirs included: 0.05 s",
                    0.05, ours, "{:.4f} s", _shown(theirs, "{:.2f} s"))


def _tee(s, name, part, what):
    tee = {"part": part, "way": "tee"}
    inherited = {"part": part, "way": "inherited"}
    budget = f"{what} through tee: half of the rate of an inherited stdout, and ahead of torchrun"
    ours, whole, theirs = (
        mib_per_s(s, about) for about in (tee | MUSTER, inherited | MUSTER, tee | TORCHRUN))
    peer = _shown(theirs, "{:,.0f} MiB/s")
    if ours is None or whole is None:
        return Verdict(name, budget, None, None, peer)
    ahead = "" if theirs is None else f", {ours / theirs:.2f} times torchrun's"
    return Verdict(name, budget, f"{ours / whole:.2f} of inherited{ahead} ({ours:,.0f} MiB/s)",
                   ours / whole >= 0.5 and (theirs is None or ours > theirs), peer)


def mib_per_s(s, about):
    """Of what the worker printed, without what a launcher puts before each line."""
    lines, seconds = s.median("lines", **about), s.median("seconds", **about)
    return lines * LINE_BYTES / (1 << 20) / seconds if lines else None


def _steps(s):
    found = {torch: added for torch in s.each("torch", part="steps")
             if (added := added_us_per_step(s, torch)) is not None}
    shown = ", ".join(f"PyTorch {torch}: {added:+.2f}" for torch, added in found.items())
    return _at_most("track-steps", "what --track-steps adds to a step of an optimizer, with the worst PyTorch: 5 us", 5.0,
                    max(found.values(), default=None), f"{{:.2f}} us ({shown})", "")


def added_us_per_step(s, torch):
    plain, tracked = (s.median("us_per_step", part="steps", torch=torch, way=way)
                      for way in ("plain", "tracked"))
    return tracked - plain if plain is not None and tracked is not None else None


def _ratios(s, figure, theirs, depth):
    """Of each operation that has a budget; and for people. Empty if one is missing."""
    found = {
        operation: s.ratio(figure, OURS, theirs, part="load", operation=operation,
                           value_bytes=size, connections=64, depth=depth)
        for operation, size in BUDGET_OPERATIONS
    }
    if None in found.values():
        return [], ""
    return found.values(), ", ".join(f"{name} {value:.2f}" for name, value in found.items())


def _ping(depth):
    return {"part": "load", "operation": "ping", "connections": 64, "depth": depth}


def _store_alone(s):
    values, shown = _ratios(s, "server_us_per_op", FLOOR, 1)
    peer = s.ratio("server_us_per_op", LIBUV, FLOOR, **_ping(1))
    return _at_most(
        "store-64x1", "64 connections, one request each: server CPU per request at most 1.1 times "
        "a bare epoll loop's, in the worst of ping, get and add",
        1.1, max(values, default=None), f"{{:.2f}} times ({shown})",
        _shown(peer, "{:.2f} times (ping)"))


def _store_pipelined(s):
    values, shown = _ratios(s, "ops_per_s", LIBUV, 16)
    budget = ("64 connections, 16 requests pipelined on each: 8 times libuv's throughput, in the "
              "worst of ping, get and add")
    peer = _shown(s.ratio("ops_per_s", FLOOR, LIBUV, **_ping(16)), "the bare loop: {:.1f} times")
    if not values:
        return Verdict("store-64x16", budget, None, None, peer)
    worst = min(values)
    return Verdict("store-64x16", budget, f"{worst:.1f} times ({shown})", worst >= 8, peer)


def _crowd(s, figure):
    return (s.median(figure, part="crowd", connections=5_000, **who) for who in (OURS, LIBUV))


def _opened(s):
    ours, theirs = _crowd(s, "open_ms")
    ratio = s.ratio("open_ms", OURS, LIBUV, part="crowd", connections=5_000)
    return _at_most("open-5000", "5,000 connections opened: no slower than libuv",
                    1.0, ratio, f"{{:.2f}} times ({_ms(ours)})", _ms(theirs))


def _woken(s):
    ours, theirs = _crowd(s, "wake_all_ms")
    ratio = s.ratio("wake_all_ms", OURS, FLOOR, part="crowd", connections=5_000)
    return _at_most(
        "wake-5000", "5,000 connections woken by one SET: 1.3 times a bare loop of one send each",
        1.3, ratio, f"{{:.2f}} times ({_ms(ours)})", _ms(theirs))


def _meet(s, agents, limit):
    of = {"part": "meet", "agents": agents}
    ours, theirs = (s.median("last_ms", **who, **of) for who in (MUSTER, TORCHRUN))
    return _at_most(f"meet-{agents}", f"exec of {agents} agents to the first instruction of the last "
                    f"of their workers: {limit:.0f} ms", limit, ours, "{:.1f} ms", _ms(theirs))


def _restart_across(s):
    ours = s.median("last_ms", part="restart across", **MUSTER)
    return _at_most(
        "restart-2x2", "a worker's death to the first instruction of the last of 4 successors on 2 "
        "nodes: 50 ms", 50.0, ours, "{:.1f} ms", "")


def _change(s, way, limit, budget):
    ours = s.median("change_ms", part="change", way=way, **MUSTER)
    theirs = s.where(part="change", way=way, **TORCHRUN)
    failed = bool(theirs) and all(sample["change_ms"] is None for sample in theirs)
    peer = "never" if failed else _ms(s.median("change_ms", part="change", way=way, **TORCHRUN))
    return _at_most(f"change-{way}", budget, limit, ours, "{:,.0f} ms", peer)


def _swarm(s, agents, figure, limit, text, budget):
    value = s.median(figure, part="swarm", agents=agents)
    return _at_most(f"swarm-{agents}-{figure}", budget, limit, value, text, "")


def _bytes(s):
    """What one agent gets is the same however many there are, but for a few digits."""
    few, many = (s.median("agent_received_bytes", part="swarm", agents=agents)
                 for agents in (1_000, 10_000))
    ratio = many / few if few and many else None
    return _at_most("swarm-bytes", "bytes that an agent receives, one of 10,000 against one of "
                    "1,000: the same (1.1 times)", 1.1, ratio, "{:.2f} times", "")
