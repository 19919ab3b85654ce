"""How Python names types, and their descriptions in the form that all languages share."""

import collections.abc
import dataclasses
import enum
import math
import operator
import types
import typing

import numpy as np

from . import _encoded
from ._errors import InvalidArgument, TypeMismatch, _refusal

_KINDS = {"i": "i", "u": "u", "f": "f"}
_DIMS_MAX, _BYTES_MAX = 8, 1 << 40
_DICTS = (collections.abc.Mapping, collections.abc.MutableMapping)
_READ_AS = {
    **{kind: kind for kind in (list, tuple, dict)},
    **{kind: list for kind in (collections.abc.Sequence, collections.abc.MutableSequence)},
    **{kind: dict for kind in _DICTS},
}
_SENT = {list: (list, tuple), tuple: (list, tuple), dict: dict}
"""What is sent for each of them."""


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
    if dtype.kind == "U":
        raise TypeError(f"{dtype} cannot be shared: text is bytes of a fixed length (S), or in an object")
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


class ReadyMade:
    """A class that names a type: of `dtype`, or of `header_dtype` and `element_dtype`. See `msg`."""


def _no_shape(shape, of):
    if shape is not None:
        what = f"the shape {shape!r}: invalid argument; {of} have none"
        raise _refusal(InvalidArgument, what, repr(shape), "leave shape out")


def _dimension(n, shape):
    try:
        n = operator.index(n)
    except TypeError:
        n = 0
    if n < 1:
        rule = "give whole numbers from 1 on, and None as the first for any length"
        what = f"the shape {shape!r}: invalid argument"
        raise _refusal(InvalidArgument, what, repr(shape), rule)
    return n


def resolve(of, shape, type_name):
    """What `type`, `shape` and `type_name` of a port mean: form, name, description, dtype or class,
    shape without the first dimension of any length. Of headers: dtypes, the elements' description,
    and the class of the values, if there is one. Of third-party encodings: the object that encodes and
    decodes, the encoding, the schema."""
    of_class = None
    encoded = _encoded.find(of, type_name)
    if encoded is not None:
        _no_shape(shape, "values in third-party encodings")
        return "encoded", encoded.name, "", encoded, encoded.encoding, encoded.schema
    if isinstance(of, type) and issubclass(of, ReadyMade):
        type_name = type_name or of.type_name
        if hasattr(of, "dtype"):
            of = of.dtype
        else:
            of, of_class = Headed(of.header_dtype, of.element_dtype), of
    if of is None or of is object:
        _no_shape(shape, "objects")
        return "object", type_name or "object", "", None, ()
    if of is bytes:
        _no_shape(shape, "bytes, which have any length,")
        return "bytes", "u8", "", np.dtype(np.uint8), ()
    if isinstance(of, type) and dataclasses.is_dataclass(of):
        _no_shape(shape, "objects")
        type_name = type_name or getattr(of, "__outlive_type__", of.__name__)
        _must_come_back(of, type_name, set())
        return "object", type_name, "", of, ()
    if isinstance(of, Headed):
        _no_shape(shape, "a header and its elements")
        if type_name is None:
            raise TypeError("a header needs a type_name, the same in all languages")
        dtypes = (of.header, of.element)
        return "headed", type_name, describe(of.header), dtypes, describe(of.element), of_class
    try:
        dtype = np.dtype(of)
    except TypeError as e:
        known = "a NumPy dtype, bytes, a dataclass (the class, not an object), object, Headed, Encoded"
        raise _refusal(TypeMismatch, f"{of!r} names no type", repr(of), f"use {known}") from e
    if isinstance(of, type) and dtype.kind in "OU":
        fixed = "bytes of a fixed length, as 'S32'" if dtype.kind == "U" else "a dataclass"
        raise TypeError(f"{of.__name__} cannot be shared: use object, as MessagePack, or {fixed}")
    shape = () if shape is None else shape if isinstance(shape, (tuple, list)) else (shape,)
    any_length = len(shape) > 0 and shape[0] is None
    inner = tuple(_dimension(n, shape) for n in (shape[1:] if any_length else shape))
    text, dims, fields, _ = _element(dtype)
    if len(inner) + len(dims) > _DIMS_MAX or math.prod(inner) * dtype.itemsize > _BYTES_MAX:
        what = f"the shape {shape!r}: invalid argument"
        limits = "a message has 8 dimensions and 1 TiB at most"
        raise _refusal(InvalidArgument, what, repr(shape), limits)
    if type_name is None:
        if fields or text.startswith("opaque"):
            raise TypeError("a structured dtype needs a type_name, the same in all languages")
        type_name = text
    return "slice" if any_length else "fixed", type_name, describe(dtype, inner), dtype, inner


def _hints(cls):
    """The types of its fields; kept at the class, which they may refer to."""
    hints = cls.__dict__.get("__outlive_hints__")
    if hints is None:
        hints = typing.get_type_hints(cls)
        try:
            cls.__outlive_hints__ = hints
        except (AttributeError, TypeError):
            pass
    return hints


def _must_come_back(cls, name, seen):
    """Raises unless a reader can tell what the fields of a dataclass or named tuple were."""
    if cls in seen:
        return
    seen.add(cls)
    try:
        hints = _hints(cls)
    except NameError:
        return  # of a class that is yet to come
    for field in _field_names(cls):
        for inner in _parts(hints.get(field)):
            if _is_record(inner):
                _must_come_back(inner, name, seen)
                continue
            remedy = _why_not(inner)
            if remedy is not None:
                what = f"opening {name}: type mismatch; {cls.__name__}.{field}: {inner} {remedy}"
                raise TypeMismatch(what, object=name, remedy=remedy)


def _parts(hint):
    """A type and those in it."""
    yield hint
    for arg in typing.get_args(hint):
        yield from _parts(arg)


def _why_not(hint):
    """Why values of a type do not come back as they were, and what to do."""
    if _is_record(typing.get_origin(hint)):
        return "has fields of any type: declare a dataclass of its own"
    if not _is_union(hint) or _beside_none(hint) is not None:
        return None
    args = [arg for arg in typing.get_args(hint) if arg is not type(None)]
    records = [arg for arg in args if any(map(_is_record, _parts(arg)))]
    if len(records) > 1:
        return "says not which of them was sent: use a dataclass with an optional field for each"
    dicts = [arg for arg in args if (typing.get_origin(arg) or arg) in (dict, *_DICTS)]
    if records and (not dataclasses.is_dataclass(records[0]) or dicts):
        return f"says not whether a {_name(records[0])} was sent: use a field for each"
    return None


def _name(hint):
    return getattr(hint, "__name__", str(hint))


def _is_record(hint):
    return isinstance(hint, type) and (dataclasses.is_dataclass(hint) or _is_named_tuple(hint))


def _is_named_tuple(hint):
    return isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields")


def _further_fields(cls, value):
    known = _field_names(cls)
    return [field.name for field in dataclasses.fields(value) if field.name not in known]


def _field_names(cls):
    return cls._fields if _is_named_tuple(cls) else [field.name for field in dataclasses.fields(cls)]


def must_be(cls, value, name):
    """Raises unless `value` is an object of the dataclass `cls`, and so are those in it."""
    found = _strange(cls, value, "")
    if found is not None:
        where, wanted, remedy = found
        what = f"sending {name}: type mismatch; {where or 'value'}: expected {wanted}"
        raise _refusal(TypeMismatch, what, name, remedy)


def _strange(hint, value, where):
    """Where in `value` something is that a reader could not make into what it expects, what that
    is, and the remedy."""
    if _is_plain(hint):
        return None
    one, (made, args) = _beside_none(hint), _container(hint, value)
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, hint):
            return where, hint.__name__, f"send an object of {hint.__name__}"
        lost = () if type(value) is hint else _further_fields(hint, value)
        if lost:
            what = f"{hint.__name__} without the field {lost[0]}"
            return where, what, f"send an object of {hint.__name__}, not of {type(value).__name__}"
        fields = _hints(hint)
        items = ((fields.get(f.name), getattr(value, f.name), f".{f.name}")
                 for f in dataclasses.fields(hint))
    elif one is not None:
        return None if value is None else _strange(one, value, where)
    elif _is_enum(hint):
        return None if _is_member(hint, value) else (where, hint.__name__, "send a member of it")
    elif _is_named_tuple(hint):
        if not isinstance(value, tuple) or len(value) != len(hint._fields):
            return where, hint.__name__, f"send a {hint.__name__}"
        fields = _hints(hint)
        items = ((fields.get(n), item, f".{n}") for n, item in zip(hint._fields, value))
    elif made is None:
        # Which of several is meant, a reader cannot know either: it gets the fields.
        return None
    elif not isinstance(value, _SENT[made]):
        return where, made.__name__, f"send a {made.__name__}"
    elif made is dict:
        items = ((args[1], item, f"[{key!r}]") for key, item in value.items()) if args else ()
    else:
        kinds = _kinds(made, args, value)
        if len(kinds) != len(value):
            return where, f"tuple of {len(kinds)}", f"send a tuple of {len(kinds)}"
        items = ((k, item, f"[{i}]") for i, (k, item) in enumerate(zip(kinds, value)))
    for kind, item, step in items:
        found = _strange(kind, item, where + step)
        if found is not None:
            return found
    return None


def _is_plain(hint):
    """Whether it is a class such as float, of whose values nothing is looked at; of most elements."""
    return type(hint) is type and hint not in _READ_AS and not _is_record(hint)


def _is_member(hint, value):
    try:
        return hint(value) == value
    except ValueError:
        return False


def _is_enum(hint):
    return isinstance(hint, type) and issubclass(hint, enum.Enum)


def _container(hint, value):
    """What the values of a type of lists, tuples or dicts are read as, and its arguments; None for
    other types, and for text, which is a sequence, too."""
    origin, args = typing.get_origin(hint) or hint, typing.get_args(hint)
    made = _READ_AS.get(origin) if isinstance(origin, type) else None
    if origin is collections.abc.Sequence and isinstance(value, (str, bytes)):
        made = list if any(dataclasses.is_dataclass(arg) for arg in args) else None
    return made, args


def _kinds(made, args, value):
    """The types of the elements of a list or tuple."""
    if not args:
        return (None,) * len(value)
    return args[:1] * len(value) if made is list or args[-1] is Ellipsis else args


def _beside_none(hint):
    """The type that a union has beside None, if it is one."""
    args = typing.get_args(hint) if _is_union(hint) else ()
    others = [arg for arg in args if arg is not type(None)]
    return others[0] if len(others) == 1 and len(args) == 2 else None


def _is_union(hint):
    return typing.get_origin(hint) in (typing.Union, getattr(types, "UnionType", typing.Union))


def build(cls, value):
    """An object of a dataclass from the dict of its fields. ValueError or TypeError: it is none."""
    if not isinstance(value, dict):
        raise ValueError(f"expected {cls.__name__}, got {type(value).__name__}")
    hints = _hints(cls)
    known, others = {}, {}
    for field in dataclasses.fields(cls):
        if field.name in value:
            to = known if field.init else others
            to[field.name] = _build(hints.get(field.name), value[field.name])
    made = cls(**known)
    for name, item in others.items():
        object.__setattr__(made, name, item)  # of a frozen one, too
    return made


def _build(hint, value):
    if _is_plain(hint):
        return value
    one, (made, args) = _beside_none(hint), _container(hint, value)
    if dataclasses.is_dataclass(hint):
        return build(hint, value)
    if _is_enum(hint):
        return hint(value)
    if _is_named_tuple(hint):
        return _named_tuple(hint, value)
    if one is not None:
        return None if value is None else _build(one, value)
    if made is not None:
        return _make(made, args, value)
    if _is_union(hint) and isinstance(value, dict):
        # Beside others it is the dataclass, if it has fields.
        inner = [arg for arg in typing.get_args(hint) if dataclasses.is_dataclass(arg)]
        return build(inner[0], value) if len(inner) == 1 else value
    return value


def _named_tuple(cls, value):
    """One from the list that came."""
    if not isinstance(value, (list, tuple)) or len(value) != len(cls._fields):
        raise ValueError(f"expected {cls.__name__} of {len(cls._fields)}, got {value!r:.60}")
    hints = _hints(cls)
    return cls(*(_build(hints.get(name), item) for name, item in zip(cls._fields, value)))


def _make(made, args, value):
    """A list, tuple or dict from what came."""
    if not isinstance(value, _SENT[made]):
        raise ValueError(f"expected {made.__name__}, got {type(value).__name__}")
    if made is dict:
        return {key: _build(args[1], item) for key, item in value.items()} if args else value
    kinds = _kinds(made, args, value)
    if len(kinds) != len(value):
        raise ValueError(f"expected tuple of {len(kinds)}, got {len(value)} elements")
    return made(_build(kind, item) for kind, item in zip(kinds, value))
