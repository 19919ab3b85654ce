"""Waiting in asyncio."""

import asyncio


async def next_sample(subscriber):
    """The next sample; the event loop watches the subscriber's descriptor meanwhile."""
    while True:
        sample = subscriber.receive(0)
        if sample is not None:
            return sample
        subscriber.events()  # nobody asks for them here
        loop = asyncio.get_running_loop()
        readable = loop.create_future()
        fd = subscriber.fileno()
        loop.add_reader(fd, lambda: readable.done() or readable.set_result(None))
        try:
            await readable
        finally:
            loop.remove_reader(fd)


async def next_message(consumer):
    """The next message of a queue; a thread of the loop's waits meanwhile, 100 ms at a time."""
    loop = asyncio.get_running_loop()
    while True:
        message = consumer.receive(0)
        if message is None:
            message = await loop.run_in_executor(None, consumer.receive, 0.1)
        if message is not None:
            return message
