"""Messages of route_msgs, made by ``outlive types import``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from . import plan_msgs
from . import std_msgs
from . import outlive_cdr


@dataclass
class Leg(outlive_cdr.Message):
    __outlive_type__: ClassVar[str] = "route_msgs/msg/Leg"
    __outlive_schema__: ClassVar[str] = (
        "uint8 LEFT=1\n"
        "uint8 side\n"
        "float64 metres\n"
        "string[] signs\n"
    )
    __outlive_cdr__: ClassVar[dict] = {
        "side": outlive_cdr.Number("B"),
        "metres": outlive_cdr.Number("d"),
        "signs": outlive_cdr.List(outlive_cdr.Text()),
    }
    LEFT: ClassVar[int] = 1

    side: int = 0
    metres: float = 0.0
    signs: list[str] = field(default_factory=list)


@dataclass
class Route(outlive_cdr.Message):
    """All that CDR can have."""

    __outlive_type__: ClassVar[str] = "route_msgs/msg/Route"
    __outlive_schema__: ClassVar[str] = (
        "string GREETING=\"say \\\"hi\\\" # loud\"\n"
        "float32 PACE=1.5\n"
        "std_msgs/Header header\n"
        "uint8 first 7\n"
        "plan_msgs/Plan plan\n"
        "plan_msgs/Nothing nothing\n"
        "Leg[<=3] legs\n"
        "string<=8 label \"yard\"\n"
        "string[2] ends [\"a\", \"b\"]\n"
        "string[] words\n"
        "bool[] flags\n"
        "int16[<=4] shorts [-1, 2]\n"
        "float64[] numbers\n"
        "uint8[40] key\n"
        "uint8[] data\n"
        "float32[3] match\n"
        "bool type true\n"
        "plan_msgs/Nothing[] nothings\n"
        "uint64 last 18446744073709551615\n"
        "================================================================================\n"
        "MSG: builtin_interfaces/Time\n"
        "int32 sec\n"
        "uint32 nanosec\n"
        "================================================================================\n"
        "MSG: std_msgs/Header\n"
        "builtin_interfaces/Time stamp\n"
        "string frame_id\n"
        "================================================================================\n"
        "MSG: plan_msgs/Goal\n"
        "string name\n"
        "float64[3] at [0.5, 0.0, 0.0]\n"
        "float64[36] covariance\n"
        "================================================================================\n"
        "MSG: builtin_interfaces/Duration\n"
        "int32 sec\n"
        "uint32 nanosec\n"
        "================================================================================\n"
        "MSG: plan_msgs/Plan\n"
        "uint8 FAST=2\n"
        "std_msgs/Header header\n"
        "Goal[] goals\n"
        "string<=20[<=4] tags\n"
        "bool urgent\n"
        "int64 number -1\n"
        "uint8[] digest\n"
        "uint8[4] key\n"
        "builtin_interfaces/Duration[2] times\n"
        "================================================================================\n"
        "MSG: plan_msgs/Nothing\n"
        "================================================================================\n"
        "MSG: route_msgs/Leg\n"
        "uint8 LEFT=1\n"
        "uint8 side\n"
        "float64 metres\n"
        "string[] signs\n"
    )
    __outlive_cdr__: ClassVar[dict] = {
        "header": std_msgs.Header,
        "first": outlive_cdr.Number("B"),
        "plan": plan_msgs.Plan,
        "nothing": plan_msgs.Nothing,
        "legs": outlive_cdr.List(Leg, 3),
        "label": outlive_cdr.Text(8),
        "ends": outlive_cdr.Array(outlive_cdr.Text(), 2),
        "words": outlive_cdr.List(outlive_cdr.Text()),
        "flags": outlive_cdr.List(outlive_cdr.Number("?")),
        "shorts": outlive_cdr.List(outlive_cdr.Number("h"), 4),
        "numbers": outlive_cdr.List(outlive_cdr.Number("d")),
        "key": outlive_cdr.Array(outlive_cdr.Number("B"), 40),
        "data": outlive_cdr.List(outlive_cdr.Number("B")),
        "match": outlive_cdr.Array(outlive_cdr.Number("f"), 3),
        "type": outlive_cdr.Number("?"),
        "nothings": outlive_cdr.List(plan_msgs.Nothing),
        "last": outlive_cdr.Number("Q"),
    }
    GREETING: ClassVar[str] = "say \"hi\" # loud"
    PACE: ClassVar[float] = 1.5

    header: std_msgs.Header = field(default_factory=lambda: std_msgs.Header())
    first: int = 7
    plan: plan_msgs.Plan = field(default_factory=lambda: plan_msgs.Plan())
    nothing: plan_msgs.Nothing = field(default_factory=lambda: plan_msgs.Nothing())
    # At most 3 values.
    legs: list[Leg] = field(default_factory=list)
    # Of the yard.
    # At most 8 bytes.
    label: str = "yard"
    # 2 values.
    ends: list[str] = field(default_factory=lambda: ["a", "b"])
    words: list[str] = field(default_factory=list)
    flags: list[bool] = field(default_factory=list)
    # At most 4 values.
    shorts: list[int] = field(default_factory=lambda: [-1, 2])
    numbers: list[float] = field(default_factory=list)
    # 40 values.
    key: bytes = bytes(40)
    data: bytes = b""
    # 3 values.
    match: list[float] = field(default_factory=lambda: [0.0] * 3)
    type: bool = True
    nothings: list[plan_msgs.Nothing] = field(default_factory=list)
    last: int = 18446744073709551615


@dataclass
class FindRequest(outlive_cdr.Message):
    __outlive_type__: ClassVar[str] = "route_msgs/srv/Find_Request"
    __outlive_schema__: ClassVar[str] = (
        "plan_msgs/Goal to\n"
        "================================================================================\n"
        "MSG: plan_msgs/Goal\n"
        "string name\n"
        "float64[3] at [0.5, 0.0, 0.0]\n"
        "float64[36] covariance\n"
    )
    __outlive_cdr__: ClassVar[dict] = {
        "to": plan_msgs.Goal,
    }

    to: plan_msgs.Goal = field(default_factory=lambda: plan_msgs.Goal())


@dataclass
class FindResponse(outlive_cdr.Message):
    __outlive_type__: ClassVar[str] = "route_msgs/srv/Find_Response"
    __outlive_schema__: ClassVar[str] = (
        "route_msgs/Route route\n"
        "================================================================================\n"
        "MSG: builtin_interfaces/Time\n"
        "int32 sec\n"
        "uint32 nanosec\n"
        "================================================================================\n"
        "MSG: std_msgs/Header\n"
        "builtin_interfaces/Time stamp\n"
        "string frame_id\n"
        "================================================================================\n"
        "MSG: plan_msgs/Goal\n"
        "string name\n"
        "float64[3] at [0.5, 0.0, 0.0]\n"
        "float64[36] covariance\n"
        "================================================================================\n"
        "MSG: builtin_interfaces/Duration\n"
        "int32 sec\n"
        "uint32 nanosec\n"
        "================================================================================\n"
        "MSG: plan_msgs/Plan\n"
        "uint8 FAST=2\n"
        "std_msgs/Header header\n"
        "Goal[] goals\n"
        "string<=20[<=4] tags\n"
        "bool urgent\n"
        "int64 number -1\n"
        "uint8[] digest\n"
        "uint8[4] key\n"
        "builtin_interfaces/Duration[2] times\n"
        "================================================================================\n"
        "MSG: plan_msgs/Nothing\n"
        "================================================================================\n"
        "MSG: route_msgs/Leg\n"
        "uint8 LEFT=1\n"
        "uint8 side\n"
        "float64 metres\n"
        "string[] signs\n"
        "================================================================================\n"
        "MSG: route_msgs/Route\n"
        "string GREETING=\"say \\\"hi\\\" # loud\"\n"
        "float32 PACE=1.5\n"
        "std_msgs/Header header\n"
        "uint8 first 7\n"
        "plan_msgs/Plan plan\n"
        "plan_msgs/Nothing nothing\n"
        "Leg[<=3] legs\n"
        "string<=8 label \"yard\"\n"
        "string[2] ends [\"a\", \"b\"]\n"
        "string[] words\n"
        "bool[] flags\n"
        "int16[<=4] shorts [-1, 2]\n"
        "float64[] numbers\n"
        "uint8[40] key\n"
        "uint8[] data\n"
        "float32[3] match\n"
        "bool type true\n"
        "plan_msgs/Nothing[] nothings\n"
        "uint64 last 18446744073709551615\n"
    )
    __outlive_cdr__: ClassVar[dict] = {
        "route": Route,
    }

    route: Route = field(default_factory=lambda: Route())
