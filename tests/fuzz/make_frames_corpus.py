#!/usr/bin/python3
"""Writes the golden frames of the attendance as inputs of fuzz_frames: one file a frame."""

import pathlib
import sys

SERVER = 1
WHOLE = 127 << 1  # In pieces of so many bytes.


def main(golden: str, folder: str) -> None:
    corpus = pathlib.Path(folder)
    corpus.mkdir(parents=True, exist_ok=True)
    for line in pathlib.Path(golden).read_text().split("\n"):
        if not line:
            continue
        name, frame = line.split(" ")
        head = WHOLE | (SERVER if name.startswith("server.") else 0)
        (corpus / name).write_bytes(bytes([head]) + bytes.fromhex(frame))


if __name__ == "__main__":
    main(*sys.argv[1:])
