#!/usr/bin/env python3
"""Measures Muster beside its peers, writes the raw samples and docs/benchmarks.md.

    bench.py --build build/release           all of it: a quarter of an hour, on a machine that rests
    bench.py --build build/release --only nodes   one part; the samples of the others stay
    bench.py --build build/release --quick   seconds: does the harness work? No peers, no page
    bench.py --report-only                   writes the page again, from the samples there
"""

import argparse
import os
import pathlib
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from harness import launch, machine, nodes, report, smoke, steps, store, tools  # noqa: E402

NAMES = "MUSTER_BENCH_NAMES"
NSSWITCH = "/etc/nsswitch.conf"
IN_OWN_NAMESPACE = 'mount --bind "$0" ' + NSSWITCH + ' && rm "$0" && exec "$@"'


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release", help="CMake build folder to measure")
    parser.add_argument("--out", help="folder of benchmarks.md and benchmarks/ (default: docs/)")
    parser.add_argument("--only", choices=tuple(report.PARTS), help="one part")
    parser.add_argument("--quick", action="store_true", help="check that the harness works")
    parser.add_argument("--report-only", action="store_true", help="from the samples there")
    parser.add_argument("--realtime", action="store_true", help="before all else that runs (root)")
    return parser.parse_args()


def keep_names_local():
    """Starts this program again where names come from /etc/hosts alone: a mount namespace of its
    own, which takes root. PyTorch's servers look up each client's name."""
    if NAMES in os.environ:
        return
    if os.geteuid() != 0 or not shutil.which("unshare"):
        os.environ[NAMES] = "as the system resolves them (only root can keep the resolver out)"
        return
    with open(NSSWITCH, encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("hosts:")]
    with tempfile.NamedTemporaryFile("w", delete=False, encoding="utf-8") as mine:
        mine.write("".join(lines) + "hosts: files\n")
    os.chmod(mine.name, 0o644)
    os.environ[NAMES] = "files"
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                          IN_OWN_NAMESPACE, mine.name, sys.executable, *sys.argv])


def measure(options):
    if options.realtime:
        # All that is measured and measures inherits it: other load on the machine is kept out.
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    programs = tools.Programs(options.build)
    journal = tools.Journal()
    about = machine.describe(programs)
    with_peer = not options.quick
    if options.only in (None, "store"):
        store.run(programs, journal, store.QUICK if options.quick else store.FULL, with_peer)
    if options.only in (None, "launch"):
        launch.run(programs, journal, launch.QUICK if options.quick else launch.FULL, with_peer)
    if options.only in (None, "nodes"):
        nodes.run(programs, journal, nodes.QUICK if options.quick else nodes.FULL, with_peer)
    if options.only in (None, "steps"):
        steps.run(programs, journal, steps.QUICK if options.quick else steps.FULL)
    journal.say(f"{len(journal.samples)} samples, {len(journal.failures)} failures")
    for name, peer in (("PyTorch 2.15", programs.torch_new), ("PyTorch 1.13", programs.torch_old)):
        if with_peer and not peer:
            journal.fail(f"everything beside {name}", "it is not on this machine")
    return {"machine": about, "failures": journal.failures, "samples": journal.samples}


def main():
    options = arguments()
    if options.quick:
        return smoke.run(measure(options), tools.Programs(options.build))
    folder = pathlib.Path(options.out) if options.out else tools.REPOSITORY / "docs"
    if options.report_only:
        document = report.load(folder)
    else:
        keep_names_local()
        document = measure(options)
        if options.only:
            document = report.with_earlier(folder, document, options.only)
        report.save(folder, document)
    for verdict in report.write(folder, document):
        word = {True: "met   ", False: "MISSED", None: "-     "}[verdict.met]
        print(f"{word} {verdict.name}: {verdict.measured or 'not measured'}")
    print(f"written: {folder / 'benchmarks.md'}")
    return 1 if document["failures"] else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except tools.BenchError as error:
        sys.exit(f"bench: {error}")
