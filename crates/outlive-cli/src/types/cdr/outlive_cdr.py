"""ROS 2 CDR of the messages beside this file, made by ``outlive types import``.

Numbers, ``Text`` and the classes of messages are what fields are, alone or in ``Array`` and ``List``.
"""

from __future__ import annotations

import struct

from outlive import Encoded, InvalidArgument, TypeMismatch


class Wrong(Exception):
    """What is wrong with a value or bytes, behind the names of the fields that lead there."""

    def __init__(self, why):
        super().__init__(why)
        self.why, self.path = why, ""

    def __str__(self):
        return f"{self.path}: {self.why}" if self.path else self.why

    def within(self, name):
        joint = "." if self.path and not self.path.startswith("[") else ""
        self.path = name + joint + self.path
        return self


class _Writer:
    def __init__(self):
        self.out = bytearray(b"\0\1\0\0")

    def align(self, to):
        self.out += bytes(-(len(self.out) - 4) % to)

    def length(self, n):
        self.align(4)
        self.out += struct.pack("<I", n)


class _Reader:
    def __init__(self, data):
        if len(data) < 4:
            raise Wrong("it has no header")
        if data[1] > 1:
            raise Wrong(f"it is of form {data[1]}, which is not plain CDR")
        self.data, self.at, self.order = data[4:], 0, "<" if data[1] else ">"

    def take(self, align, size):
        begin = self.at + -self.at % align
        if size > len(self.data) - begin:
            raise Wrong(f"it ends before {size} bytes at {begin}")
        self.at = begin + size
        return self.data[begin : self.at]

    def length(self):
        n = struct.unpack(self.order + "I", self.take(4, 4))[0]
        # Every element has a byte at least.
        if n > len(self.data) - self.at:
            raise Wrong(f"it ends before {n} elements")
        return n


class Number:
    """A number or a truth value, by its letter in ``struct``."""

    def __init__(self, code):
        self.code, self.size = code, struct.calcsize("=" + code)

    def write(self, to, value):
        self.write_all(to, [value])

    def read(self, source):
        return self.read_all(source, 1)[0]

    def write_all(self, to, values):
        if self.code == "B" and isinstance(values, (bytes, bytearray, memoryview)):
            to.out += bytes(values)
        elif len(values) > 0:
            if self.code == "?" and not all(v in (False, True) for v in values):
                raise Wrong("it is neither True nor False")
            to.align(self.size)
            try:
                to.out += struct.pack(f"<{len(values)}{self.code}", *values)
            except (struct.error, OverflowError) as e:
                raise Wrong(str(e)) from e

    def read_all(self, source, count):
        if count == 0:
            return b"" if self.code == "B" else []
        data = source.take(self.size, self.size * count)
        if self.code == "B":
            return bytes(data)
        if self.code == "?" and max(data) > 1:
            raise Wrong(f"{max(data)} instead of a truth value")
        return list(struct.unpack(f"{source.order}{count}{self.code}", data))


class Text:
    """Text, up to a number of bytes."""

    def __init__(self, most=None):
        self.most = most

    def write(self, to, value):
        if not isinstance(value, str):
            raise Wrong(f"{type(value).__name__} instead of text")
        try:
            data = value.encode()
        except UnicodeEncodeError as e:
            raise Wrong(str(e)) from e
        if 0 in data:
            raise Wrong("text with a zero in it")
        self._check(data)
        to.length(len(data) + 1)
        to.out += data + b"\0"

    def read(self, source):
        data = bytes(source.take(1, source.length()))
        data = data[:-1] if data.endswith(b"\0") else data
        self._check(data)
        try:
            return data.decode()
        except UnicodeDecodeError as e:
            raise Wrong(str(e)) from e

    def _check(self, data):
        if self.most is not None and len(data) > self.most:
            raise Wrong(f"a text of {len(data)} bytes instead of at most {self.most}")


class Array:
    """A fixed number of values."""

    def __init__(self, element, count):
        self.element, self.count = element, count

    def write(self, to, values):
        if len(values) != self.count:
            raise Wrong(f"{len(values)} elements instead of {self.count}")
        _write_all(self.element, to, values)

    def read(self, source):
        return _read_all(self.element, source, self.count)


class List:
    """Any number of values, or up to a maximum."""

    def __init__(self, element, most=None):
        self.element, self.most = element, most

    def write(self, to, values):
        self._check(len(values))
        to.length(len(values))
        _write_all(self.element, to, values)

    def read(self, source):
        n = source.length()
        self._check(n)
        return _read_all(self.element, source, n)

    def _check(self, n):
        if self.most is not None and n > self.most:
            raise Wrong(f"{n} elements instead of at most {self.most}")


def _write(kind, to, value, name):
    try:
        if isinstance(kind, type):
            _write_message(kind, to, value)
        else:
            kind.write(to, value)
    except Wrong as e:
        raise e.within(name)
    except TypeError as e:
        raise Wrong(str(e)).within(name) from e


def _read(kind, source, name):
    try:
        return _read_message(kind, source) if isinstance(kind, type) else kind.read(source)
    except Wrong as e:
        raise e.within(name)


def _write_all(kind, to, values):
    if isinstance(kind, Number):
        return kind.write_all(to, values)
    for i, value in enumerate(values):
        _write(kind, to, value, f"[{i}]")


def _read_all(kind, source, count):
    if isinstance(kind, Number):
        return kind.read_all(source, count)
    return [_read(kind, source, f"[{i}]") for i in range(count)]


def _write_message(cls, to, value):
    if not isinstance(value, cls):
        raise Wrong(f"{type(value).__name__} instead of a {cls.__name__}")
    for name, kind in cls.__outlive_cdr__.items():
        _write(kind, to, getattr(value, name), name)


def _read_message(cls, source):
    return cls(**{name: _read(kind, source, name) for name, kind in cls.__outlive_cdr__.items()})


class Message:
    """A message that travels as CDR: its class is the type of ports."""

    @classmethod
    def __outlive_encoded__(cls):
        name = cls.__outlive_type__

        def encode(value):
            if not isinstance(value, cls):
                raise TypeMismatch(f"{value!r} is not a {cls.__name__}; send one")
            to = _Writer()
            try:
                _write_message(cls, to, value)
            except Wrong as e:
                remedy = "correct the value"
                raise InvalidArgument(f"sending {name}: {e}; {remedy}", object=name, remedy=remedy) from e
            return bytes(to.out)

        def decode(payload):
            source = _Reader(payload)
            value = _read_message(cls, source)
            left = len(source.data) - source.at
            # Some writers fill up to a multiple of 4.
            if left > 3:
                raise Wrong(f"{left} bytes are left")
            return value

        return Encoded("cdr", name, cls.__outlive_schema__, encode=encode, decode=decode)
