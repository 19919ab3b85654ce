"""A forked child uses nothing of its parent's, and gets an error."""

import os
import pickle
import re

import numpy as np
import pytest

import outlive


def forked(run):
    """What `run` returns or raises in a forked child: the exception's class and text."""
    here, there = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            said = ("returned", repr(run()))
        except BaseException as e:
            said = (type(e).__name__, str(e))
        os.write(there, pickle.dumps(said))
        os._exit(0)
    os.close(there)
    with os.fdopen(here, "rb") as pipe:
        said = pipe.read()
    assert os.waitpid(pid, 0)[1] == 0
    return pickle.loads(said)


@pytest.fixture
def open_all(node):
    has = {"node": node}
    has["publisher"] = outlive.Publisher(node, "/t", np.int64, (1000,))
    has["subscriber"] = outlive.Subscriber(node, "/t", np.int64, (1000,))
    has["producer"], has["consumer"] = outlive.Producer(node, "/q"), outlive.Consumer(node, "/q")
    has["server"], has["client"] = outlive.Server(node, "/s"), outlive.Client(node, "/s")
    has["mutex"] = outlive.RobustMutex(node, "/m", np.int64)
    has["rwlock"] = outlive.RobustRwLock(node, "/rw", np.int64)
    has["condition"] = outlive.RobustCondition(node, "/c")
    has["semaphore"] = outlive.RobustSemaphore(node, "/sem", 2)
    has["ids"] = outlive.LocklessSet(node, "/ids", 4)
    has["watch"], has["waits"] = node.watch(node.id), outlive.WaitSet()
    has["loan"] = has["publisher"].loan()
    has["ticket"] = has["client"].send(7)
    has["request"] = has["server"].receive(timeout=10.0)
    has["producer"].send("a")
    has["message"] = has["consumer"].borrow(timeout=10.0)
    has["permit"] = has["semaphore"].acquire()
    has["ids"].insert(7)
    has["mutex"].acquire()
    return has


CALLS = """
publisher.publish(np.zeros(1000, np.int64)); publisher.memory_bytes; publisher.published
publisher.subscribers(); publisher.loan(); loan.publish()
subscriber.receive(0); subscriber.latest(); subscriber.lost; subscriber.events(); subscriber.borrowed
subscriber.fileno(); subscriber.topic
producer.send(1); producer.has_consumer; producer.id; consumer.receive(0); consumer.borrow(0)
consumer.events(); consumer.fileno(); message.ack(); message.nack()
server.receive(0); server.passed_over; request.respond(1); request.respond_part(1)
request.refuse(""); request.is_cancelled; client.call(1, 0.01); client.receive(0)
client.cancel(ticket); client.wait_for_server(0)
mutex.acquire(0); mutex.release(); mutex.data; mutex.mark_consistent()
rwlock.acquire_read(0); rwlock.acquire_write(0); rwlock.release_read(); rwlock.release_write()
rwlock.mark_consistent()
condition.notify(); condition.notify_all(); condition.wait(mutex, 0.01)
semaphore.acquire(0); semaphore.available; permit.release(); permit.__exit__(None, None, None)
ids.insert(8); ids.remove(7); list(ids); len(ids); 7 in ids; ids.ids(); ids.capacity
watch.is_alive; watch.wait(0); waits.wait([subscriber], 0); waits.wait([outlive.Timer(0.01)], 1.0)
outlive.WaitSet().wait([subscriber], 0)
node.watch(node.id); node.remove_lock("/m"); outlive.Publisher(node, "/x", np.int64)
"""
CALLS = [call.strip() for call in re.split("[;\n]", CALLS) if call.strip()]


def test_each_call_on_what_is_inherited_says_so_and_changes_nothing(open_all):
    wrong = {}
    for call in CALLS:
        said = forked(lambda: eval(call, {**globals(), **open_all}))
        if said[0] != "ForkedChild":
            wrong[call] = said
    assert not wrong
    has = open_all
    assert list(has["ids"]) == [7] and has["semaphore"].available == 1
    has["mutex"].release()
    assert has["consumer"].events() is not None if has["message"] is None else True
    has["message"].nack()
    assert has["consumer"].receive(timeout=0) == "a"
    has["request"].respond(8)
    assert has["client"].receive(10.0, ticket=has["ticket"]).value == 8
    has["permit"].release()
    assert has["semaphore"].available == 2


def test_a_message_that_a_child_lets_go_of_is_still_its_parents(node):
    producer, consumer = outlive.Producer(node, "/q"), outlive.Consumer(node, "/q")
    producer.send("a")
    has = {"message": consumer.borrow(timeout=10.0)}

    def let_go():
        nonlocal consumer
        has.clear()
        consumer = None

    assert forked(let_go) == ("returned", "None")
    has["message"].nack()
    assert consumer.receive(timeout=10.0) == "a"


def test_what_is_only_read_stays_readable(open_all):
    sent = open_all["publisher"]
    sent.publish(np.full(1000, 7, np.int64))
    sample, timer = open_all["subscriber"].receive(timeout=10.0), outlive.Timer(10.0)
    look = lambda: (  # noqa: E731
        int(sample.array[0]), open_all["message"].value, open_all["request"].value,
        open_all["node"].id == 0, sent.topic, timer.fired(),
    )  # fmt: skip
    assert forked(look) == ("returned", "(7, 'a', 7, False, '/t', 0)")


def test_a_child_opens_its_own(open_all):
    def own():
        node = outlive.Node("child")
        outlive.Producer(node, "/q").send("b")
        return outlive.WaitSet().wait([outlive.Timer(0.001)], 10.0) != []

    assert forked(own) == ("returned", "True")
