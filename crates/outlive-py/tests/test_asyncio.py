"""Waiting in asyncio: nothing is lost by cancelling, and closing is reported."""

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


@pytest.mark.parametrize("kind", ["Subscriber", "Consumer", "Client", "Server"])
@pytest.mark.parametrize("by", ["loop", "thread", "node"])
def test_a_task_is_told_when_its_port_is_closed(kind, by):
    node = outlive.Node("closes")
    port = getattr(outlive, kind)(node, "/x")

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


def test_a_cancelled_wait_loses_no_request(node):
    server = outlive.Server(node, "/s")
    client = outlive.Client(node, "/s")

    async def main():
        got = []
        for n in range(20):
            await cancelled(server)
            client.send(n)
            await asyncio.sleep(0.15 if n == 0 else 0)  # a thread would have taken it by now
            got.append((await server.receive_async()).value)
        return got

    assert run(main()) == list(range(20)) and server.passed_over == 0


def test_a_wait_that_is_cancelled_as_its_request_comes_loses_none(node):
    server = outlive.Server(node, "/s")
    client = outlive.Client(node, "/s")

    async def main():
        got = []
        for n in range(50):
            task = asyncio.ensure_future(server.receive_async())
            await asyncio.sleep(0)
            client.send(n)
            await asyncio.sleep(0.0005 * (n % 3))
            task.cancel()
            try:
                got.append((await task).value)
            except asyncio.CancelledError:
                pass
        while (request := server.receive(0)) is not None:
            got.append(request.value)
        return got

    assert run(main()) == list(range(50))


@pytest.mark.parametrize("by_ticket", [True, False])
def test_a_wait_that_is_cancelled_as_its_reply_comes_loses_none(node, by_ticket):
    server = outlive.Server(node, "/s")
    client = outlive.Client(node, "/s")

    async def main():
        got = []
        for n in range(50):
            ticket = client.send(n)
            task = asyncio.ensure_future(client.receive_async(ticket=ticket if by_ticket else None))
            await asyncio.sleep(0)
            request = server.receive(0)
            request.respond(request.value)
            await asyncio.sleep(0.0005 * (n % 3))
            task.cancel()
            try:
                got.append((await task).value)
            except asyncio.CancelledError:
                pass
        while (reply := client.receive(0)) is not None:
            got.append(reply.value)
        return sorted(got)

    assert run(main()) == list(range(50))


def test_many_tasks_call_through_one_client(node):
    server = outlive.Server(node, "/square")
    client = outlive.Client(node, "/square")

    async def serve():
        waiting = []
        async for request in server:
            waiting.append(request)
            if len(waiting) == 10:  # in the other order, so that each sets replies of others aside
                for request in reversed(waiting):
                    request.respond_part("at work")
                    request.respond(request.value**2)
                waiting.clear()

    async def main():
        serving = asyncio.ensure_future(serve())
        calls = [client.call_async(n, timeout=60.0) for n in range(100)]
        squares = await asyncio.gather(*calls)
        serving.cancel()
        return squares

    assert run(main()) == [n * n for n in range(100)]


def test_a_reply_that_another_call_set_aside_wakes_its_task(node):
    server = outlive.Server(node, "/s")
    client = outlive.Client(node, "/s")

    async def main():
        slow = client.send("slow")
        task = asyncio.ensure_future(client.receive_async(ticket=slow))
        await asyncio.sleep(0.01)
        quick = client.send("quick")
        for _ in range(2):
            request = server.receive(0)
            request.respond(request.value)
        # Takes the other one in too, and makes the descriptor quiet.
        assert client.receive(1.0, ticket=quick).value == "quick"
        assert (await task).value == "slow"

    run(main())


def test_a_call_ends_with_its_server_its_time_or_its_task(node):
    other = outlive.Node("other")
    server = outlive.Server(other, "/s")
    client = outlive.Client(node, "/s")

    async def main():
        with pytest.raises(outlive.Timeout):
            await client.call_async("late", timeout=0.02)
        task = asyncio.ensure_future(client.call_async("given up"))
        await asyncio.sleep(0.01)
        request = server.receive(0)
        assert request.value == "given up" and not request.is_cancelled
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert request.is_cancelled
        with pytest.raises(outlive.Refused):
            task = asyncio.ensure_future(client.call_async("refused"))
            await asyncio.sleep(0.01)
            server.receive(0).refuse("not today")
            await task
        task = asyncio.ensure_future(client.call_async("unanswered"))
        await asyncio.sleep(0.05)
        server.close()
        with pytest.raises(outlive.ServerDied):
            await task
        with pytest.raises(outlive.ServerDied):
            await client.call_async("to nobody")

    run(main())
