"""Closing while other threads are in a call, and what they hold."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import outlive


class InCall:
    """A thread in a call, which lives on after it: a lock that it got would stay its own."""

    def __init__(self, call):
        self._done, self._value, self._raised = threading.Event(), None, None
        threading.Thread(target=self._run, args=(call,), daemon=True).start()
        time.sleep(0.2)

    def _run(self, call):
        try:
            self._value = call()
        except BaseException as e:
            self._raised = e
        self._done.set()
        threading.Event().wait()

    def value(self):
        assert self._done.wait(30.0), "it does not return"
        if self._raised is not None:
            raise self._raised
        return self._value


def entered(lock):
    with lock:
        return "entered"


def is_there(name, node):
    return name in [n.name for n in outlive.Domain.of(node).nodes()]


LOCKS = pytest.mark.parametrize(
    ("kind", "hold", "enter"),
    [
        (outlive.RobustMutex, lambda lock: lock, lambda lock: lock),
        (outlive.RobustRwLock, lambda lock: lock.write(), lambda lock: lock.read()),
        (outlive.RobustRwLock, lambda lock: lock.write(), lambda lock: lock.write()),
    ],
    ids=["mutex", "read", "write"],
)


def is_free(kind, node):
    lock = kind(node, "/l", np.int64)
    take = lock.acquire if kind is outlive.RobustMutex else lock.acquire_write
    let_go = lock.release if kind is outlive.RobustMutex else lock.release_write
    return take(10.0) and not lock.owner_died and let_go() is None


@LOCKS
def test_closing_ends_a_wait_for_a_lock_which_others_then_get(node, kind, hold, enter):
    with outlive.Node("closing") as closing:
        lock = kind(closing, "/l", np.int64)
        with hold(kind(node, "/l", np.int64)):
            waiter = InCall(lambda: entered(enter(lock)))
            closing.close()
            with pytest.raises(outlive.InvalidArgument, match="closed"):
                waiter.value()
    assert is_free(kind, node) and not is_there("closing", node)


@LOCKS
def test_a_lock_that_comes_as_it_is_closed_is_let_go(node, kind, hold, enter):
    for _ in range(10):
        with outlive.Node("closing") as closing:
            lock = kind(closing, "/l", np.int64)
            with hold(kind(node, "/l", np.int64)):
                waiter = InCall(lambda: entered(enter(lock)))
            closing.close()  # as the waiter gets it, without the interpreter's lock
            try:
                assert waiter.value() == "entered"
            except outlive.InvalidArgument:
                pass
        assert is_free(kind, node) and not is_there("closing", node)


@LOCKS
def test_a_lock_that_is_held_as_it_is_closed_can_be_let_go(node, kind, hold, enter):
    closing = outlive.Node("closing")
    lock = kind(closing, "/l", np.int64)
    with enter(lock):
        closing.close()
        with pytest.raises(outlive.InvalidArgument, match="closed"):
            entered(enter(lock))
    assert is_free(kind, node) and not is_there("closing", node)


HOLDS = pytest.mark.parametrize(
    ("kind", "take"),
    [
        (outlive.RobustMutex, outlive.RobustMutex.acquire),
        (outlive.RobustRwLock, outlive.RobustRwLock.acquire_read),
        (outlive.RobustRwLock, outlive.RobustRwLock.acquire_write),
    ],
    ids=["mutex", "read", "write"],
)


@HOLDS
@pytest.mark.parametrize("ends", ["before", "after"])
def test_a_thread_that_ended_with_a_lock_does_not_keep_its_node(node, kind, take, ends):
    closing = outlive.Node("closing")
    watch = node.watch(closing.id)
    lock = kind(closing, "/l")
    taken, leave = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: take(lock) and taken.set() or leave.wait())
    thread.start()
    assert taken.wait(30.0)
    if ends == "before":
        leave.set()
        thread.join()
    closing.close()
    leave.set()
    thread.join()
    assert watch.wait(30.0) and not is_there("closing", node)


def test_a_wait_for_a_condition_that_loses_its_mutex_does_not_keep_its_node(node):
    closing = outlive.Node("closing")
    watch = node.watch(closing.id)
    mutex, changed = outlive.RobustMutex(closing, "/l"), outlive.RobustCondition(closing, "/c")
    others = outlive.RobustMutex(node, "/l")

    def wait():
        with pytest.raises(outlive.NotOwned), mutex:
            with pytest.raises(outlive.Unrecoverable):
                changed.wait(mutex)

    waiter = InCall(wait)
    with pytest.raises(ZeroDivisionError), others:
        1 / 0
    others.acquire()
    others.release()  # not repaired
    outlive.RobustCondition(node, "/c").notify_all()
    waiter.value()
    closing.close()
    assert watch.wait(30.0)


def test_what_a_dead_owner_left_can_be_mended_after_closing(node):
    closing = outlive.Node("closing")
    lock = outlive.RobustMutex(closing, "/l")
    with pytest.raises(ZeroDivisionError), lock:
        1 / 0
    lock.acquire()
    closing.close()
    lock.mark_consistent()
    lock.release()
    assert is_free_bare(node)
    with pytest.raises(outlive.InvalidArgument, match="closed"):
        lock.release()


def is_free_bare(node):
    lock = outlive.RobustMutex(node, "/l")
    return lock.acquire(10.0) and not lock.owner_died and lock.release() is None


def test_closing_ends_a_wait_for_a_condition_and_lets_the_mutex_go(node):
    closing = outlive.Node("closing")
    mutex, changed = outlive.RobustMutex(closing, "/l"), outlive.RobustCondition(closing, "/c")

    def wait():
        with mutex:
            changed.wait(mutex)

    waiter = InCall(wait)
    closing.close()
    with pytest.raises(outlive.InvalidArgument, match="closed"):
        waiter.value()
    assert is_free_bare(node) and not is_there("closing", node)


def test_closing_ends_a_wait_for_a_condition_whose_mutex_another_has(node):
    closing = outlive.Node("closing")
    mutex, changed = outlive.RobustMutex(closing, "/l"), outlive.RobustCondition(closing, "/c")
    waiter = InCall(lambda: mutex.acquire() and changed.wait(mutex))
    held = outlive.RobustMutex(node, "/l")
    held.acquire()
    closing.close()
    with pytest.raises(outlive.InvalidArgument, match="closed"):
        waiter.value()
    assert not is_there("closing", node)
    held.release()
    assert is_free_bare(node)


def test_a_wait_for_a_condition_that_a_signal_ends_has_the_mutex_once_it_is_free(node):
    mutex, changed = outlive.RobustMutex(node, "/l"), outlive.RobustCondition(node, "/c")

    def on_signal(*_):
        raise ZeroDivisionError

    def other():
        with mutex:
            os.kill(os.getpid(), signal.SIGUSR1)
            time.sleep(0.3)

    before = signal.signal(signal.SIGUSR1, on_signal)
    thread = threading.Thread(target=other)
    try:
        mutex.acquire()
        thread.start()
        with pytest.raises(ZeroDivisionError):
            changed.wait(mutex)
        mutex.release()
    finally:
        signal.signal(signal.SIGUSR1, before)
        thread.join()
    assert is_free_bare(node)


def test_a_wait_for_a_condition_that_is_closed_returns_with_the_mutex(node):
    mutex, changed = outlive.RobustMutex(node, "/l"), outlive.RobustCondition(node, "/c")

    def wait():
        with mutex:
            with pytest.raises(outlive.InvalidArgument, match="closed"):
                changed.wait(mutex)
            return mutex.release() or mutex.acquire(0)

    waiter = InCall(wait)
    changed.close()
    assert waiter.value() and is_free_bare(node)


def disorder(name):
    """Leaves the lock to its next holder as a dead owner does."""
    with pytest.raises(KeyError), outlive.RobustMutex(outlive.Node("other"), name, np.int64):
        raise KeyError


def lose(name):
    """Makes the lock unrecoverable."""
    disorder(name)
    with outlive.RobustMutex(outlive.Node("other"), name, np.int64):
        pass  # not repaired


def no_repair(data):
    raise ArithmeticError


@pytest.mark.parametrize(
    "lost",
    [lambda mutex: mutex.close(), lambda mutex: disorder("/l"), lambda mutex: lose("/l")],
    ids=["closed", "not repaired", "unrecoverable"],
)
def test_what_a_signal_handler_raised_ends_a_wait_for_a_condition_that_loses_its_mutex(node, lost):
    mutex = outlive.RobustMutex(node, "/l", np.int64, repair=no_repair)
    changed = outlive.RobustCondition(node, "/c")

    def on_signal(*_):
        lost(mutex)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, on_signal)
    try:
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
        with pytest.raises(KeyboardInterrupt), mutex:
            changed.wait(mutex, 30.0)
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.fixture
def waiter(node):
    """A mutex, its condition, and a thread that has waited for it; the array that it has."""
    mutex, changed = outlive.RobustMutex(node, "/l", np.int64), outlive.RobustCondition(node, "/c")
    arrays = []

    def wait():
        with mutex as data:
            arrays.append(data)
            changed.wait(mutex)
            data[...] += 1

    return mutex, changed, InCall(wait), arrays[0]


def test_the_data_of_a_waiter_stays_writable_while_another_thread_has_the_mutex(waiter):
    mutex, changed, waits, array = waiter
    with mutex as data:
        data[...] = 7
        changed.notify_all()
    assert not data.flags.writeable
    waits.value()
    assert int(array) == 8 and not array.flags.writeable


def test_the_data_of_a_waiter_that_loses_the_mutex_is_read_only(waiter):
    mutex, _, waits, array = waiter
    with mutex as data:
        mutex.close()
        with pytest.raises(outlive.InvalidArgument, match="closed"):
            waits.value()
        assert not array.flags.writeable and data.flags.writeable
    assert not data.flags.writeable


def test_the_data_of_a_waiter_is_read_only_in_a_forked_child(waiter):
    array = waiter[3]
    pid = os.fork()
    if pid == 0:
        os._exit(array.flags.writeable)
    assert os.waitpid(pid, 0)[1] == 0 and array.flags.writeable
    waiter[1].notify_all()
    waiter[2].value()


def test_closing_ends_waits_for_permits_and_of_wait_sets(node):
    closing = outlive.Node("closing")
    all_taken = outlive.RobustSemaphore(node, "/s", 1).acquire()
    semaphore = outlive.RobustSemaphore(closing, "/s", 1)
    ready = outlive.WaitSet()
    never = outlive.Timer(delay=3600.0)
    waiters = [InCall(semaphore.acquire), InCall(lambda: ready.wait([never]))]
    closing.close()
    ready.close()
    for waiter in waiters:
        with pytest.raises(outlive.InvalidArgument, match="closed"):
            waiter.value()
    all_taken.release()


def test_a_signal_handler_that_closes_the_node_ends_the_wait_that_called_it(node):
    closing = outlive.Node("closing")
    lock = outlive.RobustMutex(closing, "/l")
    leave = threading.Event()
    held = outlive.RobustMutex(node, "/l")
    InCall(lambda: held.acquire() and leave.wait() and held.release())
    before = signal.signal(signal.SIGUSR1, lambda *_: closing.close())
    try:
        threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
        with pytest.raises(outlive.InvalidArgument, match="closed"):
            lock.acquire(30.0)
    finally:
        signal.signal(signal.SIGUSR1, before)
        leave.set()
    assert is_free_bare(node)


def test_what_is_opened_as_its_node_closes_is_closed_with_it(node):
    late = outlive.Node("late")

    class Closing:
        def __array__(self, dtype=None, copy=None):
            late.close()
            return np.zeros((), np.int64)

    with pytest.raises(outlive.InvalidArgument, match="closed"):
        outlive.RobustMutex(late, "/m", np.int64, initial=Closing())
    assert not is_there("late", node)


@pytest.fixture
def stuck(node):
    """A publisher whose next message a reliable subscriber keeps waiting, and that subscriber."""
    closing = outlive.Node("closing")
    reader = outlive.Subscriber(node, "/t", bytes, depth=2, reliable=True)
    publisher = outlive.Publisher(closing, "/t", bytes, depth=2, reliable_timeout=3600.0)
    loans = [publisher.loan(9), publisher.loan(9)]
    for n in range(2):
        publisher.publish(b"%d" % n)
    yield closing, publisher, loans, reader
    closing.close()


CALLS = pytest.mark.parametrize(
    "call",
    [
        lambda publisher, loans: publisher.publish(b"x"),
        lambda publisher, loans: publisher.publish(bytes(100_000)),
        lambda publisher, loans: loans[0].publish(),
    ],
    ids=["inline", "chunk", "loan"],
)


@CALLS
@pytest.mark.parametrize("by", ["node", "publisher"])
def test_closing_ends_a_publish_that_waits_for_a_reader(node, stuck, call, by):
    closing, publisher, loans, reader = stuck
    watch = node.watch(closing.id)
    waiter = InCall(lambda: call(publisher, loans))
    (closing if by == "node" else publisher).close()
    with pytest.raises(outlive.InvalidArgument, match="closed"):
        waiter.value()
    with pytest.raises(outlive.InvalidArgument, match="closed"):
        publisher.publish(b"x")
    loans.clear()
    closing.close()
    assert watch.wait(30.0) and not is_there("closing", node)
    assert [bytes(reader.receive(0).value) for _ in range(2)] == [b"0", b"1"]
    assert reader.receive(0) is None
    assert [what for what, _ in reader.events()] == ["joined", "left"]


@CALLS
def test_a_publish_that_waits_goes_on_once_the_reader_has_read(stuck, call):
    _, publisher, loans, reader = stuck
    waiter = InCall(lambda: call(publisher, loans))
    for n in range(2):
        assert reader.receive(0).value == b"%d" % n
    assert waiter.value() == 2 and reader.receive(30.0) is not None


@CALLS
def test_a_publish_waits_for_as_long_as_it_may(node, call):
    for timeout, raised in ((0.25, outlive.Timeout), (0, outlive.WouldBlock)):
        outlive.Subscriber(node, "/t", bytes, depth=2, reliable=True)
        kept = outlive.Subscriber(node, "/t", bytes, depth=2, reliable=True)
        with outlive.Publisher(node, "/t", bytes, depth=2, reliable_timeout=timeout) as publisher:
            loans = [publisher.loan(9)]
            publisher.publish(b"0"), publisher.publish(b"1")
            begin = time.monotonic()
            with pytest.raises(raised, match=f"node {node.id} has 2 messages"):
                call(publisher, loans)
            assert time.monotonic() - begin >= timeout
            assert publisher.published == 2
        kept.close()


def test_ctrl_c_ends_a_publish_that_waits(root):
    code = """
import outlive, signal, os, threading
node = outlive.Node("w")
reader = outlive.Subscriber(node, "/t", bytes, depth=2, reliable=True)
publisher = outlive.Publisher(node, "/t", bytes, depth=2, reliable_timeout=3600.0)
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    while True:
        publisher.publish(b"x")
except KeyboardInterrupt:
    print("interrupted", publisher.published)
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30, text=True)
    assert out.stdout == "interrupted 2\n", out.stderr


def test_a_signal_ends_a_batch_whose_reader_keeps_up(node):
    reader = outlive.Subscriber(node, "/t", np.int64, depth=2, reliable=True)
    publisher = outlive.Publisher(node, "/t", np.int64, depth=2, reliable_timeout=60.0)
    done = threading.Event()

    def read():
        while not done.wait(0.005):
            reader.receive(0)

    def on_signal(*_):
        raise ZeroDivisionError

    reading = threading.Thread(target=read)
    before = signal.signal(signal.SIGALRM, on_signal)
    try:
        reading.start()
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(ZeroDivisionError):
            publisher.publish_batch(np.arange(2000))
        assert publisher.published < 2000
    finally:
        signal.signal(signal.SIGALRM, before)
        done.set()
        reading.join()


def test_others_go_on_while_one_publishes(node, stuck):
    closing, publisher, loans, _ = stuck
    waiter = InCall(lambda: publisher.publish(b"x"))
    for call in (
        lambda: publisher.loan(9),
        loans[0].publish,
        lambda: publisher.publish(b"y"),
        lambda: publisher.published,
    ):
        with pytest.raises(outlive.WouldBlock, match="another thread"):
            call()
    loans.pop().drop()
    loans.clear()
    closing.close()
    with pytest.raises(outlive.InvalidArgument, match="closed"):
        waiter.value()
    assert not is_there("closing", node), "the loans came back"


@pytest.mark.parametrize("later", [0.0, 0.002])
def test_the_last_array_of_a_loan_that_goes_as_its_node_closes_keeps_nothing(node, later):
    closing = outlive.Node("closing")
    watch = node.watch(closing.id)
    reader = outlive.Subscriber(node, "/t", bytes, depth=2, reliable=True)
    bounds = dict(depth=2, memory_bytes_max=2**30, reliable_timeout=3600.0)
    publisher = outlive.Publisher(closing, "/t", bytes, **bounds)
    # Given back while a thread has the publisher, they are ended by who closes it: that takes ms.
    loans = [publisher.loan(9) for _ in range(200_000)]
    array = loans[0].array
    publisher.publish(b"0"), publisher.publish(b"1")
    waiter = InCall(lambda: publisher.publish(b"2"))
    for loan in loans:
        loan.drop()
    loans.clear()
    del loan
    assert reader.receive(0) is not None and waiter.value() == 2
    begun = []
    thread = threading.Thread(target=lambda: begun.append(None) or closing.close())
    thread.start()
    while not begun:
        pass
    begin = time.monotonic()
    while time.monotonic() - begin < later:
        pass  # with the interpreter's lock
    del array
    thread.join()
    assert watch.wait(30.0)


def test_a_child_that_is_forked_while_a_thread_publishes_has_nothing(node, stuck):
    _, publisher, loans, _ = stuck
    InCall(lambda: publisher.publish(b"x"))

    def child():
        calls = [lambda: publisher.publish(b"y"), lambda: publisher.loan(9), loans.pop().publish]
        for call in calls:
            with pytest.raises(outlive.ForkedChild):
                call()
        loans.pop().drop()
        publisher.close()

    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            child()
            status = 0
        finally:
            os._exit(status)
    end = time.monotonic() + 30.0
    while (ended := os.waitpid(pid, os.WNOHANG)) == (0, 0) and time.monotonic() < end:
        time.sleep(0.01)
    if ended == (0, 0):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert ended == (pid, 0)
