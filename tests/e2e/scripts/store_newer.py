"""What PyTorch 1.13 does not have: cases of store_cases.py."""

import torch.distributed as dist
from case_list import Waiting, expect, expect_error, new_case
from store_fixture import LONG, SHORT


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
