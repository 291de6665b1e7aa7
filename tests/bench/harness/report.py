"""docs/benchmarks.md, from the raw samples and the notes beside them."""

import json
import re

from harness import budgets, tables
from harness.samples import Samples

INTRODUCTION = """\
# Benchmarks

Written by `./x bench` from `benchmarks/samples.json`; what a person has to say about the figures is
in `benchmarks/notes.md` and taken from there.

{machine}

Ratios are medians of the ratios of runs made side by side, in turns; other figures are medians. The
store's servers run in processes of their own, pinned to one core, the load generator (C++, epoll,
one thread, every reply verified) to another. Names are {names}:
PyTorch's servers look up the name of each client, and where a resolver stays mute nothing else of
them would be measured. Around each load the server is let come to rest, so that its CPU time is all
of that load's and of no other.
"""

MACHINE = """\
Machine: {cpu}, {cores} cores ({kind}{memory_gib} GiB), Linux {kernel}, {system}, {compiler}.
{build_type} build of {commit}, {date}; load average before the run: {load_before}{priority}."""

PARTS = {"store": ("load", "crowd"), "launch": ("start", "restart", "memory", "print", "print of 8"),
         "nodes": ("meet", "restart across", "change", "swarm"),
         "steps": ("steps",)}
EARLIER = "The figures of {part} are of an earlier run: {build_type} build of {commit}, {date}; load average {load_before}."

WORDS = {True: "met", False: "**MISSED**", None: budgets.NOT_MEASURED}


def save(folder, document):
    """One sample a line, so that a new run makes a readable difference."""
    target = folder / "benchmarks/samples.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    samples = ",\n".join(json.dumps(sample) for sample in document["samples"])
    others = {key: value for key, value in document.items() if key != "samples"}
    head = json.dumps(others, indent=1).removesuffix("\n}")
    target.write_text(f'{head},\n "samples": [\n{samples}\n]}}\n', encoding="utf-8")


def with_earlier(folder, document, part):
    """The document of one part, with the other parts' samples that are there, and of which run those are."""
    if not (folder / "benchmarks/samples.json").exists():
        return document
    before = load(folder)
    kept = [sample for sample in before["samples"] if sample["part"] not in PARTS[part]]
    runs = {other: before.get("earlier", {}).get(other, before["machine"]) for other in PARTS if other != part
            and any(sample["part"] in PARTS[other] for sample in kept)}
    return document | {"earlier": runs, "samples": kept + document["samples"]}


def load(folder):
    return json.loads((folder / "benchmarks/samples.json").read_text(encoding="utf-8"))


def write(folder, document):
    """Into `folder`, which is docs/: notes come from below it. Returns the verdicts."""
    samples = Samples(document["samples"])
    verdicts = budgets.verdicts(samples)
    notes = _notes(folder / "benchmarks/notes.md")
    parts = [
        _introduction(document["machine"], document.get("earlier", {})),
        _failures(document["failures"]),
        _budgets(verdicts),
        _explanations(verdicts, notes),
        *(make(samples) for make in tables.ALL),
        tables.titled("Remarks", notes.get("remarks", "")),
    ]
    page = "\n".join(part for part in parts if part)
    (folder / "benchmarks.md").write_text(page, encoding="utf-8")
    return verdicts


def _introduction(machine, earlier):
    kind = "virtual machine, " if machine["virtual"] else ""
    names = machine["names"]
    priority = ", kept out by real-time priority" if machine["realtime"] else ""
    runs = [MACHINE.format(kind=kind, priority=priority, **machine),
            *(EARLIER.format(part=part, **run) for part, run in earlier.items())]
    return INTRODUCTION.format(
        machine="\n".join(runs),
        names="from /etc/hosts only" if names == "files" else names)


def _failures(failures):
    if not failures:
        return ""
    lines = "".join(f"- {failure}\n" for failure in failures)
    return f"**What failed; its samples are missing below:**\n\n{lines}"


def _notes(path):
    """Heading to text."""
    if not path.exists():
        return {}
    parts = re.split(r"^## (.+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name.strip(): text.strip() + "\n" for name, text in zip(parts[1::2], parts[2::2])}


def _budgets(verdicts):
    head = ["budget", "measured", "", "torchrun 2.15, its libuv store"]
    rows = ([v.budget, v.measured or "", WORDS[v.met], v.peer] for v in verdicts)
    return tables.titled("Budgets", tables.table(head, rows, len(head)))


def _explanations(verdicts, notes):
    missing = "Not explained yet: `benchmarks/notes.md` has no section of this name.\n"
    return "\n".join(f"### Missed: {v.name}\n\n{notes.get(v.name, missing)}"
                     for v in verdicts if v.met is False)
