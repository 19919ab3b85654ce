"""Condition variables, semaphores, sets, and a domain seen from outside."""

import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import outlive


def test_a_condition_wakes_between_processes(child):
    def answer():
        node = outlive.Node("child")
        mutex = outlive.RobustMutex(node, "/m", np.int64)
        changed = outlive.RobustCondition(node, "/c")
        with mutex as data:
            assert changed.wait_for(mutex, lambda: int(data) == 7, timeout=60.0)
            data[...] = 8
            changed.notify_all()

    pid = child(answer)
    node = outlive.Node("parent")
    mutex = outlive.RobustMutex(node, "/m", np.int64)
    changed = outlive.RobustCondition(node, "/c")
    with mutex as data:
        data[...] = 7
        changed.notify()
        assert changed.wait_for(mutex, lambda: int(data) == 8, timeout=60.0)
    assert os.waitpid(pid, 0)[1] == 0


def test_a_condition_needs_the_mutex_and_keeps_to_its_timeout(node):
    mutex = outlive.RobustMutex(node, "/m")
    changed = outlive.RobustCondition(node, "/c")
    with pytest.raises(outlive.NotOwned):
        changed.wait(mutex, 1.0)
    with mutex:
        assert not changed.wait(mutex, 0) and not changed.wait(mutex, 0.01)
        assert changed.wait_for(mutex, lambda: [], 0.01) == []
    with pytest.raises(ZeroDivisionError), mutex:
        changed.wait_for(mutex, lambda: 1 / 0)
    with mutex:
        assert mutex.owner_died
        mutex.mark_consistent()
    assert mutex.acquire(0) and mutex.release() is None


def test_a_with_that_an_exception_leaves_tells_the_next_holder(node):
    mutex = outlive.RobustMutex(node, "/m", np.int64, (2,))
    with pytest.raises(ZeroDivisionError), mutex as data:
        data[0] = 1
        data[1] = 1 / 0
    with mutex as data:
        assert mutex.owner_died and list(data) == [1, 0]
        data[1] = 1
        mutex.mark_consistent()
    with mutex:
        assert not mutex.owner_died

    def repair(data):
        data[:] = 5

    mended = outlive.RobustMutex(node, "/m", np.int64, (2,), repair=repair)
    with pytest.raises(KeyboardInterrupt), mutex:
        raise KeyboardInterrupt
    with mended as data:
        assert not mended.owner_died and list(data) == [5, 5]


def test_a_write_that_an_exception_leaves_tells_readers_and_the_next_writer(node):
    lock = outlive.RobustRwLock(node, "/rw", np.int64)
    with pytest.raises(ZeroDivisionError), lock.write() as data:
        data[...] = 7
        1 / 0
    with pytest.raises(outlive.OwnerDied), lock.read():
        pass
    with lock.write():
        assert lock.owner_died
        lock.mark_consistent()
    with pytest.raises(ZeroDivisionError), lock.read():
        1 / 0
    with lock.write(), pytest.raises(outlive.Deadlock):
        lock.acquire_read(0)


def test_a_condition_returns_with_the_mutex_of_the_dead(child):
    reader, writer = os.pipe()

    def take_and_die():
        os.read(reader, 1)
        node = outlive.Node("victim")
        mutex = outlive.RobustMutex(node, "/m")
        mutex.acquire()  # which the waiter has let go
        outlive.RobustCondition(node, "/c").notify_all()
        os.kill(os.getpid(), signal.SIGKILL)

    child(take_and_die)
    node = outlive.Node("heir")
    mutex = outlive.RobustMutex(node, "/m")
    changed = outlive.RobustCondition(node, "/c")
    with mutex:
        os.write(writer, b"x")
        assert changed.wait(mutex, 60.0) and mutex.owner_died
        mutex.mark_consistent()


def test_ctrl_c_ends_a_wait_for_a_condition_which_has_the_mutex_again(root):
    code = """
import outlive, signal, os, threading
node = outlive.Node("w")
mutex, changed = outlive.RobustMutex(node, "/m"), outlive.RobustCondition(node, "/c")
mutex.acquire()
threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    changed.wait(mutex)
except KeyboardInterrupt:
    mutex.release()
    print("interrupted")
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, text=True)
    assert out.stdout == "interrupted\n", out.stderr


def test_permits_come_back_from_the_dead(child):
    def take_and_die():
        node = outlive.Node("victim")
        semaphore = outlive.RobustSemaphore(node, "/s", 2)
        held = [semaphore.acquire(), semaphore.acquire()]
        assert {permit.index for permit in held} == {0, 1}
        os.kill(os.getpid(), signal.SIGKILL)

    os.waitpid(child(take_and_die), 0)
    node = outlive.Node("heir")
    semaphore = outlive.RobustSemaphore(node, "/s", 2)
    assert semaphore.permits == 2 and semaphore.available == 0
    with semaphore as permit, semaphore as other:
        assert permit.owner_died and {permit.index, other.index} == {0, 1}
        with pytest.raises(outlive.Deadlock):
            semaphore.acquire()
    assert semaphore.available == 2 and not semaphore.acquire(0).owner_died
    with pytest.raises(outlive.TypeMismatch):
        outlive.RobustSemaphore(node, "/s", 3)
    with pytest.raises(outlive.InvalidArgument):
        outlive.RobustSemaphore(node, "/none", 0)


def test_a_semaphore_lets_in_as_many_as_it_has(node):
    semaphore = outlive.RobustSemaphore(node, "/s", 1)
    with semaphore:
        refused = []
        thread = threading.Thread(target=lambda: refused.append(semaphore.acquire(0.01)))
        thread.start()
        thread.join()
        assert refused == [None]
        got = threading.Event()
        thread = threading.Thread(target=lambda: semaphore.acquire().release() or got.set())
        thread.start()
    thread.join(60)
    assert got.is_set()
    permit = semaphore.acquire()
    assert semaphore.available == 0
    permit.release()
    permit.release()
    assert semaphore.available == 1
    with semaphore.acquire():
        assert semaphore.available == 0
    assert semaphore.available == 1


def test_a_set_keeps_what_the_dead_put_in(child):
    def add_and_die():
        outlive.LocklessSet(outlive.Node("victim"), "/set", 3).insert(2**64 - 1)
        os.kill(os.getpid(), signal.SIGKILL)

    os.waitpid(child(add_and_die), 0)
    ready = outlive.LocklessSet(outlive.Node("heir"), "/set", 3)
    assert ready.insert(5) and not ready.insert(5) and ready.insert(9)
    assert ready.ids() == list(ready) == [5, 9, 2**64 - 1] and ready.capacity == len(ready) == 3
    with pytest.raises(outlive.NoSpace, match="inserting id 6 into LocklessSet /set: .*it is full"):
        ready.insert(6)
    assert ready.remove(5) and not ready.remove(5) and 5 not in ready and 9 in ready
    with pytest.raises(outlive.InvalidArgument):
        ready.insert(0)
    with pytest.raises(outlive.InvalidArgument):
        ready.insert(-1)


def test_a_domain_tells_who_is_there_and_cleans_up(child, root):
    def live_and_die():
        node = outlive.Node("victim")
        publisher = outlive.Publisher(node, "/t", np.float32, (3,))
        publisher.publish([1, 2, 3])
        os.kill(os.getpid(), signal.SIGKILL)

    os.waitpid(child(live_and_die), 0)
    domain = outlive.Domain()
    [dead] = domain.nodes()
    assert (dead.name, dead.alive) == ("victim", False) and str(domain.dir).startswith(str(root))

    node = outlive.Node("guard")
    subscriber = outlive.Subscriber(node, "/t", np.float32, (3,), history=1, borrows=2)
    [topic] = outlive.Domain.of(node).topics()
    assert topic.name == "/t" and "f32[3]" in topic.description
    assert topic.subscribers == [node.id] and topic.publishers[0].messages == 1
    [reader] = domain.subscribers("/t")
    assert reader.alive and reader.borrows == 2 and domain.subscribers("/none") is None
    consumer = outlive.Consumer(node, "/q", bytes)
    producer = outlive.Producer(node, "/q", bytes)
    producer.send(b"x")
    [queue] = domain.queues()
    assert queue.consumer == node.id and queue.lanes[0].unread == 1
    server = outlive.Server(node, "/s")
    [service] = domain.services()
    assert service.name == "/s" and service.server == node.id and service.clients == []
    semaphore = outlive.RobustSemaphore(node, "/gpu", 2)
    mutex = outlive.RobustMutex(node, "/m")
    with semaphore, mutex:
        gpu, held = domain.locks()
    assert (gpu.kind, gpu.count, gpu.users) == ("semaphore", 2, 1)
    assert held.state == "held" and held.owner[0] == node.id
    audit = domain.audit()
    assert audit.files > 0 and audit.faults == []

    report = domain.clean()
    assert report.live_nodes == 1 and not report.domain_removed
    assert [n.name for n in domain.nodes()] == ["guard"], "its opening removed the dead one"
    for port in (subscriber, consumer, producer, server):
        port.close()
    del subscriber, consumer, producer, server, semaphore, mutex, port, node
    os.waitpid(child(live_and_die), 0)
    report = domain.clean()
    assert report.node_files >= 1 and report.topics == 1 and report.domain_removed
    assert domain.nodes() == []
