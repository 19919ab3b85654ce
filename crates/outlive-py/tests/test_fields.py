"""Fields of structs go by their names."""

import numpy as np
import pytest

import outlive
from outlive import msg

XY = np.dtype([("x", "f8"), ("y", "f8")])
YX = np.dtype([("y", "f8"), ("x", "f8")])
LAT = np.dtype([("lat", "f8"), ("lon", "f8")])
LINE = np.dtype([("id", "u4"), ("ends", XY, (2,))])
ENIL = np.dtype([("ends", YX, (2,)), ("id", "u8")])
PLACE = {"type_name": "test/Place"}


def test_an_array_with_the_same_fields_in_another_order_is_sent_by_name(node):
    subscriber = outlive.Subscriber(node, "/t", XY, **PLACE)
    publisher = outlive.Publisher(node, "/t", XY, **PLACE)
    swapped = np.array([(1.0, 2.0), (3.0, 4.0)], YX)
    publisher.publish(swapped[0])
    publisher.publish(np.array((1.0, 2.0), YX))
    publisher.publish_batch(swapped)
    got = [subscriber.receive(timeout=5.0).array.item() for _ in range(4)]
    assert got == [(2.0, 1.0), (2.0, 1.0), (2.0, 1.0), (4.0, 3.0)]
    queue = outlive.Queue(node, "/q", XY, **PLACE)
    queue.consumer()
    queue.put(swapped[0])
    assert queue.get(timeout=5.0).item() == (2.0, 1.0)
    mutex = outlive.RobustMutex(node, "/m", XY, **PLACE, initial=swapped[1])
    with mutex as data:
        assert data.item() == (4.0, 3.0)


def test_nested_fields_go_by_name_too(node):
    subscriber = outlive.Subscriber(node, "/t", LINE, type_name="test/Line")
    publisher = outlive.Publisher(node, "/t", LINE, type_name="test/Line")
    publisher.publish(np.array(([(1, 2), (3, 4)], 7), ENIL))
    publisher.publish((7, np.array([(1, 2), (3, 4)], YX)))
    publisher.publish((7, [np.array((1, 2), YX), (4, 3)]))
    for _ in range(3):
        assert subscriber.receive(timeout=5.0).array["ends"].tolist() == [(2, 1), (4, 3)]
    zyx = np.array((3.0, 2.0, 1.0), [("z", "f8"), ("y", "f8"), ("x", "f8")])
    assert msg.Pose.new(position=zyx)["position"].item() == (1.0, 2.0, 3.0)


WRONG = [
    np.array((1.0, 2.0), LAT),
    np.array((1.0, 2.0, 3.0), [("x", "f8"), ("y", "f8"), ("w", "f8")]),
    np.array((1.0,), [("x", "f8")]),
    5.0,
    np.float64(5.0),
    np.array(5.0),
    np.array([5.0, 6.0]),
    b"ab",
    bytearray(16),
    np.dtype(XY),
    range(2),
    "ab",
    {"x": 1.0},
    None,
    [],
    [5.0, 6.0, 7.0],
]


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_a_value_without_these_fields_is_refused(node, wrong):
    publisher = outlive.Publisher(node, "/t", XY, **PLACE)
    with pytest.raises(outlive.InvalidArgument):
        publisher.publish(wrong)
    with pytest.raises(outlive.InvalidArgument):
        publisher.publish_batch([wrong])
    with pytest.raises(outlive.InvalidArgument):
        publisher.publish_batch(np.array(wrong))
    consumer = outlive.Consumer(node, "/q", XY, **PLACE)
    with pytest.raises(outlive.InvalidArgument):
        outlive.Producer(node, "/q", XY, **PLACE).send(wrong)
    if wrong is not None:
        with pytest.raises(outlive.InvalidArgument):
            outlive.RobustMutex(node, "/m", XY, **PLACE, initial=wrong)
    lines = outlive.Publisher(node, "/l", LINE, type_name="test/Line")
    for inner in ((7, wrong), (7, [wrong, wrong])):
        with pytest.raises(outlive.InvalidArgument):
            lines.publish(inner)
    with pytest.raises(outlive.InvalidArgument):
        msg.Pose.new(position=wrong)
    assert publisher.published == lines.published == 0 and consumer.receive(timeout=0) is None


def test_a_struct_is_no_number(node):
    publisher = outlive.Publisher(node, "/n", "f8")
    for wrong in (np.array((1.0,), [("x", "f8")]), np.array((1.0, 2.0), XY)):
        with pytest.raises(outlive.InvalidArgument):
            publisher.publish(wrong)
    assert publisher.published == 0


@pytest.mark.parametrize("kind", ["f8", "f4"])
@pytest.mark.parametrize("shape", [(), (1,), (2,), (4,), (3, 1)])
def test_an_array_in_a_field_is_neither_cut_nor_filled_up(node, shape, kind):
    publisher = outlive.Publisher(node, "/a", [("p", "f8", (3,))], type_name="test/Three")
    with pytest.raises(outlive.InvalidArgument, match="its shape is"):
        publisher.publish(np.ones((), [("p", kind, shape)]))
