"""Queues, services, locks, wait sets, processes."""

import ast
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import outlive


def test_a_queue_without_a_consumer_says_so_and_with_one_delivers(node):
    queue = outlive.Queue(node, "/q", np.int64)
    with pytest.raises(outlive.OwnerDied):
        queue.put(1)
    queue.consumer()
    for n in range(50):
        queue.put(n)
    assert [int(queue.get(1.0)) for _ in range(50)] == list(range(50))
    assert queue.get(0) is None
    with pytest.raises(outlive.ConsumerExists):
        outlive.Consumer(node, "/q", np.int64)
    queue.close()


def test_queues_of_objects_and_arrays(node):
    with outlive.Queue(node, "/o") as queue:
        queue.consumer()
        queue.put({"job": [1, 2, 3]})
        assert queue.get(1.0) == {"job": [1, 2, 3]}
    consumer = outlive.Consumer(node, "/a", np.float32, (None, 2))
    producer = outlive.Producer(node, "/a", np.float32, (None, 2))
    assert producer.wait_for_consumer(1.0) and producer.has_consumer
    producer.send(np.ones((3, 2), np.float32))
    array = consumer.receive(1.0)
    assert array.shape == (3, 2) and array.flags.writeable, "a copy"


def test_requests_are_answered_refused_and_survive_no_server(node):
    server = outlive.Server(node, "/s", (np.float64, (2,)), np.float64)
    client = outlive.Client(node, "/s", (np.float64, (2,)), np.float64)
    assert client.wait_for_server(1.0)
    ticket = client.send([3.0, 4.0])
    request = server.receive(1.0)
    assert request.value.tolist() == [3, 4] and not request.is_cancelled
    request.respond(np.hypot(*request.value))
    reply = client.receive(1.0, ticket=ticket)
    assert reply.value == 5.0 and reply.is_last and reply.ticket == ticket
    with pytest.raises(outlive.InvalidArgument):
        request.respond(1.0)

    client.send([0.0, 0.0])
    server.receive(1.0).refuse("no direction")
    with pytest.raises(outlive.Refused, match="no direction"):
        client.receive(1.0).value
    with pytest.raises(outlive.Timeout):
        client.call([1.0, 0.0], timeout=0.05)
    server.close()
    with pytest.raises(outlive.ServerDied):
        client.call([1.0, 0.0])


def test_a_call_waits_for_another_thread(node):
    server = outlive.Server(node, "/echo")

    def serve():
        for request in server:
            request.respond({"echo": request.value})
            if request_done.is_set():
                return

    request_done = threading.Event()
    request_done.set()
    thread = threading.Thread(target=serve)
    thread.start()
    client = outlive.Client(node, "/echo")
    assert client.call([1, 2], timeout=20.0) == {"echo": [1, 2]}
    thread.join()


@pytest.mark.parametrize("inherits", [False, True])
def test_a_mutex_protects_data_in_shared_memory(node, inherits):
    kind = {"inherits_priority": inherits}
    mutex = outlive.RobustMutex(node, "/m", np.int64, (2,), initial=[60, 40], **kind)
    with mutex as data:
        data[0] -= 10
        data[1] += 10
        with pytest.raises(outlive.Deadlock):
            mutex.acquire()
    again = outlive.RobustMutex(node, "/m", np.int64, (2,), **kind)
    with again as data:
        assert data.tolist() == [50, 50]
    with pytest.raises(outlive.NotOwned):
        again.release()
    with pytest.raises(outlive.TypeMismatch):
        outlive.RobustMutex(node, "/m", np.float64, **kind)
    with pytest.raises(outlive.TypeMismatch):
        outlive.RobustMutex(node, "/m", np.int64, (2,), inherits_priority=not inherits)
    bare = outlive.RobustMutex(node, "/bare", **kind)
    with bare as held:
        assert held is bare
        taken = []
        thread = threading.Thread(target=lambda: taken.append(bare.acquire(timeout=0.01)))
        thread.start()
        thread.join()
        assert taken == [False]


def die_with(lock_of):
    def run():
        lock_of(outlive.Node("victim"))
        os.kill(os.getpid(), signal.SIGKILL)

    return run


@pytest.mark.parametrize("inherits", [False, True])
def test_a_mutex_of_the_dead_is_repaired(child, inherits):
    kind = {"inherits_priority": inherits}

    def take(node):
        mutex = outlive.RobustMutex(node, "/m", np.int64, (2,), initial=[60, 40], **kind)
        mutex.acquire()
        mutex.data[0] -= 10

    os.waitpid(child(die_with(take)), 0)
    node = outlive.Node("heir")
    mutex = outlive.RobustMutex(node, "/m", np.int64, (2,), **kind)
    with mutex as data:
        assert mutex.owner_died and data.tolist() == [50, 40]
        data[1] = 50
        mutex.mark_consistent()
        assert not mutex.owner_died

    os.waitpid(child(die_with(take)), 0)

    def repair(data):
        data[:] = [60, 40]

    mutex = outlive.RobustMutex(node, "/m", np.int64, (2,), repair=repair, **kind)
    with mutex as data:
        assert not mutex.owner_died and data.tolist() == [60, 40]


def test_readers_of_a_dead_writers_lock_are_refused_until_it_is_repaired(child):
    def write(node):
        lock = outlive.RobustRwLock(node, "/rw", np.float64)
        lock.acquire_write()

    os.waitpid(child(die_with(write)), 0)
    node = outlive.Node("heir")
    lock = outlive.RobustRwLock(node, "/rw", np.float64)
    with pytest.raises(outlive.OwnerDied):
        with lock.read():
            pass
    with lock.write() as data:
        assert lock.owner_died
        data[...] = 2.5
        lock.mark_consistent()
    with lock.read() as data:
        assert data == 2.5 and not data.flags.writeable
    assert lock.acquire_read(timeout=0) and lock.release_read() is None


def test_a_lock_let_go_without_repair_is_lost(child):
    def take(node):
        outlive.RobustMutex(node, "/m").acquire()

    os.waitpid(child(die_with(take)), 0)
    mutex = outlive.RobustMutex(outlive.Node("heir"), "/m")
    with mutex:
        assert mutex.owner_died
    with pytest.raises(outlive.Unrecoverable):
        mutex.acquire()


@pytest.mark.parametrize("kind", [outlive.RobustMutex, outlive.RobustRwLock])
def test_a_repair_that_fails_leaves_the_lock_to_the_next_one(child, kind):
    def take(lock):
        return lock.acquire if kind is outlive.RobustMutex else lock.acquire_write

    def half_write(node):
        lock = kind(node, "/m", np.int64)
        take(lock)()

    os.waitpid(child(die_with(half_write)), 0)
    node = outlive.Node("heir")

    def interrupted(data):
        raise KeyboardInterrupt

    for repair, raised in (
        (lambda data: 1 / 0, ZeroDivisionError),
        (lambda: None, TypeError),
        (interrupted, KeyboardInterrupt),
    ):
        with pytest.raises(raised):
            take(kind(node, "/m", np.int64, repair=repair))()
    repaired = []
    lock = kind(node, "/m", np.int64, repair=repaired.append)
    assert take(lock)(10.0) and len(repaired) == 1 and not lock.owner_died


def test_an_unrecoverable_lock_is_removed_and_opened_again(node):
    mutex = outlive.RobustMutex(node, "/m", np.int64, initial=7)
    with pytest.raises(outlive.WouldBlock, match="/m"):
        node.remove_lock("/m")
    with pytest.raises(ZeroDivisionError), mutex:
        1 / 0
    with mutex:
        pass  # unrepaired
    with pytest.raises(outlive.Unrecoverable, match="remove_lock"):
        mutex.acquire()
    assert node.remove_lock("/m") and not node.remove_lock("/m")
    with outlive.RobustMutex(node, "/m", np.int64) as data:
        assert int(data) == 0, "a new one"
    with pytest.raises(outlive.InvalidName):
        node.remove_lock("m m")
    node.close()
    with pytest.raises(outlive.InvalidArgument, match="closed"):
        node.remove_lock("/m")


def test_a_wait_set_waits_for_everything(node, child):
    publisher = outlive.Publisher(node, "/t", bytes)
    subscriber = outlive.Subscriber(node, "/t", bytes)
    timer = outlive.Timer(0.01)
    reader, writer = os.pipe()
    waiting = outlive.WaitSet()
    members = [subscriber, timer, reader]
    while timer.fired() == 0:
        waiting.wait(members, 5.0)
        subscriber.events()
    subscriber.events()
    publisher.publish(b"x")
    assert subscriber in waiting.wait([subscriber], 5.0)
    os.write(writer, b"x")
    assert waiting.wait([reader], 5.0) == [reader]
    assert waiting.wait([outlive.Timer(delay=60.0)], 0) == []
    with pytest.raises(AttributeError):
        waiting.wait(["neither"], 0)


def test_a_watch_tells_of_a_killed_process(child):
    reader, writer = os.pipe()

    def live():
        node = outlive.Node("victim")
        os.write(writer, str(node.id).encode())
        time.sleep(60)

    pid = child(live)
    number = int(os.read(reader, 100))
    node = outlive.Node("guard")
    watch = node.watch(number)
    assert watch.is_alive and not watch.wait(0.01)
    os.kill(pid, 9)
    assert watch in outlive.WaitSet().wait([watch], 20.0)
    assert watch.wait(20.0) and not watch.is_alive
    with pytest.raises(outlive.NotFound):
        node.watch(10_000)


def square(root, start, results):
    os.environ["OUTLIVE_DIR"] = root
    node = outlive.Node("worker")
    producer = outlive.Producer(node, "/results", np.int64)
    producer.wait_for_consumer(20.0)
    producer.send(start * start)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(method, root):
    context = multiprocessing.get_context(method)
    workers = [context.Process(target=square, args=(str(root), n, None)) for n in range(3)]
    for worker in workers:  # before this process opens its node
        worker.start()
    node = outlive.Node("parent")
    consumer = outlive.Consumer(node, "/results", np.int64)
    got = sorted(int(consumer.receive(30.0)) for _ in workers)
    for worker in workers:
        worker.join()
    assert got == [0, 1, 4]


def test_ctrl_c_ends_a_wait(root):
    code = """
import outlive, signal, os, threading
s = outlive.Subscriber(outlive.Node("w"), "/t", bytes)
threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    s.receive()
except KeyboardInterrupt:
    print("interrupted")
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, text=True)
    assert out.stdout == "interrupted\n", out.stderr


def test_the_stub_names_what_there_is():
    import ast
    import pathlib

    stub = pathlib.Path(outlive.__file__).with_name("__init__.pyi")
    tree = ast.parse(stub.read_text())
    classes = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef)}

    def stubbed_in(name):
        names = {n.name for n in classes[name].body if isinstance(n, ast.FunctionDef)}
        bases = (base.id for base in classes[name].bases if isinstance(base, ast.Name))
        return names.union(*(stubbed_in(base) for base in bases if base in classes))

    imported = {a.asname for n in tree.body if isinstance(n, ast.ImportFrom) for a in n.names}
    for name in outlive.__all__:
        if name not in imported and isinstance(getattr(outlive, name), type):
            assert name in classes, name
            stubbed = stubbed_in(name)
            there = {n for n in vars(getattr(outlive, name)) if not n.startswith("_")}
            if not issubclass(getattr(outlive, name), Exception):
                missing = {n for n in stubbed if not n.startswith("_")} ^ there
                assert not missing, (name, missing)


def test_a_reply_that_has_not_come_is_none(node):
    server, client = outlive.Server(node, "/s"), outlive.Client(node, "/s")
    first, second = client.send(1), client.send(2)
    server.receive(10.0)
    server.receive(10.0).respond(4)
    assert client.receive(0, ticket=first) is None
    assert client.receive(0.15, ticket=first) is None
    assert client.receive(10.0, ticket=second).value == 4
    assert client.receive(0) is None


def test_a_request_may_be_given_up_after_its_answer(node):
    server, client = outlive.Server(node, "/s"), outlive.Client(node, "/s")
    ticket = client.send(1)
    server.receive(10.0).respond(2)
    assert client.receive(10.0, ticket=ticket).value == 2
    client.cancel(ticket)  # as in the `finally` of who gives up what it asked for
    client.cancel(ticket + 1)
    with pytest.raises(outlive.InvalidArgument):
        client.receive(0, ticket=ticket)


def test_all_that_is_opened_can_be_closed_by_with(node):
    with outlive.Timer(0.001) as timer, outlive.WaitSet() as waits:
        assert waits.wait([timer], 10.0) == [timer] and timer.fired() > 0
    with outlive.LocklessSet(node, "/ready", 4) as ready:
        ready.insert(7)
    with outlive.RobustCondition(node, "/changed") as changed:
        changed.notify()
    for use in (timer.fired, lambda: waits.wait([], 0), lambda: ready.insert(8), changed.notify):
        with pytest.raises(outlive.InvalidArgument, match="closed"):
            use()
    with outlive.WaitSet() as waits, pytest.raises(outlive.InvalidArgument):
        waits.wait([timer], 0)


def test_everything_says_that_it_is_from_the_module_that_users_import():
    homes = {name: getattr(getattr(outlive, name), "__module__", "") for name in outlive.__all__}
    assert {name: home for name, home in homes.items() if home.startswith("outlive.")} == {}


def test_every_error_made_in_python_names_an_object_and_a_remedy(node):
    package = pathlib.Path(outlive.__file__).parent
    kinds = {name for name, of in vars(outlive).items() if isinstance(of, type)}
    kinds = {name for name in kinds if issubclass(getattr(outlive, name), outlive.Error)}
    refusals = 0
    for file in package.glob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            if not isinstance(call, ast.Call):
                continue
            name = getattr(call.func, "id", getattr(call.func, "attr", None))
            refusals += name == "_refusal"
            named = {keyword.arg for keyword in call.keywords} >= {"object", "remedy"}
            assert name not in kinds or named, f"{file.name}:{call.lineno}"
    assert refusals > 20

    for call in [
        lambda: outlive.Subscriber(node, "/a", np.float64, (0,)),
        lambda: outlive.Subscriber(node, "/a", bytes, (3,)),
        lambda: outlive.Subscriber(node, "/a", np.float64, (1,) * 9),
        lambda: outlive.Subscriber(node, "/a", "no such dtype"),
        lambda: outlive.msg.Pose.new(no_field=1),
        lambda: outlive.msg.Image.of(np.zeros(3), "rgb8"),
        lambda: outlive.Shutdown().wait(float("nan")),
    ]:
        with pytest.raises(outlive.Error) as refused:
            call()
        error = refused.value
        assert error.object and error.remedy and str(error).endswith(error.remedy), repr(error)
