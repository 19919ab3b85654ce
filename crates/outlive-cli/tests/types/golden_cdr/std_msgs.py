"""Messages of std_msgs, made by ``outlive types import``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from . import builtin_interfaces
from . import outlive_cdr


@dataclass
class Header(outlive_cdr.Message):
    __outlive_type__: ClassVar[str] = "std_msgs/msg/Header"
    __outlive_schema__: ClassVar[str] = (
        "builtin_interfaces/Time stamp\n"
        "string frame_id\n"
        "================================================================================\n"
        "MSG: builtin_interfaces/Time\n"
        "int32 sec\n"
        "uint32 nanosec\n"
    )
    __outlive_cdr__: ClassVar[dict] = {
        "stamp": builtin_interfaces.Time,
        "frame_id": outlive_cdr.Text(),
    }

    stamp: builtin_interfaces.Time = field(default_factory=lambda: builtin_interfaces.Time())
    frame_id: str = ""
