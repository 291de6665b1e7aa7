"""Writes the servers' side of the golden traces as inputs of fuzz_store_client:
make_store_client_corpus.py golden.txt FOLDER.

One file per case, in the dialect that it was recorded in, and one per section with all that its servers said.
"""

import pathlib
import struct
import sys

VALIDATE = bytes.fromhex("00cef7853c")
SILENT, PAUSES, AT_ONCE = 32, 64, 128
CONNECT, GET, MULTI_GET = 0, 4, 5
PROOFS = {"A": bytes(8), "B": b"\1", "C": b"\1\1\1\1"}
ECHO = b"\x7f\x7f\x7f\x7f"
DETECTED = 7

# The act of each opcode, in C and later, A and B.
OF_C = {1: 1, 2: 9, 3: 4, 4: 8, 5: 7, 6: 6, 7: 11, 8: 10, 9: 3, 10: 5, 11: 2}
OF_C |= {13: 19, 14: 13, 15: 15, 16: 16, 17: 12, 18: 17}
OF_A = {0: 1, 1: 9, 2: 4, 3: 8, 4: 7, 5: 6, 6: 11, 8: 10}
OF_B = {**OF_A, 7: 10, 8: 3, 9: 5, 10: 2}


def call(act: int, data: bytes, how: int = 0) -> bytes:
    return bytes([act | how]) + struct.pack("<H", len(data)) + data


def connect(*servers: bytes) -> bytes:
    return call(CONNECT, b"".join(bytes([len(server) | AT_ONCE]) + server for server in servers))


def act_of(dialect: str, request: bytes) -> int | None:
    if request.startswith(VALIDATE):
        request = request[len(VALIDATE) :]
    table = {"A": OF_A, "B": OF_B}.get(dialect, OF_C)
    return table.get(request[0]) if request else None


def read_cases(golden: pathlib.Path) -> dict[str, bytes]:
    """By case: the calls whose answers it shows."""
    cases: dict[str, bytes] = {}
    act: int | None = None
    for line in golden.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        name, direction, data = line.split("\t")[:3]
        if direction == "C>S":
            act = act_of(name[0], bytes.fromhex(data))
        elif act is not None and data not in ("EOF", "RST", "NONE"):
            reply = bytes.fromhex(data)
            before = b"\0" if act in (GET, MULTI_GET) else b""  # Our client waits for the key first.
            for how in (0, SILENT, PAUSES, AT_ONCE):
                cases[name] = cases.get(name, b"") + call(act, before + reply, how)
    return cases


def main() -> None:
    golden, folder = map(pathlib.Path, sys.argv[1:3])
    folder.mkdir(parents=True, exist_ok=True)
    for name, calls in read_cases(golden).items():
        for mode in (ord(name[0]) - ord("A"), DETECTED):
            (folder / f"{name}.{mode}").write_bytes(bytes([mode]) + calls)
    detections = {"A": [b"", bytes(8), b""], "B": [b"", bytes(8), b"\1"], "C": [b"", b"", PROOFS["C"]], "D": [ECHO]}
    for dialect, servers in detections.items():
        (folder / f"detect.{dialect}").write_bytes(bytes([DETECTED]) + connect(*servers))
    for mode, dialect in enumerate("ABCDEFG"):
        (folder / f"connect.{dialect}").write_bytes(bytes([mode]) + connect(PROOFS.get(dialect, ECHO)))


if __name__ == "__main__":
    main()
