#!/usr/bin/python3
"""Writes inputs of fuzz_rendezvous: the golden frames of an agent, and lives of sound jobs."""

import pathlib
import sys

FIRST_HERE = b"\1"
NOW, LATER = 0, 2 << 5  # The upper bits of a deed: after how long.
# As proto/muster/v1/rendezvous.proto numbers them.
GREETING, PARTING, PING, ACKNOWLEDGED, UNREACHABLE, STARTED, FAILED, SUCCEEDED, STOPPED, EMPTY, STUCK, LEAVING, SEEN, \
    NOTICE, SAVING, REFUSED = range(2, 18)
PEER_LOSS, WORKER_ERROR = 6, 5


def varint(number):
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def message(**fields):
    """Fields by number, as n1=...: numbers, texts and messages, or lists of them."""
    out = b""
    for name, value in fields.items():
        number = int(name[1:])
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, int):
                out += varint(number << 3) + varint(each)
            else:
                each = each.encode() if isinstance(each, str) else each
                out += varint(number << 3 | 2) + varint(len(each)) + each
    return out


def frame(kind, body):
    whole = message(**{f"n{kind}": body})
    return len(whole).to_bytes(4, "big") + whole


ROUND = message(n1=1 << 32, n2=1)  # The first one of a server whose random bits are 0.


def hello(name, nodes="3", held=b""):
    settings = [message(n1="min-nodes", n2="1"), message(n1="max-nodes", n2=nodes),
                message(n1="max-restarts", n2="3")]
    return frame(GREETING, message(n1=message(n1="job", n3=name, n4="machine-" + name, n5=name, n7=1, n8="default",
                                              n11=message(n1="10.0.0.1", n2=4000), n14=settings, n16=held, n17=1)))


def report(kind, *rest):
    return frame(kind, message(n1=ROUND, **{f"n{2 + at}": value for at, value in enumerate(rest)}))


def failure(cause):
    return message(n1=0, n6=message(n1=1), n8=cause)


def lives():
    """Name to (place, after how long, frame)s: a job of one node, of two, and what may come between."""
    up = [(0, NOW, report(ACKNOWLEDGED)), (0, NOW, report(STARTED))]
    end = [(0, NOW, report(STOPPED)), (0, NOW, report(EMPTY))]
    one = [(0, NOW, hello("a", nodes="1")), *up]
    two = [(0, NOW, hello("a", nodes="2")), (1, NOW, hello("b", nodes="2")), *up]
    yield "succeeds", [*one, (0, LATER, report(SUCCEEDED)), *end, (0, NOW, frame(SEEN, b""))]
    yield "fails", [*one, (0, LATER, report(FAILED, failure(WORKER_ERROR), 1)), *end]
    yield "saves", [*two, (1, NOW, frame(NOTICE, message(n1="spot"))), (0, NOW, report(FAILED, failure(PEER_LOSS), 1)),
                    (0, NOW, report(SAVING)), (1, NOW, report(SAVING)), *end]
    yield "leaves", [*two, (1, NOW, frame(LEAVING, message(n1=15))), *end, (1, NOW, report(EMPTY))]
    yield "is stuck", [*two, (1, NOW, report(UNREACHABLE, "no way")), *end, (1, NOW, report(STUCK, 7))]
    yield "is refused", [*two, (0, NOW, report(REFUSED, "10.9.9.9"))]
    yield "is gone", [*two, (2, NOW, frame(PARTING, message(n1=message(n1="job", n2="b", n3=ROUND))))]
    yield "comes back", [(0, NOW, hello("a", held=message(n1=ROUND, n4=1, n6=2, n7=ROUND))),
                         (1, LATER, hello("b", held=message(n1=ROUND, n2=1, n6=2, n7=ROUND, n11=message(n2=1))))]


def main(golden: str, folder: str) -> None:
    corpus = pathlib.Path(folder)
    corpus.mkdir(parents=True, exist_ok=True)
    for line in pathlib.Path(golden).read_text().split("\n"):
        if line.startswith("client."):
            name, each = line.split(" ")
            (corpus / name).write_bytes(FIRST_HERE + b"\0" + hello("a") + b"\0" + bytes.fromhex(each))
    for name, life in lives():
        whole = b"".join(bytes([place | later]) + each for place, later, each in life)
        for head in (FIRST_HERE, b"\0"):
            (corpus / f"{name} {head[0]}".replace(" ", "_")).write_bytes(head + whole)


if __name__ == "__main__":
    main(*sys.argv[1:])
