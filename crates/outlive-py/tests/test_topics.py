"""Publishers, subscribers, loans, samples."""

import asyncio
import dataclasses
import gc
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import outlive

POSE = np.dtype([("x", "f8"), ("y", "f8"), ("corners", "f4", (2, 2))])


def ports(node, *args, history=0, **kwargs):
    publisher = outlive.Publisher(node, "/t", *args, **kwargs)
    return publisher, outlive.Subscriber(node, "/t", *args, history=history, **kwargs)


def test_an_array_arrives_where_it_was_written(node):
    publisher, subscriber = ports(node, np.float32, (480, 640))
    with publisher.loan() as array:
        assert array.shape == (480, 640) and array.dtype == np.float32
        array[:] = 1.5
    sample = subscriber.receive(1.0)
    assert sample.is_borrowed and sample.seq == 0 and sample.lost_before == 0
    view = sample.array
    assert view.shape == (480, 640) and (view == 1.5).all() and not view.flags.writeable
    with pytest.raises(ValueError):
        view[0, 0] = 2
    assert np.asarray(sample).__array_interface__["data"] == view.__array_interface__["data"]
    assert not array.flags.writeable, "what was published cannot be written any more"


def test_a_structured_dtype_is_one_value(node):
    publisher, subscriber = ports(node, POSE, type_name="test/Pose")
    publisher.publish(np.array((1, 2, [[3, 4], [5, 6]]), POSE))
    value = subscriber.receive(1.0).value
    assert value["y"] == 2 and value["corners"][1, 0] == 5
    publisher.publish((7, 8, [[0, 0], [0, 0]]))
    assert subscriber.receive(1.0).array["x"] == 7


def test_a_batch_is_a_message_each(node):
    publisher, subscriber = ports(node, POSE, type_name="test/Pose")
    batch = np.zeros(5, POSE)
    batch["x"] = np.arange(5)
    publisher.publish_batch(batch)
    publisher.publish_batch(batch[:0])
    publisher.publish_batch([(5, 1, [[0, 0], [0, 0]])])
    samples = list(iter(lambda: subscriber.receive(0), None))
    assert [sample.array["x"] for sample in samples] == [0, 1, 2, 3, 4, 5]
    assert len({sample.timestamp_ns for sample in samples[:5]}) == 1
    for wrong in (np.zeros(3), np.zeros((2, 2), POSE), POSE):
        with pytest.raises(outlive.InvalidArgument):
            publisher.publish_batch(wrong)
    bytes_ = outlive.Publisher(node, "/bytes", bytes)
    with pytest.raises(outlive.InvalidArgument, match="all of one size"):
        bytes_.publish_batch([b"a", b"b"])


def test_a_batch_of_nothing_sends_nothing(node):
    publisher = outlive.Publisher(node, "/pairs", np.float32, (2,))
    for nothing in ([], np.zeros((0, 2))):
        publisher.publish_batch(nothing)
    with pytest.raises(outlive.InvalidArgument, match="its shape"):
        publisher.publish_batch(np.zeros((0, 3)))
    assert publisher.published == 0
    publisher.close()
    with pytest.raises(outlive.InvalidArgument, match="closed"):
        publisher.publish_batch([])


def test_a_batch_waits_for_a_reliable_subscriber_and_sends_each_once(node):
    publisher = outlive.Publisher(node, "/n", np.uint64, depth=4, reliable_timeout=60)
    subscriber = outlive.Subscriber(node, "/n", np.uint64, reliable=True)
    thread = threading.Thread(target=lambda: publisher.publish_batch(np.arange(100, dtype="u8")))
    thread.start()
    got = []
    while len(got) < 100:
        sample = subscriber.receive(60)
        if sample is not None:
            got.append(int(sample.value))
    thread.join()
    assert got == list(range(100)) and subscriber.receive(0) is None
    impatient = outlive.Publisher(node, "/n", np.uint64, depth=4, reliable_timeout=0)
    with pytest.raises(outlive.WouldBlock):
        impatient.publish_batch(np.arange(9, dtype="u8"))
    assert impatient.published == 4


def test_slices_have_any_length(node):
    publisher, subscriber = ports(node, np.float64, (None, 3))
    for count in (1, 5, 0):
        publisher.publish(np.full((count, 3), count, np.float64))
        assert subscriber.receive(1.0).array.shape == (count, 3)
    with publisher.loan(4) as points:
        points[:] = 9
    assert (subscriber.receive(1.0).array == 9).all()
    with pytest.raises(outlive.InvalidArgument):
        publisher.publish(np.zeros((2, 2)))


@pytest.mark.parametrize(
    "timeout, error",
    [
        (0.0, outlive.WouldBlock),
        (-1.0, outlive.WouldBlock),
        (0.001, outlive.Timeout),
        (None, outlive.Timeout),
    ],
)
def test_a_reliable_timeout_of_zero_does_not_wait(node, timeout, error):
    subscriber = outlive.Subscriber(node, "/behind", bytes, depth=2, reliable=True)
    publisher = outlive.Publisher(node, "/behind", bytes, depth=2, reliable_timeout=timeout)
    publisher.publish(b"1")
    publisher.publish(b"2")
    with pytest.raises(error):
        publisher.publish(b"3")
    assert subscriber.receive().value == b"1"


def test_bytes_and_objects(node):
    publisher, subscriber = ports(node, bytes)
    publisher.publish(b"hello")
    publisher.publish(np.arange(3, dtype=np.uint8))
    publisher.publish(memoryview(b"view"))
    assert [subscriber.receive(1.0).value for _ in range(3)] == [b"hello", b"\0\1\2", b"view"]

    objects = outlive.Publisher(node, "/objects")
    received = outlive.Subscriber(node, "/objects")
    value = {"a": [1, -2, 2.5, None, True], "b": b"x", "long": "é" * 1000, "n": 2**64 - 1}
    objects.publish(value)
    assert received.receive(1.0).value == value
    with pytest.raises(TypeError):
        objects.publish(object())


@dataclasses.dataclass(frozen=True)
class Cell:
    row: int


KEYED = {(1, 2): 3.0, (1, (2, ("x", b"y"))): [4], (): None, 7: {(0,): {}}}


def test_dicts_with_tuples_as_keys_arrive_as_they_were_sent(node):
    assert outlive.unpackb(outlive.packb(KEYED)) == KEYED
    publisher, subscriber = ports(node, object)
    publisher.publish(KEYED)
    assert subscriber.receive(10.0).value == KEYED
    with outlive.Queue(node, "/q") as queue:
        queue.consumer()
        queue.put(KEYED)
        assert queue.get(10.0) == KEYED


@pytest.mark.parametrize("key", [Cell(1), (1, Cell(1))])
def test_a_key_that_could_not_be_read_is_not_sent(node, key):
    publisher, subscriber = ports(node, object)
    with pytest.raises(outlive.InvalidArgument, match="key.*Cell.*tuple"):
        publisher.publish({key: 1})
    assert subscriber.receive(0) is None


# {{}: 1}, {[{}]: 1}
@pytest.mark.parametrize("data", [b"\x81\x80\x01", b"\x81\x91\x80\x01"])
def test_bytes_whose_keys_are_maps_are_no_value(data):
    with pytest.raises(ValueError):
        outlive.unpackb(data)


@dataclasses.dataclass
class Point:
    x: float
    y: float


@dataclasses.dataclass
class Path:
    goal: str
    points: list[Point]


def test_dataclasses_travel_as_messagepack(node):
    publisher, subscriber = ports(node, Path, type_name="test/Path")
    path = Path("dock", [Point(0.0, 1.0), Point(2.0, 3.0)])
    publisher.publish(path)
    assert subscriber.receive(1.0).value == path
    assert subscriber.type_name == "test/Path"


def test_types_that_differ_are_told_field_by_field(node):
    kept = ports(node, POSE, type_name="test/Pose")
    other = np.dtype([("x", "f8"), ("z", "f8"), ("corners", "f4", (2, 2))])
    with pytest.raises(outlive.TypeMismatch, match="field y") as caught:
        outlive.Subscriber(node, "/t", other, type_name="test/Pose")
    assert caught.value.object == "/t" and isinstance(caught.value, TypeError)
    with pytest.raises(TypeError, match="type_name"):
        outlive.Subscriber(node, "/t", POSE)
    with pytest.raises(outlive.InvalidName):
        outlive.Subscriber(node, "a//b")
    del kept


def test_an_exception_in_the_block_gives_the_loan_back(node):
    publisher, subscriber = ports(node, np.uint8, (1000,))
    with pytest.raises(KeyError):
        with publisher.loan():
            raise KeyError
    assert subscriber.receive(0) is None and publisher.published == 0
    loan = publisher.loan()
    loan.publish()
    with pytest.raises(outlive.InvalidArgument):
        loan.publish()


def test_views_keep_the_sample_and_the_sample_its_memory(node):
    publisher, subscriber = ports(node, np.uint8, (100_000,))
    publisher.publish(np.full(100_000, 3, np.uint8))
    row = subscriber.receive(1.0).array[500:600]
    tensor = np.from_dlpack(outlive_sample(publisher, subscriber))
    assert subscriber.borrowed == 2
    subscriber.close()
    publisher.close()
    del publisher, subscriber
    gc.collect()
    assert (row == 3).all() and (tensor == 4).all()
    del row, tensor
    gc.collect()


def outlive_sample(publisher, subscriber):
    publisher.publish(np.full(100_000, 4, np.uint8))
    return subscriber.receive(1.0)


def test_dlpack_is_the_same_address_and_read_only(node):
    publisher, subscriber = ports(node, np.float32, (10, 20))
    publisher.publish(np.ones((10, 20), np.float32))
    sample = subscriber.receive(1.0)
    tensor = np.from_dlpack(sample)
    assert tensor.ctypes.data == sample.array.ctypes.data and not tensor.flags.writeable
    assert sample.__dlpack_device__() == (1, 0)
    sample.__dlpack__()  # nobody takes it
    del sample, tensor
    gc.collect()
    assert subscriber.borrowed == 0


def test_too_many_samples_are_refused_until_one_goes(node):
    publisher, subscriber = ports(node, np.uint8, (2000,))
    held = []
    for _ in range(8):
        publisher.publish(np.zeros(2000, np.uint8))
        held.append(subscriber.receive(1.0).array)
    publisher.publish(np.zeros(2000, np.uint8))
    with pytest.raises(outlive.TooManyBorrows):
        subscriber.receive(0)
    held.pop()
    assert subscriber.receive(0) is not None


def test_waiting_lets_other_threads_run(node):
    publisher, subscriber = ports(node, bytes)

    def later():
        time.sleep(0.05)
        publisher.publish(b"x")

    thread = threading.Thread(target=later)
    thread.start()
    assert subscriber.receive(10.0).value == b"x"
    thread.join()
    assert subscriber.receive(0.01) is None and subscriber.receive(0) is None


def test_iteration_and_latest(node):
    publisher, subscriber = ports(node, np.int64, history=16)
    for n in range(5):
        publisher.publish(n)
    for expected, sample in zip(range(3), subscriber):
        assert int(sample.array) == expected
    assert int(subscriber.latest().array) == 4 and subscriber.latest() is None
    assert subscriber.lost == 0
    assert ("joined", publisher.id) in subscriber.events()


def test_async_for(node):
    publisher, subscriber = ports(node, np.int64)

    async def send():
        for n in range(3):
            await asyncio.sleep(0.01)
            publisher.publish(n)

    async def main():
        sending = asyncio.create_task(send())
        got = []
        async for sample in subscriber:
            got.append(int(sample.array))
            if len(got) == 3:
                break
        await sending
        return got

    assert asyncio.run(asyncio.wait_for(main(), 20)) == [0, 1, 2]


def test_a_sample_outlives_its_killed_publisher(child, root):
    def publish():
        node = outlive.Node("victim")
        publisher = outlive.Publisher(node, "/t", np.uint8, (50_000,))
        publisher.publish(np.full(50_000, 9, np.uint8))
        time.sleep(60)

    pid = child(publish)
    node = outlive.Node("heir")
    subscriber = outlive.Subscriber(node, "/t", np.uint8, (50_000,), history=1)
    view = subscriber.receive(20.0).array
    import os

    os.kill(pid, 9)
    died = []
    while not died:
        subscriber.receive(0.2)
        died = [event for event in subscriber.events() if event[0] == "died"]
    assert (view == 9).all()


def test_a_forked_child_is_told(node):
    import os

    pid = os.fork()
    if pid == 0:
        try:
            outlive.Publisher(node, "/x", bytes)
        except outlive.ForkedChild:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def test_the_interpreter_may_end_with_samples_in_hand(root):
    code = """
import numpy as np, outlive
node = outlive.Node("end")
p = outlive.Publisher(node, "/t", np.uint8, (100_000,))
s = outlive.Subscriber(node, "/t", np.uint8, (100_000,))
p.publish(np.ones(100_000, np.uint8))
view = s.receive(1.0).array
loan = p.loan()
array = loan.array
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_header_and_elements_are_one_message_without_a_copy(node):
    scan = outlive.Headed([("stamp_ns", "u8"), ("range_max", "f8")], "f4")
    of = {"type": scan, "type_name": "test/Scan"}
    publisher = outlive.Publisher(node, "/scan", **of)
    subscriber = outlive.Subscriber(node, "/scan", **of)
    with publisher.loan(1000) as (header, ranges):
        header["stamp_ns"], header["range_max"] = 7, 30.0
        ranges[:] = np.arange(1000)
    with pytest.raises(ValueError):
        ranges[0] = 1
    sample = subscriber.receive(5.0)
    header, ranges = sample.value
    assert sample.is_borrowed and not ranges.flags.writeable and ranges.shape == (1000,)
    assert header.shape == () and float(header["range_max"]) == 30.0
    assert ranges.ctypes.data == header.ctypes.data + 16
    del sample
    assert subscriber.borrowed == 1 and ranges[999] == 999.0
    publisher.publish(((8, 1.5), [1, 2]))
    header, ranges = subscriber.receive(5.0).value
    assert int(header["stamp_ns"]) == 8 and ranges.tolist() == [1.0, 2.0]
    publisher.publish(((9, 1.5), []))
    assert subscriber.receive(5.0).value[1].size == 0
    for wrong in (3, (1, 2, 3), ([(1, 2.0), (3, 4.0)], [1])):
        with pytest.raises(outlive.InvalidArgument):
            publisher.publish(wrong)
    with pytest.raises(outlive.TypeMismatch):
        outlive.Subscriber(node, "/scan", outlive.Headed(scan.header, "f8"), type_name="test/Scan")


def test_a_header_and_elements_travel_in_a_queue(node):
    of = {"type": outlive.Headed([("n", "u8")], "u2"), "type_name": "test/Run"}
    queue = outlive.Queue(node, "/runs", **of)
    queue.consumer()
    queue.put((5, [1, 2, 3]))
    header, values = queue.get(5.0)
    assert int(header["n"]) == 5 and values.tolist() == [1, 2, 3]


def test_a_queue_is_awaited_like_a_topic(node):
    queue = outlive.Queue(node, "/jobs")
    queue.consumer()

    async def main():
        async def send():
            for i in range(3):
                await asyncio.sleep(0.01)
                queue.put({"job": i})

        sending = asyncio.create_task(send())
        got = []
        async for message in queue:
            got.append(message["job"])
            if len(got) == 3:
                break
        await sending
        return got

    assert asyncio.run(asyncio.wait_for(main(), 20)) == [0, 1, 2]
