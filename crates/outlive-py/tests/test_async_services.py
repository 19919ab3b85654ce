"""Services in asyncio, between processes: deaths, cancelled calls, Ctrl-C."""

import asyncio
import signal
import subprocess
import sys

import pytest

import outlive

SERVER = """
import asyncio, outlive

async def main():
    server, kept = outlive.Server(outlive.Node("server"), "/s"), []
    print("ready", flush=True)
    async for request in server:
        if request.value == "never":
            kept.append(request)
        else:
            request.respond(request.value * 2)

asyncio.run(main())
"""
CLIENT = """
import asyncio, outlive

async def main():
    client = outlive.Client(outlive.Node("client"), "/s")
    await client.wait_for_server_async()
    print("ready", flush=True)
    await client.call_async("never")

asyncio.run(main())
"""


@pytest.fixture
def start():
    """Runs a program until it says that it is ready."""
    started = []

    def start(code):
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen([sys.executable, "-c", code], **pipes)
        started.append(process)
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def run(main):
    return asyncio.run(asyncio.wait_for(main, 60))


def end(process, how):
    process.send_signal(how)
    return process.wait(60)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_awaited_calls_end_with_their_server(start, node, how):
    server = start(SERVER)
    client = outlive.Client(node, "/s")

    async def main():
        calls = [asyncio.ensure_future(client.call_async("never")) for _ in range(20)]
        assert await client.call_async(21) == 42
        assert end(server, how) == -how
        ends = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(e) for e in ends] == [outlive.ServerDied] * 20
        start(SERVER)
        assert await client.wait_for_server_async(60.0) and await client.call_async(4) == 8

    run(main())
    assert [n.name for n in outlive.Domain.of(node).nodes() if not n.alive] in ([], ["server"])


def test_an_awaited_call_goes_on_to_the_next_server(start, node):
    first = start(SERVER.replace('request.value == "never"', "True"))
    client = outlive.Client(node, "/s", resume=True)

    async def main():
        calls = [asyncio.ensure_future(client.call_async(n)) for n in range(20)]
        await asyncio.sleep(0.05)
        end(first, signal.SIGKILL)
        await asyncio.sleep(0.05)
        start(SERVER)
        assert await asyncio.gather(*calls) == [2 * n for n in range(20)]

    run(main())


def test_a_cancelled_call_takes_no_answer_of_another(node):
    server, client = outlive.Server(node, "/s"), outlive.Client(node, "/s")

    async def main():
        for n in range(20):
            asked = [("given up", n), ("awaited", n), ("given up late", n)]
            calls = [asyncio.ensure_future(client.call_async(what)) for what in asked]
            requests = [await server.receive_async() for _ in calls]
            assert [r.value for r in requests] == [list(what) for what in asked]
            calls[0].cancel()
            await asyncio.wait(calls[:1])
            assert [r.is_cancelled for r in requests] == [True, False, False]
            for request in reversed(requests):  # also those that nobody waits for
                request.respond(request.value)
            calls[2].cancel()  # its answer is there, and not taken
            assert await calls[1] == ["awaited", n]
            assert calls[0].cancelled()
        assert client.receive(0) is None, "nothing is left of a cancelled call"

    run(main())


def test_a_server_goes_on_when_a_client_is_killed(start, node):
    server = outlive.Server(node, "/s")

    async def main():
        other = outlive.Client(node, "/s")
        for _ in range(3):
            waiting = asyncio.ensure_future(server.receive_async())
            client = await asyncio.get_running_loop().run_in_executor(None, start, CLIENT)
            request = await waiting
            end(client, signal.SIGKILL)
            while not request.is_cancelled:
                await asyncio.sleep(0.01)
            with pytest.raises(outlive.ClientDied):
                request.respond("too late")
            call = asyncio.ensure_future(other.call_async("still there?"))
            (await server.receive_async()).respond("yes")
            assert await call == "yes"

    run(main())


def test_ctrl_c_at_an_awaiting_client_gives_its_request_up(start, node):
    server = outlive.Server(node, "/s")

    async def main():
        waiting = asyncio.ensure_future(server.receive_async())
        client = await asyncio.get_running_loop().run_in_executor(None, start, CLIENT)
        request = await waiting
        client.send_signal(signal.SIGINT)
        _, errors = client.communicate(timeout=60)
        assert "KeyboardInterrupt" in errors and "never retrieved" not in errors, errors
        assert request.is_cancelled
        assert [n.name for n in outlive.Domain.of(node).nodes()] == ["test"], "the client left"

    run(main())


def test_a_task_waits_for_a_server(node):
    client = outlive.Client(node, "/s")

    async def main():
        assert not await client.wait_for_server_async(0)
        assert not await client.wait_for_server_async(0.05)
        waiting = asyncio.ensure_future(client.wait_for_server_async())
        await asyncio.sleep(0.05)
        assert not waiting.done()
        server = outlive.Server(node, "/s")
        assert await waiting and await client.wait_for_server_async(0)
        server.close()
        waiting = asyncio.ensure_future(client.wait_for_server_async())
        await asyncio.sleep(0.05)
        client.close()
        with pytest.raises(outlive.InvalidArgument, match="closed"):
            await waiting

    run(main())


def test_an_awaited_reply_comes_when_its_time_is_up(node):
    server, client = outlive.Server(node, "/s"), outlive.Client(node, "/s")

    async def main():
        ticket = client.send("late", timeout=0.05)
        reply = await client.receive_async(ticket=ticket)
        with pytest.raises(outlive.Timeout):
            reply.value
        assert server.receive(0) is None and server.passed_over == 1

    run(main())


def test_what_was_received_last_is_awaited_by_name(node):
    subscriber, consumer = outlive.Subscriber(node, "/t"), outlive.Consumer(node, "/q")

    async def main():
        waiting = [asyncio.ensure_future(port.receive_async()) for port in (subscriber, consumer)]
        await asyncio.sleep(0)
        outlive.Publisher(node, "/t").publish("sample")
        outlive.Producer(node, "/q").send("message")
        sample, message = await asyncio.gather(*waiting)
        assert (sample.value, message) == ("sample", "message")

    run(main())


def test_a_client_and_a_server_are_closed_by_with(node):
    async def main():
        with outlive.Server(node, "/s") as server, outlive.Client(node, "/s") as client:
            call = asyncio.ensure_future(client.call_async("x"))
            (await server.receive_async()).respond("y")
            assert await call == "y"
        for port in (server, client):
            with pytest.raises(outlive.InvalidArgument, match="closed"):
                await port.receive_async()

    run(main())
