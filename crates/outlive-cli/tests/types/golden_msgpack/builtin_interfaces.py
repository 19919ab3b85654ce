"""Messages of builtin_interfaces, made by ``outlive types import``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar


@dataclass
class Time:
    __outlive_type__: ClassVar[str] = "builtin_interfaces/msg/Time"

    sec: int = 0
    nanosec: int = 0


@dataclass
class Duration:
    __outlive_type__: ClassVar[str] = "builtin_interfaces/msg/Duration"

    sec: int = 0
    nanosec: int = 0
