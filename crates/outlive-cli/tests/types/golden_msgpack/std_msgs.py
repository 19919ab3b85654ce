"""Messages of std_msgs, made by ``outlive types import``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from . import builtin_interfaces


@dataclass
class Header:
    __outlive_type__: ClassVar[str] = "std_msgs/msg/Header"

    stamp: builtin_interfaces.Time = field(default_factory=lambda: builtin_interfaces.Time())
    frame_id: str = ""
