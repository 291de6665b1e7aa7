"""Writes the golden traces as inputs of fuzz_store: make_store_corpus.py golden.txt FOLDER.

One file per section and mode (the dialect fixed, and detected), and one per case, so that the fuzzer has long talks to
cut and short ones to join.
"""

import pathlib
import struct
import sys

DETECT = 7
VALIDATE = bytes.fromhex("00cef7853c")
LONGEST_PIECE = 0xFFFF


def piece(client: int, data: bytes) -> bytes:
    return bytes([client]) + struct.pack("<H", len(data)) + data


def read_sections(golden: pathlib.Path) -> list[dict[str, list[tuple[int, bytes]]]]:
    """Per section, by case: the client and the bytes of each request."""
    sections: list[dict[str, list[tuple[int, bytes]]]] = []
    for line in golden.read_text().splitlines():
        if line.startswith("# ==="):
            sections.append({})
        if not line or line.startswith("#"):
            continue
        name, direction, data, connection = line.split("\t")[:4]
        if direction == "C>S" and len(data) // 2 <= LONGEST_PIECE:
            sections[-1].setdefault(name, []).append((int(connection), bytes.fromhex(data)))
    return [section for section in sections if section]


def talk(requests: list[tuple[int, bytes]], dialect: str) -> bytes:
    """All of the requests, after VALIDATE where the dialect has it and the client does not begin with it."""
    result = b""
    seen: set[int] = set()
    for client, data in requests:
        if client not in seen and dialect >= "C" and not data.startswith(VALIDATE):
            result += piece(client, VALIDATE)
        seen.add(client)
        result += piece(client, data)
    return result


def main() -> None:
    golden, folder = map(pathlib.Path, sys.argv[1:3])
    folder.mkdir(parents=True, exist_ok=True)
    for number, section in enumerate(read_sections(golden)):
        dialect = next(iter(section))[0]
        talks = {f"section{number}": [request for case in section.values() for request in case], **section}
        for name, requests in talks.items():
            for mode in (ord(dialect) - ord("A"), DETECT):
                (folder / f"{name}.{mode}").write_bytes(bytes([mode]) + talk(requests, dialect))


if __name__ == "__main__":
    main()
