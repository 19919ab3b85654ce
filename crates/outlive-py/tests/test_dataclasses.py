"""An object of a dataclass arrives as it was sent, or is refused where it would not."""

import dataclasses
import enum
import typing
from typing import Dict, Generic, List, NamedTuple, Optional, Tuple, TypeVar, Union

import pytest

import outlive

T = TypeVar("T")


@dataclasses.dataclass
class Base:
    x: float = 0.0


@dataclasses.dataclass
class Derived(Base):
    y: float = 0.0


@dataclasses.dataclass
class Renamed(Base):
    def length(self):
        return abs(self.x)


class Bare(Base):
    pass


@dataclasses.dataclass
class Stop:
    why: str = ""


@dataclasses.dataclass
class Box(Generic[T]):
    what: T


class Span(NamedTuple):
    begin: float
    end: Optional[Base] = None


class Mode(str, enum.Enum):
    IDLE = "idle"
    BUSY = "busy"


class Flags(enum.IntFlag):
    A = 1
    B = 2


class Level(enum.IntEnum):
    LOW = 1


@dataclasses.dataclass
class Holder:
    one: Optional[Base] = None
    many: List[Base] = dataclasses.field(default_factory=list)


def test_an_object_with_fields_that_would_be_dropped_is_refused(node):
    publisher = outlive.Publisher(node, "/base", Base)
    subscriber = outlive.Subscriber(node, "/base", Base)
    with pytest.raises(outlive.TypeMismatch, match="value: expected Base without the field y"):
        publisher.publish(Derived(1.0, 2.0))
    producer = outlive.Producer(node, "/q", Base)
    consumer = outlive.Consumer(node, "/q", Base)
    with pytest.raises(outlive.TypeMismatch, match="Derived"):
        producer.send(Derived(1.0, 2.0))
    assert consumer.receive(timeout=0) is None
    holders = outlive.Publisher(node, "/holder", Holder)
    for wrong in (Holder(Derived()), Holder(None, [Base(), Derived()])):
        with pytest.raises(outlive.TypeMismatch, match=r"\.one: |\.many\[1\]: "):
            holders.publish(wrong)
    for same in (Renamed(1.0), Bare(1.0)):
        publisher.publish(same)
        assert subscriber.receive(timeout=5.0).value == Base(1.0)


AMBIGUOUS = [
    Union[Stop, Base],
    Union[Stop, Base, None],
    Union[List[Base], int],
    Union[Stop, dict],
    Union[Span, int],
    List[Union[Stop, Base]],
    Dict[str, Optional[Union[Stop, Base]]],
    Tuple[int, Union[Stop, Base]],
    Box[Base],
]


@pytest.mark.parametrize("hint", AMBIGUOUS, ids=repr)
def test_a_field_that_could_not_come_back_is_refused_as_the_port_is_opened(node, hint):
    of = dataclasses.make_dataclass("Command", [("todo", hint)])
    outer = dataclasses.make_dataclass("Outer", [("n", int), ("inner", Optional[of])])
    for cls, where in ((of, "Command.todo"), (outer, "Command.todo")):
        for port in (outlive.Publisher, outlive.Subscriber, outlive.Producer, outlive.Consumer):
            with pytest.raises(outlive.TypeMismatch, match=where) as refused:
                port(node, "/command", cls)
            assert refused.value.remedy
    assert outlive.Domain().topics() == []


COMES_BACK = [
    (Span, Span(1.0, Base(2.0))),
    (Optional[Span], None),
    (List[Span], [Span(1.0), Span(2.0, Base())]),
    (Mode, Mode.BUSY),
    (Dict[str, Mode], {"a": Mode.IDLE}),
    (Level, Level.LOW),
    (Flags, Flags.A | Flags.B),
    (Union[Stop, int], Stop("x")),
    (Union[Stop, int, str, None], 7),
    (Union[int, str], "a"),
    (Union[int, List[int]], [7]),
    (typing.Any, [7]),
]


@pytest.mark.parametrize("hint, value", COMES_BACK, ids=repr)
def test_named_tuples_and_enumerations_come_back_as_they_were(node, hint, value):
    cls = dataclasses.make_dataclass("Cls", [("field", hint)])
    publisher = outlive.Publisher(node, "/t", cls)
    subscriber = outlive.Subscriber(node, "/t", cls)
    publisher.publish(cls(value))
    got = subscriber.receive(10.0).value
    assert got == cls(value) and type(got.field) is type(value)
    if isinstance(value, list):
        assert [type(one) for one in got.field] == [type(one) for one in value]


@pytest.mark.parametrize(
    "hint, wrong, raw",
    [
        (Span, [1.0, None], [1.0]),
        (Span, (1.0,), 7),
        (Span, Span(1.0, Stop()), [1.0, 7]),
        (Span, None, {"begin": 1.0}),
        (Mode, "idler", "idler"),
        (Level, 2, 2),
    ],
)
def test_what_is_none_is_refused_or_corrupt(node, hint, wrong, raw):
    cls = dataclasses.make_dataclass("Cls", [("field", hint)])
    subscriber = outlive.Subscriber(node, "/t", cls)
    with pytest.raises(outlive.TypeMismatch, match=r"\.field"):
        outlive.Publisher(node, "/t", cls).publish(cls(wrong))
    outlive.Publisher(node, "/t", object, type_name="Cls").publish({"field": raw})
    with pytest.raises(outlive.Corrupt):
        subscriber.receive(10.0).value


def test_what_equals_a_named_tuple_or_a_member_arrives_as_that(node):
    cls = dataclasses.make_dataclass("Cls", [("span", Span), ("level", Level)])
    subscriber = outlive.Subscriber(node, "/t", cls)
    outlive.Publisher(node, "/t", cls).publish(cls((1.0, None), 1))
    got = subscriber.receive(10.0).value
    assert got == cls(Span(1.0), Level.LOW) and type(got.span) is Span and type(got.level) is Level


def test_a_dataclass_that_refers_to_itself_can_be_a_type(node):
    publisher = outlive.Publisher(node, "/tree", Tree)
    subscriber = outlive.Subscriber(node, "/tree", Tree)
    tree = Tree(1, [Tree(2)])
    publisher.publish(tree)
    assert subscriber.receive(10.0).value == tree


@dataclasses.dataclass
class Tree:
    n: int
    below: List["Tree"] = dataclasses.field(default_factory=list)
