"""Cases that one process runs with its PyTorch, and how it tells the test what came out."""

import contextlib
import json
import pathlib
import threading
import time
import traceback

import torch

IS_NEW = int(torch.__version__.split(".")[0]) >= 2
SOON = 60  # Seconds for what must happen; more than any of it takes on a busy machine.

CASES = []


def case(function):
    """Marks a function as a case for all versions."""
    CASES.append(function)
    return function


def new_case(function):
    """Marks a function as a case for what PyTorch 1.13 does not have."""
    return case(function) if IS_NEW else function


def old_case(function):
    """Marks a function as a case for a quirk of PyTorch 1.13."""
    return function if IS_NEW else case(function)


def outcomes(*fixtures):
    """Runs all cases in order; yields the name of each and what went wrong, None if nothing did."""
    for function in CASES:
        problem = None
        try:
            function(*fixtures)
        except Exception:
            problem = traceback.format_exc()
        yield function.__name__, problem


def report(name, problem):
    """Tells the test, by a line of JSON."""
    print("case " + json.dumps({"name": name, "problem": problem}), flush=True)


def expect(actual, expected):
    if actual != expected:
        raise AssertionError(f"expected {expected!r}, got {actual!r}")


@contextlib.contextmanager
def expect_error(*words):
    """Some PyTorch error, whose text has one of the words (any text if there are none)."""
    try:
        yield
    except Exception as error:  # RuntimeError in 1.13, a class of its own later.
        if words and not any(word in str(error).lower() for word in words):
            raise AssertionError(f"expected an error with one of {words}, got {error!r}") from error
    else:
        raise AssertionError("expected an error, and there was none")


# System calls in which a thread waits for a socket (x86-64): read, poll, recvfrom, recvmsg, ppoll.
WAITING_FOR_A_SOCKET = {"0", "7", "45", "47", "271"}


class Background:
    """A call that runs in a thread of its own; result() waits for it, and raises what it raised."""

    def __init__(self, function, *arguments):
        self.outcome = None
        self.thread = threading.Thread(target=self.run, args=(function, arguments), daemon=True)
        self.thread.start()

    def run(self, function, arguments):
        try:
            self.outcome = (function(*arguments), None)
        except Exception as error:
            self.outcome = (None, error)

    def result(self):
        self.thread.join(SOON)
        if self.outcome is None:
            raise AssertionError(f"still not done after {SOON} s")
        value, error = self.outcome
        if error is not None:
            raise error
        return value


class Waiting(Background):
    """A call that has asked the store for something, and waits for the answer."""

    def __init__(self, function, *arguments):
        super().__init__(function, *arguments)
        deadline = time.monotonic() + SOON
        while self.thread.is_alive() and not self.waits_for_a_socket():
            if time.monotonic() > deadline:
                raise AssertionError(f"did not wait for a socket within {SOON} s")
            time.sleep(0.001)  # The kernel offers no event for it.

    def waits_for_a_socket(self):
        try:
            call = pathlib.Path(f"/proc/self/task/{self.thread.native_id}/syscall").read_text()
        except OSError:  # The thread has just ended.
            return False
        return call.split()[0] in WAITING_FOR_A_SOCKET
