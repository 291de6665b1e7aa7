"""Keys and values, and who sees them: cases of store_cases.py."""

import os
import signal

import torch.distributed as dist
from case_list import Background, Waiting, case, expect, expect_error
from store_fixture import LONG, MIB, SHORT


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
