"""Tells the agent of muster how far this worker is, and hears what it has to say.

    from muster import beacon

    for step in range(first, last):
        beacon.step(step)
        ...
        if beacon.checkpoint_requested() or step % 1000 == 0:
            save(...)
            beacon.saved()

All of it is reading and writing a page of memory: nothing waits, nothing fails. Where there is no agent, and
in a process that is not the worker's own, every function does nothing and every answer is no. The page
belongs to the first process that uses it, for that process's life: what it forks or starts has no say.

docs/reference/beacon.md of muster describes the page. Python 3.8 and later; the standard library only.
"""

import mmap
import operator
import os
import time

__all__ = [
    "beat",
    "checkpoint_requested",
    "is_there",
    "lease_running_out",
    "leaving",
    "phase",
    "round_over",
    "saved",
    "seconds_left",
    "step",
]

_MAGIC = b"MUSTRBCN"
_VERSION = 1
_SIZE = 4096
_LARGEST = 2**64 - 1

# Words of eight bytes, by number. What the agent writes:
_SAVE_REQUESTS, _LEASE_ENDS, _LEAVING, _LEAVES_AT, _ROUND_OVER = range(8, 13)
# And the worker:
_PID, _STEP, _SAVES, _HEARTBEAT, _SAVE_HEARD, _ROUND_OVER_HEARD, _PHASE_SIZE = range(16, 23)
_PHASE = 192  # The byte where it begins.
_LONGEST_PHASE = 64

_page = None  # The file as bytes, and as words. None: not ours, or not looked for yet.
_words = None
_looked = False
_requests_met = 0  # Requests to save that have been answered.
_script_tells_steps = False


def _now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def _is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        pass
    return True


def _look():
    """Makes the page ours, where there is one and it is nobody else's."""
    global _page, _words, _looked
    _looked = True
    try:
        with open(os.environ["MUSTER_BEACON"], "r+b") as file:
            page = mmap.mmap(file.fileno(), _SIZE)
    except (KeyError, OSError, ValueError):
        return
    words = memoryview(page).cast("Q")
    if page[: len(_MAGIC)] != _MAGIC or words[1] != _VERSION:
        return
    if words[_PID] not in (0, os.getpid()) and _is_alive(words[_PID]):
        return
    words[_PID] = os.getpid()
    words[_HEARTBEAT] = _now()
    _page, _words = page, words


def _forget():
    global _page, _words, _looked
    _page = _words = None
    _looked = False


os.register_at_fork(after_in_child=_forget)


def _ours():
    if not _looked:
        _look()
    return _words


def is_there():
    """Whether an agent hears this process."""
    return _ours() is not None


def step(number=None):
    """This worker is at that step of its training; without a number, at the next one."""
    global _script_tells_steps
    if number is not None:
        number = operator.index(number)
        if number < 0:
            raise ValueError(f"a step is 0 or more, not {number}")
    words = _ours()
    if words is None:
        return
    _script_tells_steps = True
    words[_STEP] = min(words[_STEP] + 1 if number is None else number, _LARGEST)
    words[_HEARTBEAT] = _now()


def phase(name):
    """What this worker does from now on: "load", "train", "evaluate" ...; at most 64 bytes are told."""
    text = str(name).encode("utf-8", "replace")[:_LONGEST_PHASE]
    words = _ours()
    if words is None:
        return
    words[_PHASE_SIZE] = 0
    _page[_PHASE : _PHASE + len(text)] = text
    words[_PHASE_SIZE] = len(text)
    words[_HEARTBEAT] = _now()


def saved():
    """A checkpoint has been written, from which training can go on."""
    global _requests_met
    words = _ours()
    if words is None:
        return
    _requests_met = words[_SAVE_REQUESTS]
    words[_SAVES] = min(words[_SAVES] + 1, _LARGEST)
    words[_HEARTBEAT] = _now()


def beat():
    """This worker lives, though it has nothing else to tell."""
    words = _ours()
    if words is not None:
        words[_HEARTBEAT] = _now()


def checkpoint_requested():
    """Whether this worker should save soon: a machine of the job will be taken away. Until saved()."""
    words = _ours()
    if words is None:
        return False
    requests = words[_SAVE_REQUESTS]
    words[_SAVE_HEARD] = min(requests + 1, _LARGEST)
    return requests != _requests_met


def leaving():
    """Whether a machine of the job will be taken away."""
    words = _ours()
    return words is not None and words[_LEAVING] != 0


def seconds_left():
    """Until it is; None: there is none, or nobody knows when."""
    words = _ours()
    if words is None or words[_LEAVES_AT] == 0:
        return None
    return max(words[_LEAVES_AT] - _now(), 0) / 1e9


def lease_running_out():
    """Whether the rendezvous is silent: where it stays so, the workers are killed without notice."""
    words = _ours()
    return words is not None and _now() < words[_LEASE_ENDS]


def round_over():
    """Whether this round of the job is being stopped: another one, or the end, waits for that."""
    words = _ours()
    if words is None or words[_ROUND_OVER] == 0:
        return False
    words[_ROUND_OVER_HEARD] = 1
    return True


def _count_step(number):
    """For muster.tracking: what it has counted, where the script does not tell by itself."""
    words = _ours()
    if words is None or _script_tells_steps:
        return
    if number > words[_STEP]:
        words[_STEP] = number
    words[_HEARTBEAT] = _now()
