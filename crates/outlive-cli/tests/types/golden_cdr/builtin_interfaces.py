"""Messages of builtin_interfaces, made by ``outlive types import``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from . import outlive_cdr


@dataclass
class Time(outlive_cdr.Message):
    __outlive_type__: ClassVar[str] = "builtin_interfaces/msg/Time"
    __outlive_schema__: ClassVar[str] = (
        "int32 sec\n"
        "uint32 nanosec\n"
    )
    __outlive_cdr__: ClassVar[dict] = {
        "sec": outlive_cdr.Number("i"),
        "nanosec": outlive_cdr.Number("I"),
    }

    sec: int = 0
    nanosec: int = 0


@dataclass
class Duration(outlive_cdr.Message):
    __outlive_type__: ClassVar[str] = "builtin_interfaces/msg/Duration"
    __outlive_schema__: ClassVar[str] = (
        "int32 sec\n"
        "uint32 nanosec\n"
    )
    __outlive_cdr__: ClassVar[dict] = {
        "sec": outlive_cdr.Number("i"),
        "nanosec": outlive_cdr.Number("I"),
    }

    sec: int = 0
    nanosec: int = 0
