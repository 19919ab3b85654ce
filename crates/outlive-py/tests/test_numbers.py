"""Numbers that mean nothing are refused, in our own words."""

import math
import re

import numpy as np
import pytest

import outlive

NAN = float("nan")


def refused(call, *args, says=".", **named):
    with pytest.raises(outlive.InvalidArgument) as refusal:
        call(*args, **named)
    # pytest before 8 does not look at the notes.
    said = [str(refusal.value), *getattr(refusal.value, "__notes__", [])]
    assert re.search(says, "\n".join(said))


@pytest.mark.parametrize("period", [0, 0.0, -1, -math.inf, NAN])
def test_a_timer_needs_a_period(period):
    refused(outlive.Timer, period, says="period")


def test_a_timer_needs_a_delay_that_is_not_past():
    for delay in (-1, NAN):
        refused(outlive.Timer, delay=delay, says="delay|nan")
    assert outlive.WaitSet().wait([outlive.Timer(delay=0)], 1.0) != []
    for never in (outlive.Timer(delay=math.inf), outlive.Timer(math.inf)):
        assert outlive.WaitSet().wait([never], 0) == []


def test_no_wait_takes_nan_for_a_time(node):
    publisher = outlive.Publisher(node, "/t", np.int64)
    subscriber = outlive.Subscriber(node, "/t", np.int64)
    publisher.publish(7)
    queue = outlive.Queue(node, "/q")
    consumer, producer = queue.consumer(), queue.producer()
    producer.send(7)
    server, client = outlive.Server(node, "/s"), outlive.Client(node, "/s")
    mutex, lock = outlive.RobustMutex(node, "/m"), outlive.RobustRwLock(node, "/rw")
    changed, permits = outlive.RobustCondition(node, "/c"), outlive.RobustSemaphore(node, "/sem", 1)
    watch = node.watch(node.id)
    for call in (
        subscriber.receive, consumer.receive, consumer.borrow, queue.get, server.receive,
        client.receive, client.wait_for_server, producer.wait_for_consumer, mutex.acquire,
        lock.read, lock.write, lock.acquire_read, lock.acquire_write, permits.acquire, watch.wait,
        client.wait_for_server_async,
    ):  # fmt: skip
        refused(call, timeout=NAN, says="nan")
    refused(producer.send, 1, NAN)
    refused(queue.put_batch, [1], NAN)
    refused(client.call, 1, NAN)
    refused(client.call_async, 1, NAN)
    refused(client.send, 1, NAN)
    refused(outlive.WaitSet().wait, [subscriber], NAN)
    refused(outlive.Publisher, node, "/r", np.int64, reliable_timeout=NAN)
    with mutex:
        refused(changed.wait, mutex, NAN)
        refused(changed.wait_for, mutex, lambda: True, NAN)
    assert subscriber.receive(timeout=-1).value == 7 and consumer.receive(timeout=-1) == 7
    with outlive.Shutdown() as shutdown:
        refused(shutdown.wait, NAN)


@pytest.mark.parametrize("ordered", [-1, -0.001, NAN])
def test_messages_are_not_held_back_for_less_than_no_time(node, ordered):
    refused(outlive.Consumer, node, "/q", ordered=ordered)
    refused(outlive.Queue(node, "/q2", ordered=ordered).consumer)


def test_whole_numbers_out_of_range_are_refused(node):
    ids = outlive.LocklessSet(node, "/ids", 4)
    client = outlive.Client(node, "/s")
    publisher = outlive.Publisher(node, "/t", np.float64, (None,))
    for bad in (-1, 2**64):
        for call in (
            ids.insert, ids.remove, ids.__contains__, node.watch, publisher.loan, client.cancel,
        ):  # fmt: skip
            refused(call, bad, says=f"the number {bad}")
        refused(client.receive, 0, ticket=bad)
        refused(client.receive_async, ticket=bad)
    for many in (2**61, 2**62, 2**64 - 1):
        refused(publisher.loan, many, says=f"{many} elements")
    headed = outlive.Publisher(node, "/h", outlive.Headed([("n", "u8")], "f8"), type_name="test/H")
    refused(headed.loan, 2**62, says="elements")
    refused(outlive.Publisher(node, "/f", np.float64).loan, 2**62, says="any length")
    assert list(ids) == []


def test_a_member_listed_twice_is_named(node):
    subscriber = outlive.Subscriber(node, "/t", np.int64)
    timer = outlive.Timer(0.001)
    refused(outlive.WaitSet().wait, [subscriber, timer, subscriber], 0, says="Subscriber /t.*twice")
    refused(outlive.WaitSet().wait, [timer, timer], 0, says="Timer.*twice")
    assert outlive.WaitSet().wait([subscriber, timer], 1.0) == [timer]
