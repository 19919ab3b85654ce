"""Messages of plan_msgs, made by ``outlive types import``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from . import builtin_interfaces
from . import std_msgs
from . import outlive_cdr


@dataclass
class Goal(outlive_cdr.Message):
    """Where to."""

    __outlive_type__: ClassVar[str] = "plan_msgs/msg/Goal"
    __outlive_schema__: ClassVar[str] = (
        "string name\n"
        "float64[3] at [0.5, 0.0, 0.0]\n"
        "float64[36] covariance\n"
    )
    __outlive_cdr__: ClassVar[dict] = {
        "name": outlive_cdr.Text(),
        "at": outlive_cdr.Array(outlive_cdr.Number("d"), 3),
        "covariance": outlive_cdr.Array(outlive_cdr.Number("d"), 36),
    }

    name: str = ""
    # 3 values.
    at: list[float] = field(default_factory=lambda: [0.5, 0.0, 0.0])
    # 36 values.
    covariance: list[float] = field(default_factory=lambda: [0.0] * 36)


@dataclass
class Nothing(outlive_cdr.Message):
    __outlive_type__: ClassVar[str] = "plan_msgs/msg/Nothing"
    __outlive_schema__: ClassVar[str] = (
        "uint8 structure_needs_at_least_one_member\n"
    )
    __outlive_cdr__: ClassVar[dict] = {
        "structure_needs_at_least_one_member": outlive_cdr.Number("B"),
    }

    structure_needs_at_least_one_member: int = 0


@dataclass
class Plan(outlive_cdr.Message):
    __outlive_type__: ClassVar[str] = "plan_msgs/msg/Plan"
    __outlive_schema__: ClassVar[str] = (
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
    )
    __outlive_cdr__: ClassVar[dict] = {
        "header": std_msgs.Header,
        "goals": outlive_cdr.List(Goal),
        "tags": outlive_cdr.List(outlive_cdr.Text(20), 4),
        "urgent": outlive_cdr.Number("?"),
        "number": outlive_cdr.Number("q"),
        "digest": outlive_cdr.List(outlive_cdr.Number("B")),
        "key": outlive_cdr.Array(outlive_cdr.Number("B"), 4),
        "times": outlive_cdr.Array(builtin_interfaces.Duration, 2),
    }
    FAST: ClassVar[int] = 2

    header: std_msgs.Header = field(default_factory=lambda: std_msgs.Header())
    goals: list[Goal] = field(default_factory=list)
    # At most 4 values.
    # At most 20 bytes.
    tags: list[str] = field(default_factory=list)
    urgent: bool = False
    number: int = -1
    digest: bytes = b""
    # 4 values.
    key: bytes = bytes(4)
    # 2 values.
    times: list[builtin_interfaces.Duration] = field(default_factory=lambda: [builtin_interfaces.Duration() for _ in range(2)])
