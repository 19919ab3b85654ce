"""A handler that raises while a call waits: what comes meanwhile is for the next call."""

import os
import signal
import threading
import time

import numpy as np
import outlive
import pytest


class Alarm(Exception):
    pass


def alarm(*_):
    raise Alarm


@pytest.fixture(autouse=True)
def handler():
    before = signal.signal(signal.SIGUSR1, alarm)
    yield
    signal.signal(signal.SIGUSR1, before)


def interrupted(wait, comes):
    """Raises in the handler while the call waits for what `comes` brings a moment later."""

    def both():
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGUSR1)
        time.sleep(0.02)
        comes()

    thread = threading.Thread(target=both)
    try:
        with pytest.raises(Alarm):
            # In here: on a busy machine the signal may come before the wait.
            thread.start()
            while True:
                wait()
    finally:
        thread.join()


def borrow(consumer):
    with consumer.borrow(timeout=10) as message:
        return message


def test_a_message_of_a_queue(node):
    for take in (lambda c: c.receive(timeout=10), borrow):
        consumer = outlive.Consumer(node, "/q", np.int64)
        producer = outlive.Producer(node, "/q", np.int64)
        interrupted(lambda: take(consumer), lambda: producer.send(7))
        assert consumer.receive(timeout=10) == 7
        consumer.close()
        producer.close()


@pytest.mark.parametrize("reliable", [False, True])
def test_a_message_of_a_topic(node, reliable):
    subscriber = outlive.Subscriber(node, "/t", np.int64, reliable=reliable)
    publisher = outlive.Publisher(node, "/t", np.int64)
    interrupted(lambda: subscriber.receive(timeout=10), lambda: publisher.publish(7))
    assert subscriber.receive(timeout=10).value == 7


def test_a_request_and_a_reply(node):
    server = outlive.Server(node, "/s", np.int64, np.int64)
    client = outlive.Client(node, "/s", np.int64, np.int64)
    interrupted(lambda: server.receive(timeout=10), lambda: client.send(7))
    request = server.receive(timeout=10)
    assert request.value == 7
    interrupted(lambda: client.receive(timeout=10), lambda: request.respond(8))
    assert client.receive(timeout=10).value == 8


def test_what_is_locked_is_let_go(node):
    mutex, rw = outlive.RobustMutex(node, "/m"), outlive.RobustRwLock(node, "/rw")
    permits = outlive.RobustSemaphore(node, "/p", 1)
    for take, release, again in [
        (mutex.acquire, mutex.release, mutex.acquire),
        (rw.acquire_write, rw.release_write, rw.acquire_write),
        (rw.acquire_read, rw.release_write, rw.acquire_write),
        (permits.acquire, None, permits.acquire),
    ]:
        held, let_go = threading.Event(), threading.Event()

        def hold(again=again, release=release):
            permit = again(timeout=10)
            held.set()
            let_go.wait()
            permit.release() if release is None else release()

        holder = threading.Thread(target=hold)
        holder.start()
        held.wait()
        interrupted(lambda: take(timeout=10), let_go.set)
        holder.join()
        took = []
        other = threading.Thread(target=lambda: took.append(again(timeout=60)))
        other.start()
        other.join()
        assert took[0], f"left held by {take}"
        # That thread has ended with it: the next one is told.
        if again == mutex.acquire:
            assert mutex.acquire(timeout=10) and mutex.owner_died
            mutex.mark_consistent()
            mutex.release()
        elif again == rw.acquire_write:
            assert rw.acquire_write(timeout=10)
            rw.mark_consistent()
            rw.release_write()


def test_a_generator_that_another_thread_closes_says_that_it_keeps_the_lock(node):
    mutex = outlive.RobustMutex(node, "/m")

    def held():
        with mutex:
            yield

    generator = held()
    next(generator)
    said = []

    def close():
        try:
            generator.close()
        except outlive.NotOwned as e:
            said.append(str(e))

    other = threading.Thread(target=close)
    other.start()
    other.join()
    assert said and "user" not in said[0], said
    mutex.release()
