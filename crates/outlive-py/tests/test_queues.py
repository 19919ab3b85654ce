"""Queues: batches, and messages that are read where they lie."""

import os
import signal

import numpy as np
import pytest

import outlive

TICK = np.dtype([("stamp_ns", "u8"), ("value", "f8")])
OF = {"type": TICK, "type_name": "test/Tick"}


def shared(array):
    """Whether an array lies in a lane's file."""
    at = array.ctypes.data
    with open("/proc/self/maps") as maps:
        spans = [line.split() for line in maps if "/lane." in line]
    bounds = [[int(n, 16) for n in span[0].split("-")] for span in spans]
    return any(low <= at < high for low, high in bounds)


def test_a_batch_arrives_whole_and_in_order(node):
    producer = outlive.Producer(node, "/q", **OF)
    batch = np.zeros(500, TICK)
    batch["stamp_ns"], batch["value"] = range(500), 0.5
    with pytest.raises(outlive.OwnerDied):
        producer.send_batch(batch)
    consumer = outlive.Consumer(node, "/q", **OF)
    producer.send_batch(batch)
    producer.send_batch([(500, 1.5), (501, 2.5)])
    producer.send_batch(batch[:0])
    producer.send((502, 3.5))
    got = [consumer.receive(10.0) for _ in range(503)]
    assert [int(tick["stamp_ns"]) for tick in got] == list(range(503))
    assert consumer.receive(0) is None


def test_a_batch_of_the_wrong_shape_is_refused(node):
    consumer = outlive.Consumer(node, "/q", np.float32, (3,))
    producer = outlive.Producer(node, "/q", np.float32, (3,))
    producer.send_batch(np.ones((4, 3)))
    producer.send_batch([])
    for wrong in (np.ones(3), np.ones((4, 2)), np.ones((0, 2)), 1.0):
        with pytest.raises(outlive.InvalidArgument):
            producer.send_batch(wrong)
    assert [consumer.receive(10.0).tolist() for _ in range(4)] == [[1, 1, 1]] * 4
    queue = outlive.Queue(node, "/objects")
    queue.consumer()
    with pytest.raises(outlive.InvalidArgument, match="send each alone"):
        queue.put_batch([1, 2])


def test_a_full_lane_takes_no_part_of_a_batch(node):
    consumer = outlive.Consumer(node, "/q", np.uint64)
    producer = outlive.Producer(node, "/q", np.uint64, bound_bytes=1 << 16)
    with pytest.raises(outlive.WouldBlock):
        while True:
            producer.send_batch(np.arange(100), timeout=0)
    with pytest.raises(outlive.Timeout):
        producer.send_batch(np.arange(100), timeout=0.01)
    got = iter(lambda: consumer.receive(0), None)
    assert len([int(n) for n in got]) % 100 == 0


@pytest.mark.parametrize(
    "options", [{"stamped": True}, {"ordered": 0.005}, {"bound_bytes": 1 << 16}]
)
def test_both_ends_of_a_queue_have_its_options(node, options):
    with outlive.Queue(node, "/q", **options) as queue:
        queue.consumer()
        queue.put("first")
        assert queue.get(10.0) == "first"


def test_a_borrowed_message_is_read_where_it_lies(node):
    with outlive.Queue(node, "/q", np.float32, (None, 2)) as queue:
        queue.consumer()
        queue.put(np.full((5000, 2), 1.5, np.float32))
        queue.put(np.full((1, 2), 2.5, np.float32))
        with queue.borrow(10.0) as message:
            array = message.array
            assert array.shape == (5000, 2) and shared(array) and not array.flags.writeable
            assert np.asarray(message).ctypes.data == array.ctypes.data
            assert message.producer[0] == node.id and message.timestamp_ns is None
            view = memoryview(array)[:10]
            del array
        with pytest.raises(outlive.InvalidArgument):
            message.array
        with pytest.raises(outlive.TooManyBorrows):  # the view has it in hand
            queue.get(0)
        with pytest.raises(outlive.TooManyBorrows):
            outlive.WaitSet().wait([queue.consumer()], 0)
        assert view[9, 1] == 1.5 and view.readonly
        del view
        assert queue.get(10.0).tolist() == [[2.5, 2.5]]
        assert queue.borrow(0) is None


def test_a_producer_is_known_by_its_identity(node):
    consumer = outlive.Consumer(node, "/q", np.float32)
    producer = outlive.Producer(node, "/q", np.float32)
    producer.send(1.5)
    with consumer.borrow(10.0) as message:
        assert message.producer == producer.id
    assert consumer.events() == [("joined", producer.id)]
    producer.close()
    with pytest.raises(outlive.InvalidArgument):
        producer.id


def test_a_view_outlives_its_consumer_and_its_producer(child, root):
    def send():
        producer = outlive.Producer(outlive.Node("victim"), "/q", bytes, first_bytes=4096)
        producer.wait_for_consumer(60.0)
        for n in range(100):
            producer.send(bytes([n]) * 1000)
        os.kill(os.getpid(), signal.SIGKILL)

    pid = child(send)
    node = outlive.Node("reader")
    consumer = outlive.Consumer(node, "/q", bytes)
    message = consumer.borrow(60.0)
    os.waitpid(pid, 0)
    assert message.value == bytes(1000)
    view = message.array
    del message
    consumer.close()
    with pytest.raises(outlive.InvalidArgument, match="closed"):
        consumer.receive(0)
    with pytest.raises(outlive.ConsumerExists):  # it leaves when the view is gone
        outlive.Consumer(node, "/q", bytes)
    del consumer
    assert shared(view) and not view.any()
    del view
    heir = outlive.Consumer(node, "/q", bytes)
    assert [heir.receive(10.0)[0] for _ in range(99)] == list(range(1, 100)), "all but the first"


def test_an_exception_is_no_acknowledgement(node):
    with outlive.Queue(node, "/q") as queue:
        queue.consumer()
        for n in range(3):
            queue.put({"n": n})
        with pytest.raises(KeyError):
            with queue.borrow(10.0) as message:
                message.value["not there"]
        with pytest.raises(KeyboardInterrupt):
            with queue.borrow(10.0) as message:
                array = message.array
                raise KeyboardInterrupt
        with pytest.raises(outlive.TooManyBorrows):  # the array has it in hand
            queue.get(0)
        del array
        message = queue.borrow(10.0)
        assert message.value == {"n": 0}
        message.nack()
        with pytest.raises(outlive.InvalidArgument):
            message.value
        with pytest.raises(KeyError):
            with queue.borrow(10.0) as message:
                assert message.value == {"n": 0}
                message.ack()  # done: what follows does not bring it back
                raise KeyError
        with queue.borrow(10.0) as message:
            assert message.value == {"n": 1}
        with pytest.raises(ZeroDivisionError):
            with queue.borrow(10.0) as message:
                queue.consumer().close()
                1 / 0
    heir = outlive.Consumer(node, "/q")
    assert heir.receive(10.0) == {"n": 2} and heir.receive(0) is None


def test_what_the_dead_had_in_hand_comes_again(child):
    reader, writer = os.pipe()

    def borrow_and_die():
        consumer = outlive.Consumer(outlive.Node("victim"), "/q")
        os.write(writer, b"x")
        assert consumer.borrow(60.0).value == {"n": 0}
        message = consumer.borrow(60.0)
        assert message.value == {"n": 1} and message.array.dtype == np.uint8
        os.kill(os.getpid(), signal.SIGKILL)

    pid = child(borrow_and_die)
    os.read(reader, 1)
    node = outlive.Node("heir")
    producer = outlive.Producer(node, "/q")
    for n in range(2):
        producer.send({"n": n})
    assert os.waitpid(pid, 0)[1] == signal.SIGKILL
    consumer = outlive.Consumer(node, "/q")
    producer.send({"n": 2})
    assert [consumer.receive(10.0)["n"] for _ in range(2)] == [1, 2]
