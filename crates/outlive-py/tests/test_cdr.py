"""Messages that `outlive types import --cdr` wrote: their bytes are those of ROS 2, as rosbags has them."""

import pathlib
import struct
import sys
import threading

import pytest

import outlive

TYPES = pathlib.Path(__file__).resolve().parents[3] / "crates/outlive-cli/tests/types"
if not TYPES.exists():
    pytest.skip("needs the repository", allow_module_level=True)
sys.path.insert(0, str(TYPES))

from golden_cdr.plan_msgs import Goal, Nothing, Plan  # noqa: E402
from golden_cdr.route_msgs import FindRequest, FindResponse, Leg, Route  # noqa: E402


def route():
    made = Route(words=["x", ""], flags=[True, False, True], shorts=[-1], numbers=[1.5, float("inf")])
    made.header.stamp.sec, made.header.frame_id = -7, "yard"
    made.plan.goals = [Goal("dock", covariance=[0.25] * 36), Goal()]
    made.plan.tags, made.plan.digest = ["", "abc"], bytes([1, 2, 255])
    made.plan.times[1].nanosec = 9
    made.legs = [Leg(), Leg(Leg.LEFT, 2.5, ["halt", "ä"])]
    made.key = bytes(39) + b"\4"
    made.data = bytes(range(256))
    made.match[2] = -0.5
    made.nothings = [Nothing(), Nothing()]
    return made


def encoded(value):
    return type(value).__outlive_encoded__().encode(value)


def decoded(cls, data):
    return cls.__outlive_encoded__().decode(data)


def ros_name(of):
    return of.__outlive_type__.replace("/srv/", "/msg/")


def theirs(stores, value):
    """The bytes that rosbags makes of the same message."""
    np = pytest.importorskip("numpy")

    def of(kind, value):
        if hasattr(value, "__outlive_type__"):
            fields = stores.fielddefs[ros_name(value)][1]
            values = {name: of(kind, getattr(value, name)) for name, kind in fields}
            return stores.types[ros_name(value)](**values)
        if isinstance(value, (bytes, list)):
            element = kind[1][0]
            if element[0].name == "BASE" and element[1][0] != "string":
                dtype = {"octet": "uint8"}.get(element[1][0], element[1][0])
                return np.array(list(value), dtype=dtype)
            return [of(element, one) for one in value]
        return value

    return bytes(stores.serialize_cdr(of(None, value), ros_name(value)))


@pytest.fixture(scope="module")
def stores():
    typesys = pytest.importorskip("rosbags.typesys")
    store = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)
    for cls in (Route, FindRequest, FindResponse):
        text = cls.__outlive_schema__
        for bound in ("<=3", "<=4", "<=8", "<=20"):
            text = text.replace(bound, "")  # it does not know all, and they change no bytes
        store.register(typesys.get_types_from_msg(text, ros_name(cls)))
    return store


def test_bytes_are_those_of_ros_and_are_read_back(stores):
    for value in (route(), Route(), FindRequest(), FindResponse(route())):
        data = encoded(value)
        assert data == theirs(stores, value), type(value)
        assert decoded(type(value), data) == value
        assert decoded(type(value), data + bytes(3)) == value
        for end in range(len(data)):
            with pytest.raises(outlive.Corrupt, match=f"not a valid {value.__outlive_type__} .cdr."):
                decoded(type(value), data[:end])
        with pytest.raises(outlive.Corrupt, match="4 bytes are left"):
            decoded(type(value), data + bytes(4))
    assert encoded(Nothing()) == b"\0\1\0\0\0"


def test_big_endian_is_read_and_other_forms_are_refused():
    data = b"\0\0\0\0" + struct.pack(">B7xdI", 1, 2.5, 0)
    assert decoded(Leg, data) == Leg(1, 2.5, [])
    with pytest.raises(outlive.Corrupt, match="form 6, which is not plain CDR"):
        decoded(Leg, b"\0\6" + data[2:])


def test_a_length_that_is_a_lie_is_an_error_and_costs_no_memory():
    import tracemalloc

    good, refused = encoded(route()), 0
    tracemalloc.start()
    for at in range(4, len(good) - 4, 4):
        try:
            decoded(Route, good[:at] + b"\xff\xff\xff\xff" + good[at + 4 :])
        except outlive.Corrupt:
            refused += 1
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert refused > 20 and peak < 1 << 20, (refused, peak)
    with pytest.raises(outlive.Corrupt, match="flags: 2 instead of a truth value"):
        at = good.index(bytes([3, 0, 0, 0, 1, 0, 1]))
        decoded(Route, good[: at + 5] + b"\2" + good[at + 6 :])
    assert decoded(Leg, b"\0\1\0\0" + struct.pack("<B7xdII3s", 1, 2.5, 1, 3, b"abc")).signs == ["abc"]
    with pytest.raises(outlive.Corrupt, match=r"signs\[0\]: 'utf-8' codec"):
        decoded(Leg, b"\0\1\0\0" + struct.pack("<B7xdII2s", 1, 2.5, 1, 2, b"\xff\0"))


WRONG = [
    ("legs: 4 elements instead of at most 3", lambda r: setattr(r, "legs", [Leg()] * 4)),
    ("shorts: 5 elements instead of at most 4", lambda r: setattr(r, "shorts", [0] * 5)),
    ("label: a text of 10 bytes instead of at most 8", lambda r: setattr(r, "label", "ä" * 5)),
    ("plan.tags[1]: a text of 21 bytes instead", lambda r: setattr(r.plan, "tags", ["", "x" * 21])),
    ("plan.goals[1].covariance: 35 elements", lambda r: r.plan.goals[1].covariance.pop()),
    ("legs[1].signs[0]: text with a zero", lambda r: setattr(r.legs[1], "signs", ["a\0b"])),
    ("first: ubyte format requires", lambda r: setattr(r, "first", 256)),
    ("shorts: required argument is not an integer", lambda r: setattr(r, "shorts", [1.5])),
    ("flags: it is neither True nor False", lambda r: setattr(r, "flags", [2])),
    ("label: int instead of text", lambda r: setattr(r, "label", 1)),
    ("label: 'utf-8' codec can't encode", lambda r: setattr(r, "label", "\ud800")),
    ("nothing: NoneType instead of a Nothing", lambda r: setattr(r, "nothing", None)),
    ("data: object of type 'int' has no len", lambda r: setattr(r, "data", 5)),
]


def test_a_value_that_does_not_fit_is_refused_and_its_field_named(node):
    publisher = outlive.Publisher(node, "/route", Route)
    for why, change in WRONG:
        value = route()
        change(value)
        with pytest.raises(outlive.InvalidArgument) as refused:
            publisher.publish(value)
        assert f"sending route_msgs/msg/Route: {why}" in str(refused.value)
    with pytest.raises(outlive.TypeMismatch, match="is not a Route"):
        publisher.publish(Plan())


def test_bounds_are_those_of_received_messages_too():
    data = b"\0\1\0\0" + struct.pack("<iII1s3x", 0, 0, 1, b"\0") + struct.pack("<II", 0, 5)
    with pytest.raises(outlive.Corrupt, match="tags: 5 elements instead of at most 4"):
        decoded(Plan, data + bytes(200))


def test_routes_travel_bad_ones_cost_no_other_and_services_take_them(node):
    subscriber = outlive.Subscriber(node, "/route", Route)
    outlive.Publisher(node, "/route", outlive.Encoded("cdr", "route_msgs/msg/Route")).publish(b"\0\1\0\0abc")
    with pytest.raises(outlive.Corrupt, match="7 bytes are not a valid route_msgs/msg/Route .cdr.: "):
        subscriber.receive(timeout=10.0).value
    outlive.Publisher(node, "/route", Route).publish(route())
    assert subscriber.receive(timeout=10.0).value == route()
    server = outlive.Server(node, "/find", FindRequest, FindResponse)
    client = outlive.Client(node, "/find", FindRequest, FindResponse)
    asked = threading.Thread(target=lambda: answers.append(client.call(FindRequest(Goal("dock")), 60.0)))
    answers = []
    asked.start()
    request = server.receive(timeout=60.0)
    assert request.value.to.name == "dock"
    request.respond(FindResponse(route()))
    asked.join()
    assert answers[0] == FindResponse(route())
