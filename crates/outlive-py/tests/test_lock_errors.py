"""What errors of locks and closed objects say."""

import os
import threading

import numpy as np
import pytest

import outlive

# Whether the mutex inherits priority.
NO_PI = pytest.mark.skipif(os.sysconf("SC_PAGE_SIZE") != 4096, reason="wants pages of 4 KiB")
PI = [False, pytest.param(True, marks=NO_PI)]


def raised(call, kind):
    with pytest.raises(kind) as refused:
        call()
    return refused.value


def in_thread(call):
    said = []

    def run():
        try:
            said.append(call())
        except outlive.Error as e:
            said.append(e)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return said[0]


def die_in(lock):
    with pytest.raises(KeyError), lock:
        raise KeyError


@pytest.mark.parametrize("pi", PI)
def test_errors_of_a_mutex_name_it_and_speak_python(node, pi):
    mutex = outlive.RobustMutex(node, "/arm/pose", np.int64, inherits_priority=pi)
    e = raised(mutex.release, outlive.NotOwned)
    assert e.object == "RobustMutex /arm/pose"
    assert str(e).startswith("letting go of RobustMutex /arm/pose: ")
    mutex.acquire()
    assert raised(mutex.acquire, outlive.Deadlock).object == "RobustMutex /arm/pose"
    mutex.release()
    assert raised(lambda: mutex.data, outlive.NotOwned).object == "RobustMutex /arm/pose"
    die_in(mutex)
    mutex.acquire()
    mutex.release()
    e = raised(mutex.acquire, outlive.Unrecoverable)
    assert e.object == "RobustMutex /arm/pose"
    assert "node.remove_lock('/arm/pose')" in e.remedy and "::" not in str(e)
    assert "outlive lock remove /arm/pose" in e.remedy and e.remedy in str(e)


def test_errors_of_a_reader_writer_lock_name_it(node):
    lock = outlive.RobustRwLock(node, "/map", np.int64)
    for call in (lock.release_read, lock.release_write, lock.mark_consistent):
        assert raised(call, outlive.NotOwned).object == "RobustRwLock /map"
    with lock.write():
        e = in_thread(lambda: lock.read(0.01).__enter__())
        assert isinstance(e, outlive.Timeout) and e.object == "RobustRwLock /map"
    die_in(lock.write())
    e = raised(lambda: lock.acquire_read(0), outlive.OwnerDied)
    assert e.object == "RobustRwLock /map" and "::" not in str(e)


def test_errors_of_the_other_locks_name_them(node):
    semaphore = outlive.RobustSemaphore(node, "/gpu", 1)
    with semaphore:
        assert raised(semaphore.acquire, outlive.Deadlock).object == "RobustSemaphore /gpu"
    ids = outlive.LocklessSet(node, "/ids", 1)
    assert "/ids" in raised(lambda: ids.insert(0), outlive.InvalidArgument).object
    mutex, changed = outlive.RobustMutex(node, "/m"), outlive.RobustCondition(node, "/changed")
    assert raised(lambda: changed.wait(mutex, 0.01), outlive.NotOwned).object == "RobustMutex /m"


def test_a_closed_object_is_named(node):
    other = outlive.Node("other")
    of = {
        "Publisher /x": outlive.Publisher(node, "/x", np.int64),
        "Subscriber /x": outlive.Subscriber(node, "/x", np.int64),
        "Producer /q": outlive.Producer(node, "/q"),
        "Consumer /q": outlive.Consumer(node, "/q"),
        "Server /s": outlive.Server(node, "/s"),
        "Client /s": outlive.Client(node, "/s"),
        "RobustMutex /m": outlive.RobustMutex(node, "/m"),
        "RobustRwLock /rw": outlive.RobustRwLock(node, "/rw"),
        "RobustCondition /c": outlive.RobustCondition(node, "/c"),
        "RobustSemaphore /sem": outlive.RobustSemaphore(node, "/sem", 1),
        "LocklessSet /ids": outlive.LocklessSet(node, "/ids", 1),
        f"Watch of node {other.id}": node.watch(other.id),
        "Timer": outlive.Timer(1.0),
        "WaitSet": outlive.WaitSet(),
        "Node test": node,
    }
    calls = dict.fromkeys(of, "receive")
    calls |= {"Publisher /x": "publish", "Producer /q": "send", "Client /s": "fileno"}
    calls |= {name: "acquire" for name in of if name.split()[0] in ("RobustMutex", "RobustSemaphore")}
    calls |= {"RobustRwLock /rw": "acquire_read", "RobustCondition /c": "notify", "LocklessSet /ids": "ids"}
    calls |= {f"Watch of node {other.id}": "wait", "Timer": "fired", "WaitSet": "wait", "Node test": "watch"}
    arguments = {"publish": (1,), "send": (1,), "watch": (1,)}
    for name, one in of.items():
        one.close()
        call = calls[name]
        args = ([],) if name == "WaitSet" else arguments.get(call, ())
        e = raised(lambda: getattr(one, call)(*args), outlive.InvalidArgument)
        assert e.object == name and str(e) == f"using {name}: invalid argument; it is closed"


@pytest.mark.parametrize("pi", PI)
def test_the_data_of_a_mutex_is_its_holders(node, pi):
    mutex = outlive.RobustMutex(node, "/m", np.int64, inherits_priority=pi)
    with mutex as data:
        e = in_thread(lambda: mutex.data)
        assert isinstance(e, outlive.NotOwned) and e.object == "RobustMutex /m"
        mutex.data[...] = 7
        assert int(data) == 7


@pytest.mark.parametrize("pi", PI)
def test_consistent_data_is_marked_by_its_holder_only(node, pi):
    mutex = outlive.RobustMutex(node, "/m", np.int64, inherits_priority=pi)
    lock = outlive.RobustRwLock(node, "/rw", np.int64)
    raised(mutex.mark_consistent, outlive.NotOwned)
    for one, hold in ((mutex, mutex), (lock, lock.write())):
        with hold:
            one.mark_consistent()
            assert isinstance(in_thread(one.mark_consistent), outlive.NotOwned)
    with lock.read():
        raised(lock.mark_consistent, outlive.NotOwned)
