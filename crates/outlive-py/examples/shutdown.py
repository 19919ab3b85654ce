"""A program that ends in order when it is sent SIGTERM, as ``outlive stop`` does."""

import os
import signal

import numpy as np

import outlive


def work(meanwhile):
    """Publishes until it is asked to end; what it has opened is closed then."""
    count = 0
    with outlive.Shutdown() as shutdown, outlive.Node("worker") as node:
        publisher = outlive.Publisher(node, "/numbers", np.uint64)
        while not shutdown.wait(timeout=0.01):
            publisher.publish(count)
            count += 1
            meanwhile()
            if count == 3:
                os.kill(os.getpid(), signal.SIGTERM)  # what others do
    return count


if __name__ == "__main__":
    watcher = outlive.Node("watcher")  # another process, in earnest
    numbers = outlive.Subscriber(watcher, "/numbers", np.uint64)
    count = work(lambda: numbers.receive(0))
    while numbers.receive(0) is not None:
        pass
    left = any(what == "left" for what, _ in numbers.events())
    print(f"shutdown: after {count} messages the worker {'left' if left else 'died'}")
