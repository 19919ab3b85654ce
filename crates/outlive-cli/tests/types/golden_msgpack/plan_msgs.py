"""Messages of plan_msgs, made by ``outlive types import``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from . import builtin_interfaces
from . import std_msgs


@dataclass
class Goal:
    """Where to."""

    __outlive_type__: ClassVar[str] = "plan_msgs/msg/Goal"

    name: str = ""
    # 3 values.
    at: list[float] = field(default_factory=lambda: [0.5, 0.0, 0.0])
    # 36 values.
    covariance: list[float] = field(default_factory=lambda: [0.0] * 36)


@dataclass
class Nothing:
    __outlive_type__: ClassVar[str] = "plan_msgs/msg/Nothing"


@dataclass
class Plan:
    __outlive_type__: ClassVar[str] = "plan_msgs/msg/Plan"
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
