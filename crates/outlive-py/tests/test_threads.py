"""Several threads with one object: none holds the others up as it gets an error."""

import os
import subprocess
import sys
import threading
import time

import pytest

import outlive

PROGRAM = """
import sys, threading, numpy as np, outlive
sys.setswitchinterval(1e-6)
node = outlive.Node("threads")
{make}

def loop(use):
    for _ in range({rounds}):
        try:
            use()
        except outlive.Error:
            pass

uses = [{uses}]
threads = [threading.Thread(target=loop, args=[use], daemon=True) for use in uses * 4]
for thread in threads:
    thread.start()
{meanwhile}
for thread in threads:
    thread.join()
print("through", flush=True)
"""


def assert_through(make, uses, meanwhile="", rounds=3000):
    code = PROGRAM.format(make=make, uses=uses, meanwhile=meanwhile, rounds=rounds)
    # A thread that waits for a lock with the interpreter's in hand stops all others for good.
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120, text=True)
    assert out.stdout == "through\n", out.stderr


@pytest.mark.parametrize(
    "uses",
    ["mutex.acquire", "mutex.release", "mutex.release, mutex.acquire, lambda: mutex.data"],
)
def test_threads_that_use_a_closed_lock_let_each_other_run(root, uses):
    make = "mutex = outlive.RobustMutex(node, '/m', np.int64)\nnode.close()"
    assert_through(make, uses)


def test_threads_that_use_a_lock_as_it_is_closed_let_each_other_run(root):
    make = """
mutex = outlive.RobustMutex(node, "/m")
def enter():
    with mutex:
        pass
"""
    assert_through(make, "enter", "import time; time.sleep(0.01); node.close()", rounds=20_000)


def test_threads_that_use_a_closed_node_let_each_other_run(root):
    assert_through("node.close()", "lambda: outlive.LocklessSet(node, '/set', 4)")


ASKED = """
import dataclasses
from typing import List

@dataclasses.dataclass
class Goal:
    points: List[float]

server = outlive.Server(node, "/s", {of})
client = outlive.Client(node, "/s", {of})
client.send({value})
request = server.receive(60.0)
"""


@pytest.mark.parametrize(
    ("of", "value"),
    [
        ("Goal", "Goal([0.5] * 1000)"),
        ("(np.float32, (None, 4))", "np.zeros((250_000, 4), np.float32)"),
    ],
    ids=["dataclass", "array"],
)
def test_threads_that_decode_a_request_let_each_other_run(root, of, value):
    make = ASKED.format(of=of, value=value)
    assert_through(make, "lambda: request.value, lambda: request.is_cancelled", rounds=40)
    assert_through(make, "lambda: request.value, lambda: request.respond(1)", rounds=40)


@pytest.mark.parametrize("close", ["request.respond(1)", "node.close()"])
def test_threads_that_use_an_answered_request_let_each_other_run(root, close):
    uses = "lambda: request.value, lambda: request.is_cancelled, lambda: request.respond_part(1)"
    assert_through(ASKED.format(of="bytes", value="b'x'") + close, uses)


@pytest.mark.parametrize("uses", ["lambda: loan.array", "loan.publish"])
def test_threads_that_use_a_loan_that_is_gone_let_each_other_run(root, uses):
    make = "loan = outlive.Publisher(node, '/t', np.int64).loan()\nloan.drop()"
    assert_through(make, uses)


def test_threads_that_use_a_message_that_is_done_let_each_other_run(root):
    make = """
consumer, producer = outlive.Consumer(node, "/q", bytes), outlive.Producer(node, "/q", bytes)
producer.send(b"x")
message = consumer.borrow(60.0)
message.ack()
"""
    assert_through(make, "lambda: message.array, lambda: message.value")


def test_two_threads_that_await_a_port_for_the_first_time_let_each_other_run(root):
    make = """
from outlive import _aio
subscriber = outlive.Subscriber(node, "/t", bytes)

class Tasks(_aio.Tasks):
    made = 0

    def __init__(self):
        super().__init__()
        Tasks.made += 1
        if Tasks.made == 1:
            subscriber._tasks()  # what a thread does that is quicker

    def __del__(self):
        if Tasks.made == 2:
            subscriber._tasks()

_aio.Tasks = Tasks
assert subscriber._tasks() is subscriber._tasks() and Tasks.made == 2
Tasks.made = 3
"""
    assert_through(make, "subscriber.events", rounds=1)


def test_a_child_that_is_forked_as_a_thread_ends_opens_a_node(node, child):
    # What they were stays known: an ended thread looks through all of them for what it held.
    closed = []
    for _ in range(5000):  # one after the other: each has a descriptor while it is open
        condition = outlive.RobustCondition(node, "/c")
        condition.close()
        closed.append(condition)
    mutex, done = outlive.RobustMutex(node, "/m"), threading.Event()

    def hold():
        with mutex:
            pass

    def start():
        while not done.is_set():
            thread = threading.Thread(target=hold)
            thread.start()
            thread.join()

    starts = threading.Thread(target=start)
    starts.start()
    try:
        children = [child(lambda: outlive.Node("child").close()) for _ in range(20)]
        assert all(ended(pid) == 0 for pid in children)
    finally:
        done.set()
        starts.join()


def ended(pid):
    """The status of a child; None: it does not end."""
    end = time.monotonic() + 30.0
    while time.monotonic() < end:
        waited, status = os.waitpid(pid, os.WNOHANG)
        if waited == pid:
            return status
        time.sleep(0.01)
    return None
