"""Waiting in asyncio: nothing is lost by cancelling, and closing is told."""

import asyncio
import threading

import numpy as np
import pytest

import outlive


def run(main):
    return asyncio.run(asyncio.wait_for(main, 60))


async def cancelled(port):
    """A task that waited for the next value and was cancelled."""
    task = asyncio.ensure_future(port.__anext__())
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_cancelled_wait_loses_no_message_of_a_queue(node):
    consumer = outlive.Consumer(node, "/q", np.int64)
    producer = outlive.Producer(node, "/q", np.int64)

    async def main():
        got = []
        for n in range(20):
            await cancelled(consumer)
            producer.send(n)
            await asyncio.sleep(0.15 if n == 0 else 0)  # a thread would have taken it by now
            got.append(int(await consumer.__anext__()))
        return got

    assert run(main()) == list(range(20))


def test_a_wait_that_is_cancelled_as_its_message_comes_loses_none(node):
    consumer = outlive.Consumer(node, "/q", np.int64)
    producer = outlive.Producer(node, "/q", np.int64)

    async def main():
        got = []
        for n in range(50):
            task = asyncio.ensure_future(consumer.__anext__())
            await asyncio.sleep(0)
            producer.send(n)
            await asyncio.sleep(0.0005 * (n % 3))
            task.cancel()
            try:
                got.append(int(await task))
            except asyncio.CancelledError:
                pass
        while (value := consumer.receive(0)) is not None:
            got.append(int(value))
        return got

    assert run(main()) == list(range(50))


def test_a_cancelled_wait_loses_no_sample(node):
    publisher = outlive.Publisher(node, "/t", np.int64)
    subscriber = outlive.Subscriber(node, "/t", np.int64)

    async def main():
        got = []
        for n in range(20):
            await cancelled(subscriber)
            publisher.publish(n)
            got.append(int((await subscriber.__anext__()).array))
        return got

    assert run(main()) == list(range(20)) and subscriber.lost == 0
    assert ("joined", publisher.id) in subscriber.events(), "events are not thrown away"


@pytest.mark.parametrize("kind", ["subscriber", "consumer"])
@pytest.mark.parametrize("by", ["loop", "thread", "node"])
def test_a_task_is_told_when_its_port_is_closed(kind, by):
    node = outlive.Node("closes")
    port = outlive.Subscriber(node, "/t") if kind == "subscriber" else outlive.Consumer(node, "/q")

    async def main():
        tasks = [asyncio.ensure_future(port.__anext__()) for _ in range(2)]
        await asyncio.sleep(0.05)
        if by == "thread":
            threading.Thread(target=port.close).start()
        else:
            (port if by == "loop" else node).close()
        for task in tasks:
            with pytest.raises(outlive.InvalidArgument, match="closed"):
                await task
        with pytest.raises(outlive.InvalidArgument, match="closed"):
            await port.__anext__()

    run(main())


def test_two_tasks_may_await_one_port(node):
    consumer = outlive.Consumer(node, "/q", np.int64)
    producer = outlive.Producer(node, "/q", np.int64)

    async def main():
        tasks = [asyncio.ensure_future(consumer.__anext__()) for _ in range(2)]
        await asyncio.sleep(0.01)
        producer.send(1)
        producer.send(2)
        return sorted([int(await task) for task in tasks])

    assert run(main()) == [1, 2]
    # And another loop, later.
    assert run(main()) == [1, 2]


def test_a_thread_is_told_when_its_port_is_closed(node):
    subscriber = outlive.Subscriber(node, "/t")
    told = []

    def wait():
        try:
            subscriber.receive()
        except outlive.InvalidArgument as e:
            told.append(str(e))

    thread = threading.Thread(target=wait)
    thread.start()
    while True:
        try:
            subscriber.lost
        except outlive.WouldBlock:
            break
    subscriber.close()
    thread.join()
    assert len(told) == 1 and "closed" in told[0]
