"""store_cases.py PORT: what a PyTorch client can ask of a store, asked of 127.0.0.1:PORT.

Run by store_clients_test.py with each version of PyTorch. Each case has a name space of its own.
"""

import datetime
import os
import signal
import sys
import traceback

import torch.distributed as dist
from case_list import (
    SOON,
    Background,
    Waiting,
    case,
    expect,
    expect_error,
    new_case,
    old_case,
    outcomes,
    report,
)

SHORT = datetime.timedelta(seconds=0.3)  # For what must time out.
LONG = datetime.timedelta(seconds=SOON)
MIB = 1 << 20


class Clients:
    """Makes clients of the store, and names for keys."""

    def __init__(self, port):
        self.port = port
        self.names = 0

    def tcp_store(self):
        return dist.TCPStore("127.0.0.1", self.port, timeout=LONG, wait_for_workers=False)

    def connect(self):
        """Two clients that see the same keys, which no other case sees."""
        self.names += 1
        name = f"case {self.names}"
        return dist.PrefixStore(name, self.tcp_store()), dist.PrefixStore(name, self.tcp_store())

    def children(self, function, count):
        """Forks processes that call a function with their number and leave at once, 0 if it came
        back. They exit without the interpreter's farewell, as a client that is in a hurry."""
        pids = []
        for number in range(count):
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    function(number)
                    code = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(code)
            pids.append(pid)
        return pids


@case
def set_then_get(clients):
    a, b = clients.connect()
    a.set("key", "value")
    expect(a.get("key"), b"value")
    expect(b.get("key"), b"value")


@case
def set_overwrites(clients):
    a, _ = clients.connect()
    a.set("key", "old, and longer")
    a.set("key", "new")
    expect(a.get("key"), b"new")


@case
def value_of_any_bytes(clients):
    a, b = clients.connect()
    every = bytes(range(256)) * 3
    a.set("key", every)
    a.add("sync", 1)  # A set is not answered: the next answer says that it was carried out.
    expect(b.get("key"), every)


@case
def empty_value(clients):
    a, _ = clients.connect()
    a.set("key", "")
    expect(a.get("key"), b"")


@case
def empty_key(clients):
    a, _ = clients.connect()
    a.set("", "value")
    expect(a.get(""), b"value")


@case
def key_with_any_character(clients):
    a, b = clients.connect()
    key = "slash/ blank\tline\nnul\0 grüße 鍵"
    a.set(key, "value")
    expect(a.get(key), b"value")
    expect(b.get(key), b"value")


@case
def long_key(clients):
    a, _ = clients.connect()
    key = "k" * 8000
    a.set(key, "value")
    expect(a.get(key), b"value")
    expect(a.delete_key(key), True)


@case
def value_of_eight_mib(clients):
    a, b = clients.connect()
    large = os.urandom(MIB) * 8
    a.set("key", large)
    expect(b.get("key") == large, True)
    expect(b.delete_key("key"), True)


@case
def get_waits_for_another_client(clients):
    a, b = clients.connect()
    waiting = Waiting(a.get, "later")
    b.set("later", "came")
    expect(waiting.result(), b"came")


@case
def get_of_a_missing_key_times_out(clients):
    a, _ = clients.connect()
    a.set_timeout(SHORT)
    with expect_error("timeout", "timed out"):
        a.get("never")


@case
def add_counts(clients):
    a, b = clients.connect()
    expect(a.add("n", 5), 5)
    expect(b.add("n", -7), -2)
    expect(a.add("n", 0), -2)


@case
def add_is_read_as_text(clients):
    a, _ = clients.connect()
    a.add("n", 12)
    expect(a.get("n"), b"12")


@case
def add_of_zero_makes_the_key(clients):
    a, _ = clients.connect()
    expect(a.add("n", 0), 0)
    expect(a.get("n"), b"0")


@case
def add_to_text_that_was_set(clients):
    a, _ = clients.connect()
    a.set("n", "41")
    expect(a.add("n", 1), 42)


@case
def add_of_large_numbers(clients):
    a, _ = clients.connect()
    expect(a.add("n", 2**62), 2**62)
    expect(a.add("n", -(2**63)), -(2**62))


@case
def adds_of_eight_clients_are_all_counted(clients):
    a, _ = clients.connect()
    prefix = f"case {clients.names}"

    def add_hundred(number):
        store = dist.PrefixStore(prefix, clients.tcp_store())
        for _ in range(100):
            store.add("n", 1)

    for adder in [Background(add_hundred, number) for number in range(8)]:
        adder.result()
    expect(a.add("n", 0), 800)


@case
def compare_set_makes_a_key_that_is_expected_missing(clients):
    a, _ = clients.connect()
    expect(a.compare_set("key", "", "first"), b"first")
    expect(a.get("key"), b"first")


@case
def compare_set_makes_no_key_that_is_expected_there(clients):
    a, b = clients.connect()
    expect(a.compare_set("key", "something", "first"), b"something")
    with expect_error("timeout", "timed out"):
        b.wait(["key"], SHORT)


@case
def compare_set_replaces_what_is_expected(clients):
    a, _ = clients.connect()
    a.set("key", "old")
    expect(a.compare_set("key", "old", "new"), b"new")
    expect(a.get("key"), b"new")


@case
def compare_set_leaves_what_is_not_expected(clients):
    a, _ = clients.connect()
    a.set("key", "present")
    expect(a.compare_set("key", "old", "new"), b"present")
    expect(a.get("key"), b"present")


@case
def compare_set_lets_one_of_two_win(clients):
    a, b = clients.connect()
    expect(a.compare_set("leader", "", "a"), b"a")
    expect(b.compare_set("leader", "", "b"), b"a")


@case
def compare_set_that_makes_a_key_wakes_its_waiters(clients):
    a, b = clients.connect()
    waiting = Waiting(a.get, "key")
    expect(b.compare_set("key", "", "made"), b"made")
    expect(waiting.result(), b"made")


@case
def delete_says_whether_there_was_a_key(clients):
    a, _ = clients.connect()
    a.set("key", "value")
    expect(a.delete_key("key"), True)
    expect(a.delete_key("key"), False)


@case
def deleted_key_is_gone(clients):
    a, b = clients.connect()
    a.set("key", "value")
    expect(a.delete_key("key"), True)
    with expect_error("timeout", "timed out"):
        b.wait(["key"], SHORT)


@case
def deleted_key_can_be_set_again(clients):
    a, b = clients.connect()
    a.set("key", "old")
    a.delete_key("key")
    a.set("key", "new")
    a.add("sync", 1)
    expect(b.get("key"), b"new")


@case
def deleted_number_begins_at_zero(clients):
    a, _ = clients.connect()
    a.add("n", 7)
    a.delete_key("n")
    expect(a.add("n", 1), 1)


@case
def num_keys_counts_keys(clients):
    a, _ = clients.connect()
    before = a.num_keys()
    a.set("one", "1")
    a.set("two", "2")
    a.set("two", "II")
    a.add("three", 3)
    expect(a.num_keys() - before, 3)
    a.delete_key("one")
    expect(a.num_keys() - before, 2)


@case
def wait_for_keys_that_are_there(clients):
    a, b = clients.connect()
    a.set("one", "1")
    a.set("two", "2")
    a.add("sync", 1)
    b.wait(["one", "two", "one"], LONG)


@case
def wait_for_several_keys(clients):
    a, b = clients.connect()
    b.set("one", "1")
    waiting = Waiting(a.wait, ["one", "two", "three"], LONG)
    b.set("three", "3")
    b.add("two", 2)
    waiting.result()
    expect(a.get("three"), b"3")


@case
def wait_times_out_when_one_of_several_is_missing(clients):
    a, b = clients.connect()
    b.set("one", "1")
    with expect_error("timeout", "timed out"):
        a.wait(["one", "two"], SHORT)


@case
def all_waiters_are_woken(clients):
    _, b = clients.connect()
    stores = [dist.PrefixStore(f"case {clients.names}", clients.tcp_store()) for _ in range(20)]
    waiting = [Waiting(store.get, "start") for store in stores]
    b.set("start", "go")
    expect([waiter.result() for waiter in waiting], [b"go"] * 20)


@case
def client_works_on_after_a_timed_out_wait(clients):
    a, b = clients.connect()
    with expect_error("timeout", "timed out"):
        a.wait(["late"], SHORT)
    expect(a.add("n", 1), 1)  # Takes the wait back, in 1.13 too: its own store forgets that.
    b.set("late", "too late")
    b.add("n", 1)
    expect(a.add("n", 1), 3)
    expect(a.get("late"), b"too late")


@old_case
def timed_out_waits_in_a_row_leave_the_client_in_step(clients):
    a, b = clients.connect()
    for number in range(3):
        with expect_error("timeout"):
            a.wait([f"late {number}"], SHORT)
    expect(a.delete_key("nothing"), False)
    for number in range(3):
        b.set(f"late {number}", "x")
    b.add("sync", 1)
    before = b.num_keys()
    expect(a.num_keys(), before)


@new_case
def key_that_comes_after_a_timed_out_wait_is_no_answer(clients):
    a, b = clients.connect()
    with expect_error("timeout"):
        a.wait(["late"], SHORT)
    b.set("late", "too late")
    b.add("sync", 1)
    expect(a.num_keys(), b.num_keys())
    expect(a.get("late"), b"too late")


@case
def set_timeout_is_for_the_next_get(clients):
    a, b = clients.connect()
    a.set_timeout(SHORT)
    with expect_error("timeout", "timed out"):
        a.get("later")
    expect(a.add("sync", 1), 1)
    a.set_timeout(LONG)
    waiting = Waiting(a.get, "later")
    b.set("later", "came")
    expect(waiting.result(), b"came")


@case
def prefixes_nest(clients):
    a, b = clients.connect()
    inner = dist.PrefixStore("inner", dist.PrefixStore("outer", a))
    inner.set("key", "value")
    a.add("sync", 1)
    expect(b.get("outer/inner/key"), b"value")


@case
def same_key_under_two_prefixes_is_two_keys(clients):
    a, _ = clients.connect()
    one, two = dist.PrefixStore("one", a), dist.PrefixStore("two", a)
    one.set("key", "1")
    two.set("key", "2")
    expect((one.get("key"), two.get("key")), (b"1", b"2"))


@case
def client_with_a_world_size_needs_no_other(clients):
    dist.TCPStore("127.0.0.1", clients.port, 3, False, LONG).set("alone", "true")


@case
def five_hundred_keys(clients):
    a, b = clients.connect()
    for number in range(500):
        a.set(f"key {number}", str(number))
    a.add("sync", 1)
    expect([int(b.get(f"key {number}")) for number in range(500)], list(range(500)))


@case
def client_that_sets_and_leaves_at_once(clients):
    a, _ = clients.connect()
    prefix = f"case {clients.names}"

    def set_and_leave(number):
        dist.PrefixStore(prefix, clients.tcp_store()).set(f"left by {number}", "there")

    children = clients.children(set_and_leave, 3)
    expect([os.waitpid(pid, 0)[1] for pid in children], [0, 0, 0])
    expect([a.get(f"left by {number}") for number in range(3)], [b"there"] * 3)


@case
def client_that_is_killed_while_it_waits(clients):
    a, b = clients.connect()
    prefix = f"case {clients.names}"

    def wait_for_ever(number):
        store = dist.PrefixStore(prefix, clients.tcp_store())
        store.add("about to wait", 1)
        store.wait(["never"], LONG)

    (child,) = clients.children(wait_for_ever, 1)
    b.wait(["about to wait"], LONG)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    a.set("never", "after all")
    expect(b.get("never"), b"after all")


@new_case
def check_answers_at_once(clients):
    a, _ = clients.connect()
    a.set("one", "1")
    expect(a.check(["one"]), True)
    expect(a.check(["one", "two"]), False)
    expect(a.check([]), True)


@new_case
def append_makes_and_extends(clients):
    a, b = clients.connect()
    a.append("key", "one,")
    a.append("key", "two")
    a.add("sync", 1)
    expect(b.get("key"), b"one,two")


@new_case
def append_wakes_waiters(clients):
    a, b = clients.connect()
    waiting = Waiting(a.get, "key")
    b.append("key", "text")
    expect(waiting.result(), b"text")


@new_case
def multi_set_then_multi_get(clients):
    a, b = clients.connect()
    a.multi_set(["one", "two", "three"], ["1", "", "333"])
    a.add("sync", 1)
    expect(b.multi_get(["three", "one", "two"]), [b"333", b"1", b""])


@new_case
def multi_set_wakes_waiters(clients):
    a, b = clients.connect()
    waiting = Waiting(a.wait, ["one", "two"], LONG)
    b.multi_set(["two", "one"], ["2", "1"])
    waiting.result()


@new_case
def multi_get_waits_for_all(clients):
    a, b = clients.connect()
    b.set("one", "1")
    waiting = Waiting(a.multi_get, ["one", "two"])
    b.set("two", "2")
    expect(waiting.result(), [b"1", b"2"])


@new_case
def multi_get_times_out(clients):
    a, b = clients.connect()
    b.set("one", "1")
    a.set_timeout(SHORT)
    with expect_error("timeout"):
        a.multi_get(["one", "two"])
    expect(a.add("n", 1), 1)


@new_case
def multi_of_a_thousand_keys(clients):
    a, b = clients.connect()
    keys = [f"key {number}" for number in range(1000)]
    a.multi_set(keys, keys)
    a.add("sync", 1)
    expect(b.multi_get(keys), [key.encode() for key in keys])


@new_case
def queue_is_first_in_first_out(clients):
    a, b = clients.connect()
    for item in ("one", "", "three"):
        a.queue_push("queue", item)
    expect(a.queue_len("queue"), 3)
    expect([b.queue_pop("queue") for _ in range(3)], [b"one", b"", b"three"])
    expect(b.queue_len("queue"), 0)


@new_case
def queue_pop_waits_for_an_item(clients):
    a, b = clients.connect()
    waiting = Waiting(a.queue_pop, "queue")
    b.queue_push("queue", "item")
    expect(waiting.result(), b"item")


@new_case
def queue_pop_of_an_empty_queue_without_waiting(clients):
    a, _ = clients.connect()
    with expect_error("empty"):
        a.queue_pop("queue", False)
    expect(a.queue_len("queue"), 0)


@new_case
def queue_pop_times_out_and_takes_nothing(clients):
    a, b = clients.connect()
    a.set_timeout(SHORT)
    with expect_error("timeout"):
        a.queue_pop("queue")
    b.queue_push("queue", "item")
    expect(b.queue_len("queue"), 1)
    expect(a.queue_pop("queue"), b"item")


@new_case
def queue_gives_each_item_to_one_client(clients):
    _, b = clients.connect()
    stores = [dist.PrefixStore(f"case {clients.names}", clients.tcp_store()) for _ in range(5)]
    waiting = [Waiting(store.queue_pop, "queue") for store in stores]
    for number in range(5):
        b.queue_push("queue", str(number))
    expect(sorted(int(waiter.result()) for waiter in waiting), list(range(5)))


@new_case
def queue_and_key_of_one_name_are_two_things(clients):
    a, _ = clients.connect()
    before = a.num_keys()
    a.queue_push("name", "item")
    a.set("name", "value")
    expect(a.num_keys() - before, 1)
    expect(a.get("name"), b"value")
    expect(a.delete_key("name"), True)
    expect(a.queue_pop("name"), b"item")


@new_case
def queue_forgets_a_client_that_got_its_item(clients):
    a, b = clients.connect()
    other = dist.PrefixStore(f"case {clients.names}", clients.tcp_store())
    served = Waiting(a.queue_pop, "queue")
    b.queue_push("queue", "first")
    expect(served.result(), b"first")
    elsewhere = Waiting(a.get, "elsewhere")  # PyTorch's own store wakes this one by the next push.
    waiting = Waiting(other.queue_pop, "queue")
    b.queue_push("queue", "second")
    expect(waiting.result(), b"second")
    b.set("elsewhere", "too")
    expect(elsewhere.result(), b"too")


@new_case
def list_keys_shows_ours(clients):
    a, _ = clients.connect()
    a.set("one", "1")
    a.add("two/deep", 2)
    expect(sorted(a.list_keys()), ["one", "two/deep"])


@new_case
def list_keys_hides_the_counter_of_workers(clients):
    store = dist.TCPStore("127.0.0.1", clients.port, 2, False, LONG)
    expect([key for key in store.list_keys() if key.startswith("init")], [])


@new_case
def barrier_of_three(clients):
    stores = [clients.tcp_store() for _ in range(3)]
    waiting = [Waiting(store.barrier, "barrier of three", 3, LONG) for store in stores[:2]]
    stores[2].barrier("barrier of three", 3, LONG)
    for waiter in waiting:
        waiter.result()


@new_case
def barrier_lets_late_ones_pass(clients):
    store = clients.tcp_store()
    store.barrier("barrier of one", 1, LONG)
    store.barrier("barrier of one", 1, LONG)


@new_case
def barrier_times_out(clients):
    store = clients.tcp_store()
    with expect_error("timeout"):
        store.barrier("barrier of two", 2, SHORT)
    expect(store.add("after the barrier", 1), 1)
    store.barrier("barrier of two", 2, LONG)  # The arrival that gave up still counts.


@new_case
def barrier_under_a_prefix(clients):
    a, b = clients.connect()
    waiting = Waiting(a.barrier, "barrier", 2, LONG)
    b.barrier("barrier", 2, LONG)
    waiting.result()


@new_case
def clone_is_a_connection_of_its_own(clients):
    a, b = clients.connect()
    clone = a.clone()
    waiting = Waiting(clone.get, "later")
    a.set("not blocked", "true")  # Would wait for the lock of the connection that waits.
    expect(b.get("not blocked"), b"true")
    b.set("later", "came")
    expect(waiting.result(), b"came")


@new_case
def extended_calls_are_offered(clients):
    expect(clients.tcp_store().has_extended_api(), True)


if __name__ == "__main__":
    for name, problem in outcomes(Clients(int(sys.argv[1]))):
        report(name, problem)
