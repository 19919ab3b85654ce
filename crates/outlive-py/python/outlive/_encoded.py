"""Values in encodings that others define, with their schema: Protocol Buffers, JSON, Arrow, ROS."""

import json
import math
import typing

from ._errors import Corrupt, InvalidArgument, TypeMismatch, _refusal

_T = typing.TypeVar("_T")


class Encoded(typing.Generic[_T]):
    """A type in an encoding that others define: ``"protobuf"``, ``"json"``, ``"cdr"``, ``"flatbuffer"``
    or ``"arrow"``. `name` and `schema` are what their world has; all members must agree on them.

    `encode` makes bytes of a value. `decode` gets a ``memoryview`` of them, in shared memory where
    the value comes from a sample, which stays for as long as the view. Without these, values are bytes;
    of JSON they are what the module ``json`` knows, and `schema` may be a dict.

    >>> goal = outlive.Encoded("json", "robot/Goal", {"type": "object"})
    >>> subscriber = outlive.Subscriber(node, "/goal", goal)
    >>> outlive.Publisher(node, "/goal", goal).publish({"x": 1.5})
    0
    >>> subscriber.receive(timeout=1.0).value
    {'x': 1.5}
    """

    def __init__(self, encoding, name, schema=b"", *, encode=None, decode=None):
        if isinstance(schema, dict):
            schema = json.dumps(schema)
        self.encoding, self.name = encoding, name
        self.schema = schema.encode() if isinstance(schema, str) else bytes(schema)
        if encoding == "json" and encode is None and decode is None:
            encode, decode = _dump, _load
        self._to_bytes, self._from_bytes = encode or bytes, decode or bytes

    def encode(self, value):
        """The bytes of a value."""
        return self._to_bytes(value)

    def decode(self, payload):
        """The value of bytes, which may come from anybody."""
        payload = memoryview(payload).toreadonly()
        try:
            return self._from_bytes(payload)
        except Exception as e:
            what = f"{len(payload)} bytes are not a valid {self.name} ({self.encoding}): {e}"
            remedy = "correct the program that sent them"
            raise _refusal(Corrupt, what, self.name, remedy) from e


def _dump(value):
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    except ValueError as e:
        raise _refused(e) from e


def _refused(why):
    remedy = "JSON has no nan, no infinity and no value in itself: send null, or another encoding"
    return _refusal(InvalidArgument, f"sending JSON: {why}", "json", remedy)


def _is_finite(value):
    """Whether all numbers in what pydantic dumps are: its JSON has null for others."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple, set, frozenset)):
        return True
    return all(map(_is_finite, value))


def _load(payload):
    return json.loads(bytes(payload))


def _must_be(cls, value):
    if not isinstance(value, cls):
        what, name = f"sending {value!r}: type mismatch", cls.__name__
        raise _refusal(TypeMismatch, what, name, f"send an object of {name}")


def _file_set(file, done):
    """A FileDescriptorSet with `file` and all that it imports, in the form of the wire."""
    if file.name in done:
        return b""
    done.add(file.name)
    needs = b"".join(_file_set(needed, done) for needed in file.dependencies)
    proto, length = file.serialized_pb, b""
    left = len(proto)
    while left >= 0x80:
        length += bytes([left & 0x7F | 0x80])
        left >>= 7
    return needs + b"\x0a" + length + bytes([left]) + proto


def _protobuf(cls):
    descriptor = cls.DESCRIPTOR

    def encode(value):
        _must_be(cls, value)
        return value.SerializeToString()

    def decode(payload):
        return cls.FromString(bytes(payload))

    schema = _file_set(descriptor.file, set())
    return Encoded("protobuf", descriptor.full_name, schema, encode=encode, decode=decode)


def _pydantic(cls, name):
    def encode(value):
        _must_be(cls, value)
        in_words = getattr(value, "model_config", {}).get("ser_json_inf_nan") == "strings"
        if not in_words and not _is_finite(value.model_dump()):
            raise _refused("a number is not finite")
        return value.model_dump_json().encode()

    def decode(payload):
        return cls.model_validate_json(bytes(payload))

    name = name or getattr(cls, "__outlive_type__", cls.__name__)
    return Encoded("json", name, cls.model_json_schema(), encode=encode, decode=decode)


def _arrow(schema, name):
    import pyarrow as pa

    name = name or "arrow"

    def encode(value):
        if not isinstance(value, (pa.Table, pa.RecordBatch)):
            what = f"sending {name}: invalid argument; it is a {type(value).__name__}"
            raise _refusal(InvalidArgument, what, name, "send a Table or a RecordBatch")
        if value.schema != schema:
            what = f"sending {name}: type mismatch; its schema is {value.schema}"
            raise _refusal(TypeMismatch, what, name, f"cast it to that of the topic: {schema}")
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, schema) as writer:
            writer.write(value)
        return sink.getvalue()

    def decode(payload):
        # In place: the columns are views of shared memory. What offsets and lengths in them say is
        # a claim of the sender, which Arrow believes unless told to look.
        table = pa.ipc.open_stream(pa.py_buffer(payload)).read_all()
        table.validate(full=True)
        return table

    return Encoded("arrow", name, schema.serialize(), encode=encode, decode=decode)


def find(of, name):
    """The encoding that a type of another library means: classes of Protocol Buffers and pydantic,
    schemas of Arrow; classes that ``outlive types import --cdr`` wrote. None if it means none."""
    if isinstance(of, Encoded):
        found = of
    elif isinstance(of, type) and hasattr(of, "__outlive_encoded__"):
        found = of.__outlive_encoded__()
    elif isinstance(of, type) and hasattr(of, "DESCRIPTOR") and hasattr(of, "FromString"):
        found = _protobuf(of)
    elif isinstance(of, type) and hasattr(of, "model_json_schema"):
        return _pydantic(of, name)
    elif type(of).__module__.startswith("pyarrow") and hasattr(of, "serialize"):
        return _arrow(of, name)
    else:
        return None
    if name is not None and name != found.name:
        what = f"the type_name {name!r}: invalid argument; its name is {found.name}"
        raise _refusal(InvalidArgument, what, name, "leave type_name out")
    return found
