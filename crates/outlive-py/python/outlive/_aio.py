"""Waiting in asyncio.

A message is received by the loop's thread, at once, in the step that hands it to the task: a task
that is cancelled while it waits has received nothing, so nothing is lost with it.
"""

import asyncio
import contextlib
import os

from . import _errors

LOOK_S = 0.02
"""Time between two looks for what nobody announces."""


class Tasks:
    """The tasks that await one port, in any loops.

    They watch a copy of its descriptor: the number of the port's own may be that of another file
    once it is closed.
    """

    def __init__(self):
        self._fd = None
        self._waiting = {}  # futures by loop

    async def readable(self, port, until=None):
        """Returns when `port` may have something or was closed, or at `until` of the loop's clock."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        if self._fd is None:
            self._fd = os.dup(port.fileno())
        fd = self._fd
        futures = self._waiting.setdefault(loop, [])
        if not futures:
            loop.add_reader(fd, _wake, futures)
        futures.append(future)
        timer = None if until is None else loop.call_at(until, _wake, [future])
        try:
            port.fileno()  # raises if it was closed before anybody could wake us
            await future
        finally:
            if timer is not None:
                timer.cancel()
            futures.remove(future)
            if not futures:
                del self._waiting[loop]
                loop.remove_reader(fd)

    def wake(self):
        """From any thread: all look again."""
        for loop, futures in list(self._waiting.items()):
            try:
                loop.call_soon_threadsafe(_wake, futures)
            except RuntimeError:
                pass  # the loop is closed

    def __del__(self):
        if self._fd is not None:
            os.close(self._fd)


def _wake(futures):
    for future in futures:
        if not future.done():
            future.set_result(None)


async def call(client, request, timeout):
    """As ``Client.call``. The request goes with the task: nobody else knows its ticket."""
    until = None if timeout is None else asyncio.get_running_loop().time() + timeout
    ticket = client.send(request, timeout)
    try:
        while True:
            reply = client._take(ticket)
            if reply is None:
                await client._tasks().readable(client, until)
            elif reply.is_last:
                return reply.value
    except BaseException:
        with contextlib.suppress(_errors.Error):
            client.cancel(ticket)
        raise


async def wait_for_server(client, timeout):
    """As ``Client.wait_for_server``."""
    loop = asyncio.get_running_loop()
    until = None if timeout is None else loop.time() + timeout
    while not client.wait_for_server(0):
        left = LOOK_S if until is None else min(LOOK_S, until - loop.time())
        if left <= 0:
            return False
        await asyncio.sleep(left)
    return True


async def next_reply(client, ticket):
    """The next reply to the request of `ticket`, or to any."""
    while True:
        reply = client.receive(0) if ticket is None else client._take(ticket)
        if reply is not None:
            return reply
        await client._tasks().readable(client)


async def next_value(port):
    """The next of what `port` receives. ``InvalidArgument`` when it is closed."""
    while True:
        value = port.receive(0)
        if value is not None:
            return value
        await port._tasks().readable(port)
