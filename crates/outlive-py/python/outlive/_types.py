"""How Python names types, and their descriptions in the form that all languages share."""

import dataclasses
import typing

import numpy as np

_KINDS = {"i": "i", "u": "u", "f": "f"}


def _element(dtype):
    """Type as it is written, dimensions, fields, alignment."""
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        text, dims, fields, align = _element(base)
        return text, [*shape, *dims], fields, align
    if dtype.byteorder == ">" or (dtype.byteorder == "=" and not np.little_endian):
        raise TypeError(f"{dtype} is big-endian: use dtype.newbyteorder('<')")
    if dtype.names is not None:
        fields = []
        align, natural = 1, True
        for name in sorted(dtype.names, key=lambda n: dtype.fields[n][1]):
            inner, offset = dtype.fields[name][:2]
            part = _element(inner)
            fields.append((name, offset, part))
            align = max(align, part[3])
            natural &= offset % part[3] == 0
        if not natural or dtype.itemsize % align != 0:
            align = 1  # packed
        return f"struct:{dtype.itemsize}", [], fields, align
    if dtype.kind == "b":
        return "bool", [], [], 1
    if dtype.kind == "S":
        return "char", [dtype.itemsize], [], 1
    if dtype.kind == "V":
        return f"opaque:{dtype.itemsize}", [], [], 1
    if dtype.kind == "c":
        half = dtype.itemsize // 2
        return f"f{half * 8}", [2], [], half
    if dtype.kind in _KINDS and (dtype.kind != "f" or dtype.itemsize in (4, 8)):
        return f"{_KINDS[dtype.kind]}{dtype.itemsize * 8}", [], [], dtype.itemsize
    raise TypeError(f"{dtype} cannot be shared: use numbers, bytes (S), or structs of them")


def _lines(fields, level):
    for name, offset, (text, dims, inner, _) in fields:
        size = "".join(f"[{n}]" for n in dims)
        name = "".join(f"%{ord(c):02X}" if c <= " " or c in "%\x7f" else c for c in name)
        yield f"{' ' * level}{offset} {text}{size} {name}\n"
        yield from _lines(inner, level + 1)


def describe(dtype, shape=()):
    """The description of an array of `dtype` with a fixed shape.

    >>> print(outlive.describe([("x", "f8"), ("y", "f8")]), end="")
    outlive-type 1 align 8
    struct:16
     0 f64 x
     8 f64 y
    """
    text, dims, fields, align = _element(np.dtype(dtype))
    size = "".join(f"[{n}]" for n in (*shape, *dims))
    return f"outlive-type 1 align {align}\n{text}{size}\n" + "".join(_lines(fields, 1))


class Headed:
    """A header and any number of elements behind it, as one payload: a tuple of two arrays.

    >>> scan = outlive.Headed([("stamp_ns", "u8"), ("range_max", "f8")], "f4")
    >>> publisher = outlive.Publisher(node, "/scan", scan, type_name="robot/Scan")
    >>> subscriber = outlive.Subscriber(node, "/scan", scan, type_name="robot/Scan")
    >>> with publisher.loan(3) as (header, ranges):
    ...     header["stamp_ns"], ranges[:] = 7, 1.5
    >>> header, ranges = subscriber.receive(timeout=1.0).value
    >>> int(header["stamp_ns"]), ranges.tolist()
    (7, [1.5, 1.5, 1.5])
    """

    def __init__(self, header, element):
        self.header = np.dtype(header)
        self.element = np.dtype(element)


def resolve(of, shape, type_name):
    """What `type`, `shape` and `type_name` of a port mean: form, name, description, dtype or class,
    shape without the first dimension of any length."""
    if of is None or of is object:
        return "object", type_name or "object", "", None, ()
    if of is bytes:
        return "bytes", "u8", "", np.dtype(np.uint8), ()
    if dataclasses.is_dataclass(of):
        return "object", type_name or of.__name__, "", of, ()
    if isinstance(of, Headed):
        if type_name is None:
            raise TypeError("a header needs a type_name, the same in all languages")
        dtypes = (of.header, of.element)
        return "headed", type_name, describe(of.header), dtypes, describe(of.element)
    dtype = np.dtype(of)
    shape = () if shape is None else shape if isinstance(shape, (tuple, list)) else (shape,)
    any_length = len(shape) > 0 and shape[0] is None
    inner = tuple(int(n) for n in (shape[1:] if any_length else shape))
    text, _, fields, _ = _element(dtype)
    if type_name is None:
        if fields or text.startswith("opaque"):
            raise TypeError("a structured dtype needs a type_name, the same in all languages")
        type_name = text
    if any_length and not inner and text == "u8" and type_name == "u8":
        return "bytes", "u8", "", dtype, ()
    return "slice" if any_length else "fixed", type_name, describe(dtype, inner), dtype, inner


def build(cls, value):
    """An object of a dataclass from the dict of its fields."""
    if not dataclasses.is_dataclass(cls) or not isinstance(value, dict):
        return value
    hints = typing.get_type_hints(cls)
    known = {}
    for field in dataclasses.fields(cls):
        if field.name in value:
            known[field.name] = _build(hints.get(field.name), value[field.name])
    return cls(**known)


def _build(hint, value):
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return build(hint, value)
    if origin is list and args:
        return [_build(args[0], item) for item in value]
    if origin is tuple and args:
        kinds = args[:1] * len(value) if args[-1] is Ellipsis else args
        return tuple(_build(kind, item) for kind, item in zip(kinds, value))
    if origin is dict and len(args) == 2:
        return {key: _build(args[1], item) for key, item in value.items()}
    if origin is typing.Union:
        inner = [arg for arg in args if dataclasses.is_dataclass(arg)]
        return build(inner[0], value) if len(inner) == 1 and value is not None else value
    return value
