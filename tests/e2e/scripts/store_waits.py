"""Waiting for keys, and waiting in vain: cases of store_cases.py."""

import torch.distributed as dist
from case_list import Waiting, case, expect, expect_error, new_case, old_case
from store_fixture import LONG, SHORT


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
