"""Values arrive as they were sent, or the sender gets an error."""

import dataclasses
import os
import sys
from typing import ClassVar, Dict, List, Mapping, Optional, Sequence, Tuple

import numpy as np
import pytest

import outlive

POSE = np.dtype([("n", "u1"), ("xy", "f4", (2,)), ("name", "S3")])


def sent(node, value, *of, **name):
    publisher = outlive.Publisher(node, "/t", *of, **name)
    subscriber = outlive.Subscriber(node, "/t", *of, **name)
    try:
        publisher.publish(value)
        return subscriber.receive(10.0).array.copy()
    finally:
        publisher.close()
        subscriber.close()


@pytest.mark.parametrize(
    "dtype, value, what",
    [
        ("u1", [300.7, -1.5, float("nan")], "300"),
        ("u1", [1, -1, 2], r"\[1\] -1|-1 cannot|-1 out"),
        ("u1", [1, 256, 2], "256"),
        ("u1", np.array([1, 2, 300]), r"\[2\] 300"),
        ("u1", np.array([1.0, 2.5, 3.0]), r"\[1\] 2.5"),
        ("i8", np.array([1, 2**63, 3], np.uint64), r"\[1\] 9223372036854775808"),
        ("u8", np.array([1, 2, -3]), r"\[2\] -3"),
        ("u8", [1, 2, float("inf")], "inf"),
        ("f4", [1.0, 1e300, 0.0], r"\[1\] 1e\+300"),
        ("f8", np.array([1, 2, 3j]), "complex numbers cannot be float64"),
        ("?", [0, 1, 2], r"\[2\] 2"),
        ("u1", ["1", "2", "3"], "'1'"),
        ("u1", [1, None, 3], "None"),
        ("u1", [[1], [2, 3], [4]], "not made|inhomogeneous"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(node, dtype, value, what):
    publisher = outlive.Publisher(node, "/t", dtype, (3,))
    with pytest.raises(outlive.InvalidArgument, match=what):
        publisher.publish(value)
    assert publisher.published == 0
    producer = outlive.Producer(node, "/q", dtype, (3,))
    for send in (producer.send, lambda value: producer.send_batch([value])):
        with pytest.raises(outlive.InvalidArgument):
            send(value)


def test_values_that_fit_arrive(node):
    assert sent(node, [1.0, 2, True], "u1", (3,)).tolist() == [1, 2, 1]
    assert sent(node, np.array([1, 2, 255]), "u1", (3,)).tolist() == [1, 2, 255]
    assert sent(node, [0, 1, 1.0], "?", (3,)).tolist() == [False, True, True]
    assert sent(node, [0.1, 1, float("nan")], "f4", (3,)).tolist()[:2] == [np.float32(0.1), 1]
    assert sent(node, [float("inf"), 1, 2**60], "f4", (3,))[0] == np.inf
    assert sent(node, np.float32(0.5), "f8") == 0.5
    assert sent(node, 2**64 - 1, "u8") == 2**64 - 1
    assert sent(node, np.arange(12)[::4], "i8", (3,)).tolist() == [0, 4, 8]
    assert sent(node, [1, 2 + 3j], "c16", (2,)).tolist() == [1, 2 + 3j]
    assert sent(node, "abc", "S3") == b"abc" and sent(node, b"ab", "S3") == b"ab"


def test_the_fields_of_a_struct_are_checked_too(node):
    of = {"type_name": "test/Pose"}
    got = sent(node, (7, (1.5, 2), "ab"), POSE, **of)
    assert (int(got["n"]), got["xy"].tolist(), got["name"].item()) == (7, [1.5, 2], b"ab")
    rows = [(1, (0, 0), b""), (2, [3, 4], b"abc")]
    assert sent(node, rows, POSE, (2,), **of)["xy"].tolist() == [[0, 0], [3, 4]]
    wide = np.dtype([("n", "i8"), ("xy", "f8", (2,)), ("name", "S9")])
    assert sent(node, np.array((7, (1, 2), b"ab"), wide), POSE, **of)["n"] == 7
    publisher = outlive.Publisher(node, "/p", POSE, **of)
    several = outlive.Publisher(node, "/ps", POSE, (2,), **of)
    other = np.array((1, 2), [("n", "u1"), ("z", "f4")])
    for wrong, what in [
        ((300, (1, 2), ""), "300"),
        ((1.5, (1, 2), ""), r"\['n'\] 1.5"),
        ((1, (1, 1e300), ""), r"\['xy'\]\[1\] 1e\+300"),
        ((1, (1, 2), "abcd"), r"\['name'\] 'abcd'"),
        ((1, (1, 2)), "not made|fields"),
        (np.array((300, (1, 2), b""), wide), r"\['n'\] 300"),
        (other, "fields|not made"),
    ]:
        with pytest.raises(outlive.InvalidArgument, match=what):
            publisher.publish(wrong)
    with pytest.raises(outlive.InvalidArgument, match=r"\[1\]\['n'\] 2.5"):
        several.publish([(1, (0, 0), b""), (2.5, (0, 0), b"")])


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


@dataclasses.dataclass
class Path:
    points: List[Point]
    best: Optional[Point] = None
    by_name: Dict[str, Point] = dataclasses.field(default_factory=dict)
    ends: Tuple[Point, ...] = ()
    span: Tuple[float, float] = (0.0, 0.0)
    names: List[str] = dataclasses.field(default_factory=list)


def test_a_dataclass_is_checked_where_it_is_sent(node):
    publisher = outlive.Publisher(node, "/path", Path)
    subscriber = outlive.Subscriber(node, "/path", Path)
    good = Path([Point(1.0)], Point(2.0), {"a": Point(3.0)}, (Point(4.0),), (1.0, 2.0), ["a"])
    publisher.publish(good)
    assert subscriber.receive(10.0).value == good
    for wrong, what in [
        ({"points": []}, "value: expected Path"),
        ({"nothing": 1}, "value: expected Path"),
        (Point(1.0), "value: expected Path"),
        (None, "value: expected Path"),
        (Path([{"x": 1.0}]), r".points\[0\]: expected Point"),
        (Path([], {"x": 1.0}), ".best: expected Point"),
        (Path([], None, {"a": 1}), r".by_name\['a'\]: expected Point"),
        (Path([], None, {}, (Point(1.0), 2)), r".ends\[1\]: expected Point"),
        (Path([], span=(1.0, 2.0, 3.0)), ".span: expected tuple of 2"),
        (Path([], span=(1.0,)), ".span: expected tuple of 2"),
        (Path([], span=1.0), ".span: expected tuple"),
        (Path([], names="abc"), ".names: expected list"),
        (Path([], by_name=[1]), ".by_name: expected dict"),
    ]:
        with pytest.raises(outlive.TypeMismatch, match=what):
            publisher.publish(wrong)
    assert publisher.published == 1


FIELDS = [
    (Optional[List[Point]], [Point(1.0)], [7], r"\[0\]: expected Point"),
    (Optional[List[Point]], None, {}, ": expected list"),
    (Optional[Dict[str, List[Point]]], {"a": [Point(1.0)]}, {"a": [7]}, ": expected Point"),
    (Optional[Tuple[float, float]], (1.0, 2.0), (1.0,), ": expected tuple of 2"),
    (Optional[int], 7, None, None),
    (tuple, (1, "a"), "1a", ": expected tuple"),
    (Tuple, (1, "a"), 7, ": expected tuple"),
    (list, [1, "a"], "1a", ": expected list"),
    (dict, {"a": 1}, [1], ": expected dict"),
    (Sequence[Point], [Point(1.0)], "a", r": expected list|\[0\]: expected Point"),
    (Sequence[Tuple[int, int]], [(1, 2)], [(1,)], ": expected tuple of 2"),
    (Sequence[str], "abc", 7, ": expected list"),
    (Sequence[int], b"abc", {}, ": expected list"),
    (Mapping[str, Point], {"a": Point(1.0)}, {"a": 7}, ": expected Point"),
    (Mapping[str, int], {"a": 1}, [1], ": expected dict"),
]
if sys.version_info >= (3, 10):
    FIELDS += [(list[Point] | None, [Point(1.0)], [7], ": expected Point")]


@pytest.mark.parametrize("hint, value, wrong, what", FIELDS)
def test_a_field_arrives_as_what_its_type_says(node, hint, value, wrong, what):
    cls = dataclasses.make_dataclass("Cls", [("field", hint)])
    publisher = outlive.Publisher(node, "/t", cls)
    subscriber = outlive.Subscriber(node, "/t", cls)
    publisher.publish(cls(value))
    got = subscriber.receive(10.0).value
    assert got == cls(value) and type(got.field) is type(value)
    if what is not None:
        with pytest.raises(outlive.TypeMismatch, match=what):
            publisher.publish(cls(wrong))
        other = outlive.Publisher(node, "/t", object, type_name="Cls")
        other.publish({"field": wrong})
        with pytest.raises(outlive.Corrupt):
            subscriber.receive(10.0).value


@dataclasses.dataclass(frozen=True)
class Circle:
    radius: float
    unit: dataclasses.InitVar[float] = 1.0
    area: float = dataclasses.field(init=False)
    at: Tuple[int, int] = dataclasses.field(init=False, default=(0, 0))
    corners: ClassVar[int] = 0

    def __post_init__(self, unit):
        object.__setattr__(self, "area", 3 * (self.radius * unit) ** 2)


def test_the_fields_of_a_dataclass_travel_and_what_only_looks_like_one_does_not(node):
    publisher = outlive.Publisher(node, "/circle", Circle)
    subscriber = outlive.Subscriber(node, "/circle", Circle)
    circle = Circle(2.0, 10.0)
    object.__setattr__(circle, "at", (3, 4))
    publisher.publish(circle)
    packed = outlive.unpackb(bytes(subscriber.receive(10.0).array))
    assert packed == {"radius": 2.0, "area": 1200.0, "at": [3, 4]}
    publisher.publish(circle)
    assert subscriber.receive(10.0).value == circle
    other = outlive.Publisher(node, "/circle", object, type_name="Circle")
    other.publish({"radius": 2.0})
    assert subscriber.receive(10.0).value == Circle(2.0)
    needs = dataclasses.make_dataclass("Needs", [("x", dataclasses.InitVar[int]), ("y", int, 1)])
    assert outlive.unpackb(outlive.packb(needs(7))) == {"y": 1}


def test_what_is_no_object_of_the_dataclass_is_corrupt_and_the_next_arrives(node):
    subscriber = outlive.Subscriber(node, "/path", Path)
    queue = outlive.Queue(node, "/paths", Path)
    consumer = queue.consumer()
    # Another program, which means something else by the name.
    publisher = outlive.Publisher(node, "/path", object, type_name="Path")
    producer = outlive.Producer(node, "/paths", object, type_name="Path")
    for wrong, what in [
        (7, "expected Path, got int"),
        (None, "expected Path, got NoneType"),
        ({"best": None}, "points"),
        ({"points": 7}, "expected list, got int"),
        ({"points": [], "names": "abc"}, "expected list, got str"),
        ({"points": [], "ends": {}}, "expected tuple, got dict"),
        ({"points": [], "span": [1.0, 2.0, 3.0]}, "expected tuple of 2, got 3 elements"),
        ({"points": [], "span": [1.0]}, "expected tuple of 2, got 1 elements"),
        ({"points": [{"y": 1.0}]}, "'x'"),
        ({"points": [None]}, "expected Point, got NoneType"),
        ({"points": [], "best": 7}, "expected Point, got int"),
        ({"points": [], "by_name": [1]}, "expected dict, got list"),
    ]:
        for send in (publisher.publish, producer.send):
            send(wrong)
            send({"points": [{"x": 1.0}]})
        sample = subscriber.receive(10.0)
        with pytest.raises(outlive.Corrupt, match=f"receiving Path: .*{what}.*: correct the program"):
            sample.value
        assert subscriber.receive(10.0).value == Path([Point(1.0)])
        with pytest.raises(outlive.Corrupt, match=what):
            consumer.receive(10.0)
        assert consumer.receive(10.0) == Path([Point(1.0)])


def test_a_loan_of_a_closed_publisher_is_not_published(node):
    publisher = outlive.Publisher(node, "/t", np.int64, (1000,))
    subscriber = outlive.Subscriber(node, "/t", np.int64, (1000,))
    loan = publisher.loan()
    array = loan.array
    publisher.close()
    array[:] = 1
    with pytest.raises(outlive.InvalidArgument, match="its publisher is closed"):
        loan.publish()
    assert subscriber.receive(0.05) is None and not array.flags.writeable
    del loan, array
    subscriber.receive(0)
    assert [what for what, _ in subscriber.events()] == ["joined", "left"]


@pytest.mark.parametrize("kind", ["mutex", "rwlock"])
def test_the_data_of_a_lock_is_written_by_its_holder_only(node, kind):
    if kind == "mutex":
        lock = outlive.RobustMutex(node, "/m", np.int64, (2,))
        held, release = (lambda: lock), lock.release
        lock.acquire()
        data = lock.data
    else:
        lock = outlive.RobustRwLock(node, "/rw", np.int64, (2,))
        held, release = lock.write, lock.release_write
        guard = lock.write()
        data = guard.__enter__()
    data[0] = 1
    pid = os.fork()
    if pid == 0:
        try:
            data[0] = 2
        except ValueError:
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    data[1] = 3  # the parent still may
    release()
    with pytest.raises(ValueError):
        data[0] = 4
    if kind == "mutex":
        with pytest.raises(outlive.NotOwned, match="take it first"):
            lock.data
    with held() as again:
        assert again.tolist() == [1, 3]
        again[0] = 5
    with pytest.raises(ValueError):
        again[0] = 6


def test_shapes_and_types_that_are_wrong_say_how_to_name_them(node):
    def open(*of, **name):
        return outlive.Publisher(node, "/t", *of, **name)

    for of, what in [
        ((np.uint8, (None, 0)), "whole numbers from 1"),
        ((np.uint8, (3, None)), "None as the first"),
        ((np.uint8, (2.5,)), "whole numbers"),
        ((np.uint8, "3"), "whole numbers"),
        ((np.uint8, (-1,)), "whole numbers"),
        ((bytes, (3,)), "bytes, which have any length, have none"),
        ((Path, (3,)), "objects have none"),
        ((np.uint8, (2**41,)), "1 TiB at most"),
        ((np.uint8, (1,) * 9), "8 dimensions"),
    ]:
        with pytest.raises(outlive.InvalidArgument, match=what):
            open(*of)
    for of, what in [
        ((str,), "str cannot be shared: use object, as MessagePack, or bytes of a fixed length"),
        ((np.dtype("U3"),), "text is bytes of a fixed length"),
        (("no-such-type",), "names no type"),
        ((Path([]),), "names no type"),
        ((list,), "list cannot be shared: use object, as MessagePack, or a dataclass"),
        ((np.object_,), "object_ cannot be shared: use object"),
    ]:
        with pytest.raises(TypeError, match=what):
            open(*of)
    publisher = open(np.uint8, (None, 3))
    with pytest.raises(outlive.InvalidArgument, match=r"shape is \(2,\), this takes \(any, 3\)"):
        publisher.publish(np.zeros(2, np.uint8))
    flat = outlive.Publisher(node, "/flat", np.uint8, (3,))
    with pytest.raises(outlive.InvalidArgument, match=r"\(2, 2\), this takes \(3,\)"):
        flat.publish(np.zeros((2, 2), np.uint8))


@pytest.mark.parametrize("number", [-1, 1 << 64])
@pytest.mark.parametrize("opens", [
    lambda node, n: outlive.Publisher(node, "/t", depth=n),
    lambda node, n: outlive.Publisher(node, "/t", memory_bytes_max=n),
    lambda node, n: outlive.Subscriber(node, "/t", history=n),
    lambda node, n: outlive.Subscriber(node, "/t", borrows=n),
    lambda node, n: outlive.Producer(node, "/q", bound_bytes=n),
    lambda node, n: outlive.Client(node, "/s", bound_bytes=n),
    lambda node, n: outlive.RobustSemaphore(node, "/p", n),
    lambda node, n: outlive.LocklessSet(node, "/l", n),
])
def test_a_count_that_is_none_is_an_invalid_argument(node, opens, number):
    with pytest.raises(outlive.InvalidArgument, match=f"the number {number}: .*from 0 to"):
        opens(node, number)
