"""Records what torchrun makes of the command lines in torchrun_command_lines.txt.

Run it with a Python that has PyTorch; it rewrites the file's answers (`=` lines) in place. The file's head explains it.
"""

import contextlib
import io
import os
import pathlib

from torch.distributed.elastic.multiprocessing import Std
from torch.distributed.elastic.rendezvous.utils import _parse_rendezvous_config, parse_rendezvous_endpoint
from torch.distributed.run import parse_args, parse_min_max_nnodes

FILE = pathlib.Path(__file__).with_name("torchrun_command_lines.txt")


def streams(text):
    parsed = Std.from_str(text)
    if isinstance(parsed, dict):
        return ",".join(f"{rank}:{int(parsed[rank])}" for rank in sorted(parsed))
    return str(int(parsed))


def fields(args):
    """What differs from the defaults, by name; ValueError and the like where torchrun would fail a moment later."""
    low, high = parse_min_max_nnodes(args.nnodes)
    if not 0 < low <= high:
        raise ValueError("nnodes")
    nproc = int(args.nproc_per_node)
    if nproc <= 0 or args.max_restarts < 0 or args.monitor_interval <= 0:
        raise ValueError("below its least")
    if args.shutdown_timeout is not None and args.shutdown_timeout < 0:
        raise ValueError("shutdown_timeout")
    if args.module and args.no_python and not args.run_path:
        raise ValueError("module and no_python")
    kind = "script"
    if args.module:
        kind = "module"
    if args.no_python:
        kind = "no_python"
    if args.run_path:
        kind = "run_path"
    _parse_rendezvous_config(args.rdzv_conf)
    parse_rendezvous_endpoint(args.rdzv_endpoint, default_port=29400)
    ranks = args.local_ranks_filter
    if ranks:
        ranks = ",".join(map(str, sorted(set(map(int, ranks.split(","))))))
    all_fields = {
        "nproc_per_node": (nproc, 1),
        "max_restarts": (args.max_restarts, 0),
        "standalone": (args.standalone, False),
        "rdzv_id": (args.rdzv_id, "none"),
        "role": (args.role, "default"),
        "kind": (kind, "script"),
        "log_dir": (args.log_dir or None, None),
        "redirects": (streams(args.redirects), "0"),
        "tee": (streams(args.tee), "0"),
        "local_ranks_filter": (ranks, ""),
        "master_addr": (args.master_addr, "127.0.0.1"),
        "master_port": (args.master_port, None),
        "shutdown_timeout": (args.shutdown_timeout, None),
        "nnodes": (f"{low}:{high}", "1:1"),
        "node_rank": (args.node_rank, 0),
        "rdzv_backend": (args.rdzv_backend, "static"),
        "rdzv_endpoint": (args.rdzv_endpoint, ""),
        "local_addr": (args.local_addr or "", ""),
    }
    found = [f"{name}={value}" for name, (value, default) in all_fields.items() if value != default]
    found.append(f"script={args.training_script}")
    return found + [f"arg={arg}" for arg in args.training_script_args]


def answer(words, variables):
    for name in [name for name in os.environ if name.startswith("PET_")]:
        del os.environ[name]
    os.environ.update(variables)
    quiet = io.StringIO()
    try:
        with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            return fields(parse_args(words))
    except SystemExit as end:
        return ["help" if end.code == 0 else "refused"]
    except (ValueError, RuntimeError):
        return ["refused"]


def plain(word):
    return "" if word == "''" else word


def main():
    lines = []
    for line in FILE.read_text().splitlines():
        if line.startswith("="):
            continue
        lines.append(line)
        if not line.startswith("$"):
            continue
        words = [plain(word) for word in line.split("\t")[1:]]
        variables = {}
        while words and words[0].startswith("PET_"):
            name, _, value = words.pop(0).partition("=")
            variables[name] = value
        lines.append("\t".join(["="] + answer(words, variables)))
    FILE.write_text("\n".join(lines) + "\n")


main()
