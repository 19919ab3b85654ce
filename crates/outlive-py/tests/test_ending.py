"""Leaving in order: by closing, at the interpreter's end, when asked to."""

import asyncio
import concurrent.futures
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import outlive

PROGRAM = """
import dataclasses, sys, numpy as np, outlive

@dataclasses.dataclass
class Goal:
    x: float
    def far(self):
        return publisher, node

node = outlive.Node("program")
subscriber = outlive.Subscriber(node, "/goal", Goal)
publisher = outlive.Publisher(node, "/goal", Goal)
publisher.publish(Goal(1.0))
sample = subscriber.receive(10.0)
value = sample.value
consumer, mutex = outlive.Consumer(node, "/jobs", Goal), outlive.RobustMutex(node, "/m", np.int64)
producer = outlive.Producer(node, "/jobs", Goal)
producer.send(Goal(2.0))
arrays = outlive.Publisher(node, "/arrays", np.int64)
loan = arrays.loan()
view = loan.array
Goal.everything = [node, subscriber, publisher, sample, consumer, mutex, producer, arrays, loan]
server, client = outlive.Server(node, "/s", Goal), outlive.Client(node, "/s", Goal)
client.send(Goal(3.0))
request = server.receive(10.0)
Goal.more = [server, client, request]
"""


def watched(code, *, how=(), ask=None):
    """Runs a program that publishes and says "ready" when its code is through; the events that its
    subscriber here sees, its node's entry afterwards, and the exit code."""
    node = outlive.Node("watcher")
    subscriber = outlive.Subscriber(node, "/watched", np.int64)
    code = f"""
import numpy as np, outlive
{code}
watched = outlive.Publisher(node, "/watched", np.int64)
print("ready", flush=True)
import sys
sys.stdin.read()
{how or 'pass'}
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    child = subprocess.Popen([sys.executable, "-c", code], **pipes)
    try:
        assert child.stdout.readline() == "ready\n"
        subscriber.receive(0)  # which notices the publisher
        child.stdin.close()
        if ask is not None:
            child.send_signal(ask)
        status = child.wait(60)
    finally:
        child.kill()
        child.stdout.close()
    events = []
    deadline = time.monotonic() + 30
    while not events and time.monotonic() < deadline:
        subscriber.receive(0.1)
        events = [what for what, _ in subscriber.events() if what != "joined"]
    left = [n.name for n in outlive.Domain.of(node).nodes() if n.name != "watcher"]
    return status, events, left


def test_a_program_that_ends_has_left(root):
    assert watched(PROGRAM) == (0, ["left"], [])


def test_a_port_whose_node_nobody_keeps_leaves_too(root):
    code = """
class Of:
    pass
Of.kept = [outlive.Publisher(outlive.Node("unkept"), "/watched", np.int64), Of]
"""
    status, events, left = watched(code + "node = outlive.Node('other')")
    assert (status, left) == (0, []) and set(events) == {"left"}


def test_a_program_that_ends_by_an_exception_or_exit_has_left(root):
    assert watched(PROGRAM, how="raise KeyError") == (1, ["left"], [])
    assert watched(PROGRAM, how="sys.exit(3)") == (3, ["left"], [])


def test_a_program_whose_thread_waits_as_it_ends_has_left(root):
    how = """
import threading, time
threading.Thread(target=outlive.Subscriber(node, "/never").receive, daemon=True).start()
time.sleep(0.1)
"""
    assert watched(PROGRAM, how=how) == (0, ["left"], [])


@pytest.mark.parametrize(
    "wait",
    ["lock.acquire()", "read.acquire_read()", "free.acquire() and changed.wait(free)"],
)
def test_a_program_whose_thread_waits_for_a_lock_as_it_ends_has_left(root, wait):
    how = f"""
import threading, time
held, lock = outlive.RobustMutex(node, "/l"), outlive.RobustMutex(node, "/l")
written, read = outlive.RobustRwLock(node, "/rw"), outlive.RobustRwLock(node, "/rw")
free, changed = outlive.RobustMutex(node, "/f"), outlive.RobustCondition(node, "/c")
held.acquire()
written.acquire_write()
def waits():
    {wait}
threading.Thread(target=waits, daemon=True).start()
time.sleep(0.3)
"""
    assert watched("node = outlive.Node('waits')", how=how) == (0, ["left"], [])


@pytest.mark.parametrize(
    "wait",
    [
        "outlive.Subscriber(node, '/never').receive()",
        "outlive.Consumer(node, '/q').receive()",
        "lock.acquire()",
        "while True: outlive.Subscriber(node, '/again')",
    ],
    ids=["topic", "queue", "lock", "opening"],
)
def test_what_a_daemon_thread_waited_for_is_not_printed_at_the_end(root, wait):
    # It would print in the midst of the interpreter's last flush, which may abort then.
    code = f"""
import outlive, threading, time
node = outlive.Node("waits")
held, lock = outlive.RobustMutex(node, "/l"), outlive.RobustMutex(node, "/l")
held.acquire()
def waits():
    {wait}
threading.Thread(target=waits, daemon=True).start()
time.sleep(0.3)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "kept",
    [
        "permit = outlive.RobustSemaphore(node, '/s', 1).acquire()",
        "lock = outlive.RobustMutex(node, '/l', np.int64); lock.acquire(); data = lock.data",
        "lock = outlive.RobustRwLock(node, '/rw', np.int64); data = lock.write().__enter__()",
        "publisher.publish(images); sample = subscriber.receive(60.0)",
        "publisher.publish(images); tensor = subscriber.receive(60.0).__dlpack__()",
        "producer.send(images); message = consumer.borrow(60.0)",
        "loan = publisher.loan(); array = loan.array",
        "permit = outlive.RobustSemaphore(node, '/s', 1).acquire(); node.close()",
    ],
    ids=["permit", "mutex", "write", "sample", "tensor", "message", "loan", "closed"],
)
def test_a_program_that_keeps_what_its_interpreter_never_frees_has_left(root, kept):
    code = f"""
other, node = outlive.Node("other"), outlive.Node("keeps")
images = np.ones(100_000, np.uint8)
of = np.uint8, images.shape
publisher, subscriber = outlive.Publisher(node, "/t", *of), outlive.Subscriber(node, "/t", *of)
consumer, producer = outlive.Consumer(node, "/q", *of), outlive.Producer(node, "/q", *of)
{kept}
node = other
"""
    # Its frame keeps the names of the program, and they what they name.
    how = """
import threading, time
def idle():
    time.sleep(3600.0)
threading.Thread(target=idle, daemon=True).start()
"""
    assert watched(code, how=how) == (0, ["left"], [])


def test_a_program_whose_thread_has_the_data_of_a_lock_as_it_ends_has_left(root):
    how = """
import threading, time
mutex = outlive.RobustMutex(node, "/l", np.int64)
def holds():
    with mutex as data:
        time.sleep(3600.0)
threading.Thread(target=holds, daemon=True).start()
time.sleep(0.3)
"""
    assert watched("node = outlive.Node('holds')", how=how) == (0, ["left"], [])


def test_a_program_whose_thread_has_the_array_of_a_published_loan_as_it_ends_has_left(root):
    how = """
import threading, time
images = outlive.Publisher(node, "/images", np.uint8, (100_000,))
def publishes():
    with images.loan() as image:
        image[:] = 1
    # Reads it for as long as it runs.
    while True:
        np.all(image == 1)
threading.Thread(target=publishes, daemon=True).start()
time.sleep(0.3)
"""
    assert watched("node = outlive.Node('publishes')", how=how) == (0, ["left"], [])


@pytest.mark.parametrize(
    "opens",
    [
        "outlive.Node('late')",
        "outlive.Publisher(outlive.Node('late'), '/watched', np.int64)",
        "outlive.Publisher(node, '/watched', np.int64)",
    ],
    ids=["node", "both", "port"],
)
def test_a_program_whose_threads_open_something_as_it_ends_has_left(root, opens):
    how = f"""
import threading, time
kept = []
def open_many():
    while True:
        kept.append({opens})
for _ in range(4):
    threading.Thread(target=open_many, daemon=True).start()
while len(kept) < 20:
    time.sleep(0.001)
"""
    status, events, left = watched("node = outlive.Node('opens')", how=how)
    assert (status, set(events), left) == (0, {"left"}, [])


def test_a_forked_worker_of_multiprocessing_has_left(root):
    code = """
import multiprocessing
import numpy as np, outlive
def work():
    node = outlive.Node("worker")
    work.kept = [node, outlive.Publisher(node, "/watched", np.int64)]
worker = multiprocessing.get_context("fork").Process(target=work)
worker.start()
worker.join()
node = outlive.Node("parent")
"""
    status, events, left = watched(code)
    assert (status, left) == (0, []) and set(events) <= {"left"}


def outlives_its_main_thread(root, entered, left):
    """A worker with a thread that has a lock for a while yet, and threads that wait for work."""
    os.environ["OUTLIVE_DIR"] = root
    executor = concurrent.futures.ThreadPoolExecutor()
    executor.submit(time.sleep, 0).result()
    outlives_its_main_thread.kept = executor
    mutex = outlive.RobustMutex(outlive.Node("worker"), "/m", np.int64)

    def hold():
        with mutex as data:
            entered.set()
            time.sleep(0.5)
            data[...] = 7
            left.set()

    threading.Thread(target=hold).start()
    entered.wait()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_the_threads_of_a_worker_of_multiprocessing_end_before_it_leaves(method, root):
    context = multiprocessing.get_context(method)
    entered, left = context.Event(), context.Event()
    args = str(root), entered, left
    worker = context.Process(target=outlives_its_main_thread, args=args)
    worker.start()
    try:
        assert entered.wait(60.0)
        mutex = outlive.RobustMutex(outlive.Node("parent"), "/m", np.int64)
        with mutex as data:
            assert left.is_set() and int(data) == 7 and not mutex.owner_died
        worker.join(60.0)
        assert worker.exitcode == 0
    finally:
        worker.kill()


@pytest.mark.parametrize(
    "how",
    [
        "shutdown.wait()",
        "shutdown.wait(60.0)",
        "outlive.WaitSet().wait([shutdown])",
        "asyncio.run(shutdown.asked())",
    ],
)
def test_a_signal_that_another_thread_gets_is_heard(root, how):
    # As one does that comes just before the main thread sleeps: the call is not interrupted.
    code = f"""
import asyncio, outlive, signal, threading, time
shutdown = outlive.Shutdown()
def later():
    time.sleep(0.3)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    time.sleep(30)
threading.Thread(target=later, daemon=True).start()
{how}
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=25).returncode == 0


def test_a_program_that_is_asked_to_end_has_left(root):
    code = "node = outlive.Node('asked')\nshutdown = outlive.Shutdown()"
    for how in (
        "shutdown.wait()",
        "outlive.WaitSet().wait([outlive.Subscriber(node, '/x'), shutdown])",
        "import asyncio; asyncio.run(shutdown.asked())",
        "while not shutdown.is_asked: outlive.Subscriber(node, '/x').receive(0.05)",
    ):
        for ask in (signal.SIGTERM, signal.SIGINT):
            assert watched(code, how=how, ask=ask) == (0, ["left"], []), (how, ask)


def test_a_later_signal_does_what_it_did_before():
    before = signal.getsignal(signal.SIGINT)
    with outlive.Shutdown() as shutdown:
        os.kill(os.getpid(), signal.SIGINT)
        assert shutdown.wait(10.0) and shutdown.is_asked and shutdown.wait(0)
        time.sleep(0.3)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(10)
    with outlive.Shutdown() as shutdown:
        assert not shutdown.wait(0) and not shutdown.wait(0.01)
        asyncio.get_event_loop_policy()
        shutdown.ask()
        assert outlive.WaitSet().wait([shutdown], 10.0) == [shutdown]
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(outlive.InvalidArgument, match="closed"):
        shutdown.fileno()


def test_a_signal_that_comes_as_another_one_is_handled_holds_nothing_up():
    code = """
import os, signal, sys, outlive

def ask(at):
    lines = 0

    def trace(frame, event, arg):
        nonlocal lines
        lines += event == "line"
        if event == "line" and lines == at:
            os.kill(os.getpid(), signal.SIGINT)
        return trace

    with outlive.Shutdown() as shutdown:
        sys.settrace(trace)
        os.kill(os.getpid(), signal.SIGTERM)
        sys.settrace(None)
        assert shutdown.wait() and shutdown.is_asked
    return lines > at

at = 1
while ask(at):
    at += 1
print("asked", at > 5)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, text=True)
    assert out.stdout == "asked True\n", out.stderr


def test_a_forked_child_is_ended_as_if_nobody_had_asked_for_signals():
    with outlive.Shutdown() as outer, outlive.Shutdown() as shutdown:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.write(writer, b"x")
                time.sleep(60)
            finally:
                os._exit(0)
        os.read(reader, 1)
        os.kill(pid, signal.SIGTERM)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGTERM
        assert not shutdown.wait(0.2) and not shutdown.is_asked and not outer.is_asked
        assert outlive.WaitSet().wait([shutdown], 0) == []
        os.kill(os.getpid(), signal.SIGTERM)
        assert shutdown.wait(10.0) and shutdown.is_asked, "the parent is still asked"


def test_a_forked_child_may_ask_for_signals_itself(child):
    def work():
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        with pytest.raises(outlive.InvalidArgument, match="closed"):
            parents.fileno()
        assert not parents.is_asked
        with outlive.Shutdown() as own:
            assert not own.wait(0)
            os.kill(os.getpid(), signal.SIGTERM)
            assert own.wait(10.0)

    with outlive.Shutdown() as parents:
        status = os.waitpid(child(work), 0)[1]
        assert os.waitstatus_to_exitcode(status) == 0 and not parents.wait(0.1)
    with outlive.Shutdown() as parents:
        parents.ask()
        assert os.waitstatus_to_exitcode(os.waitpid(child(work), 0)[1]) == 0 and parents.is_asked


def test_a_shutdown_leaves_ignored_signals_and_calls_the_handlers_before_it():
    called = []
    before = signal.signal(signal.SIGUSR1, lambda *of: called.append(of[0]))
    ignored = signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    try:
        with outlive.Shutdown((signal.SIGUSR1, signal.SIGUSR2)) as shutdown:
            os.kill(os.getpid(), signal.SIGUSR2)
            assert not shutdown.wait(0.1) and signal.getsignal(signal.SIGUSR2) == signal.SIG_IGN
            for n in range(1, 3):
                os.kill(os.getpid(), signal.SIGUSR1)
                assert shutdown.wait(10.0) and called == [signal.SIGUSR1] * n
    finally:
        signal.signal(signal.SIGUSR1, before)
        signal.signal(signal.SIGUSR2, ignored)


def test_several_shutdowns_may_be_closed_in_any_order():
    called = []
    before = signal.signal(signal.SIGUSR1, lambda *_: called.append("before"))
    own = signal.getsignal(signal.SIGUSR1)
    first, second, third = (outlive.Shutdown([signal.SIGUSR1]) for _ in range(3))
    try:
        second.close()
        first.close()
        os.kill(os.getpid(), signal.SIGUSR1)
        assert third.wait(10.0) and called == ["before"]
        assert not first.is_asked and not second.is_asked
        third.close()
        assert signal.getsignal(signal.SIGUSR1) is own
        with outlive.Shutdown([signal.SIGUSR1]):
            later = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGUSR1) == signal.SIG_IGN, "what came later stays"
        signal.signal(signal.SIGUSR1, later)
        os.kill(os.getpid(), signal.SIGUSR1)
        assert called == ["before"] * 2 and signal.getsignal(signal.SIGUSR1) is own
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_ctrl_c_asks_a_shutdown_that_was_made_inside_asyncio(root):
    code = """
import asyncio, os, signal, outlive

async def main():
    with outlive.Shutdown() as shutdown:
        os.kill(os.getpid(), signal.SIGINT)
        await shutdown.asked()
        await asyncio.sleep(0.3)
        print("asked", flush=True)
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(60)

try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, text=True)
    assert out.stdout == "asked\ninterrupted\n", out.stderr


def test_a_request_that_is_sent_as_two_signals_is_one(monkeypatch):
    monkeypatch.setattr(outlive._shutdown, "_SAME_S", 3600.0)
    with outlive.Shutdown() as shutdown:
        for number in (signal.SIGTERM, signal.SIGINT):
            for _ in range(2):  # as timeout(1) does
                os.kill(os.getpid(), number)
        assert shutdown.is_asked
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_node_closes_what_was_opened_with_it():
    guard = outlive.Node("guard")
    events = outlive.Subscriber(guard, "/t", bytes)
    with outlive.Node("closes") as node:
        watch = guard.watch(node.id)
        publisher = outlive.Publisher(node, "/t", bytes)
        mutex = outlive.RobustMutex(node, "/m", np.int64)
        ports = [
            (publisher, lambda: publisher.publish(b"x")),
            (subscriber := outlive.Subscriber(node, "/t", bytes), lambda: subscriber.receive(0)),
            (consumer := outlive.Consumer(node, "/q"), lambda: consumer.receive(0)),
            (producer := outlive.Producer(node, "/q"), lambda: producer.send(1)),
            (server := outlive.Server(node, "/s"), lambda: server.receive(0)),
            (client := outlive.Client(node, "/s"), lambda: client.send(1)),
            (mutex, lambda: mutex.acquire()),
            (outlive.RobustRwLock(node, "/rw"), lambda: ports[7][0].acquire_read()),
            (outlive.RobustCondition(node, "/c"), lambda: ports[8][0].notify()),
            (outlive.RobustSemaphore(node, "/sem", 1), lambda: ports[9][0].acquire()),
            (outlive.LocklessSet(node, "/set", 4), lambda: ports[10][0].insert(1)),
            (node, lambda: outlive.Publisher(node, "/t")),
            (node.watch(guard.id), lambda: ports[12][0].is_alive),
        ]
        with mutex as data:
            data[...] = 7
        events.receive(0)
    for port, use in ports:
        with pytest.raises(outlive.InvalidArgument, match="closed"):
            use()
    assert int(data) == 7 and not data.flags.writeable, "an array keeps its memory"
    assert watch.is_alive, "and that the node"
    del data
    assert watch.wait(30.0)
    events.receive(0)
    assert [what for what, _ in events.events()] == ["joined", "left"]
    node.close()
    assert [n.name for n in outlive.Domain.of(guard).nodes()] == ["guard"]


class Cycle:
    pass


@pytest.mark.parametrize(
    "make",
    [
        lambda node, of: [outlive.Publisher(node, "/t", of)],
        lambda node, of: [outlive.Subscriber(node, "/t", of)],
        lambda node, of: [outlive.Consumer(node, "/q", of)],
        lambda node, of: [outlive.Producer(node, "/q", of)],
        lambda node, of: [outlive.Server(node, "/s", of), outlive.Client(node, "/s", of)],
        lambda node, of: [outlive.Publisher(node, "/a", np.int64).loan().array],
        lambda node, of: [outlive.RobustMutex(node, "/m", np.int64, repair=of.repair)],
    ],
)
def test_cycles_are_collected(node, make):
    import dataclasses

    @dataclasses.dataclass
    class Of:
        x: float

        def repair(self):
            pass

    outlive.RobustMutex(node, "/m", np.int64).acquire(0)  # what stays with the node
    before = len(os.listdir("/proc/self/fd"))
    Of.ports = make(node, Of)
    gone = weakref.ref(Of)
    del Of
    gc.collect()
    assert gone() is None and len(os.listdir("/proc/self/fd")) <= before


def test_tensors_may_outlive_the_interpreter(root):
    code = """
import ctypes, numpy as np, outlive
node = outlive.Node("end")
p = outlive.Publisher(node, "/t", np.uint8, (100_000,))
s = outlive.Subscriber(node, "/t", np.uint8, (100_000,))
p.publish(np.ones(100_000, np.uint8))
capsule = s.receive(10.0).__dlpack__()
api = ctypes.pythonapi
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
tensor = api.PyCapsule_GetPointer(capsule, b"dltensor")
used = b"used_dltensor"
api.PyCapsule_SetName(capsule, used)
# A library that lets go of its tensors in a destructor: DLManagedTensor ends with its deleter.
deleter = ctypes.c_void_p.from_address(tensor + 56).value
cxa_atexit = ctypes.CDLL(None).__cxa_atexit
cxa_atexit.argtypes = [ctypes.c_void_p] * 3
cxa_atexit(deleter, tensor, None)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, text=True)
    assert out.returncode == 0, out.stderr


@pytest.mark.parametrize(
    ("last", "again"),
    [
        ("raise SystemExit('it failed half way')", True),
        ("raise KeyboardInterrupt", True),
        ("pass", True),
        ("array = message.array; message.ack()", False),
        ("array = message.array; message.nack()", True),
    ],
)
def test_a_message_in_hand_at_the_interpreters_end_comes_again_unless_acknowledged(last, again):
    node = outlive.Node("sender")
    producer = outlive.Producer(node, "/orders", np.int64)
    program = f"""
import sys, numpy as np, outlive
consumer = outlive.Consumer(outlive.Node("taker"), "/orders", np.int64)
message = consumer.borrow(60.0)
sys.stdin.read()  # until both are sent
{last}
"""
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    child = subprocess.Popen([sys.executable, "-c", program], **pipes)
    assert producer.wait_for_consumer(60.0)
    producer.send(1)
    producer.send(2)
    child.communicate()
    successor = outlive.Consumer(node, "/orders", np.int64)
    assert int(successor.receive(60.0)) == (1 if again else 2)
