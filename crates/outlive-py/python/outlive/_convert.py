"""Values as arrays of a dtype: the same values, or an exception."""

import numpy as np

from ._errors import InvalidArgument, _refusal


def convert(value, dtype, name):
    """A contiguous array of `dtype` with the values of `value`.

    Floats may be rounded to shorter ones. Nothing else may change: no fraction is cut off, nothing
    wraps around, no text is cut short. Fields of arrays go by name, those of tuples by position.
    `name` is that of the type, for messages.
    """
    if dtype.names is not None:
        value = _by_name(value, dtype, name, ())
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if kind == "c" and dtype.kind not in "cV":
        raise _refused(name, f"complex numbers cannot be {dtype}")
    try:
        with np.errstate(all="ignore"):  # what does not fit is found below
            made = np.asarray(value, dtype, order="C")
    except (TypeError, ValueError, OverflowError) as e:
        raise _refused(name, f"{_shown(value)} is not made of {dtype}: {e}") from e
    given = value if isinstance(value, np.ndarray) else None
    if given is not None or hasattr(value, "__array_interface__") or hasattr(value, "dtype"):
        given = np.asarray(value)
        if given.dtype.names is not None and dtype.names is None:
            raise _refused(name, f"{given.dtype} is not one {dtype}")
        if not np.can_cast(given.dtype, dtype, "safe"):
            _same(given, made, name, ())
    elif dtype.names is None:
        _same(np.asarray(value), made, name, ())
    else:
        _same_items(value, made, name, ())
    return made


def _by_name(value, dtype, name, path, depth=0):
    """`value` with the fields of the arrays in it in the order of `dtype`: NumPy gives them to others
    by position, and a single value to all of them. Its first `depth` dimensions are of `dtype`."""
    given = _as_array(value)
    if given is not None and (given.dtype.names is not None or given.dtype.kind != "O"):
        return _in_order(given, dtype, name, path)
    if depth == 0 and len(dtype.names) == 1 and isinstance(value, (int, float, str, bytes)):
        value = (value,)
    if isinstance(value, tuple) and depth == 0:
        if len(value) != len(dtype.names):
            raise _refused(name, f"{_at(path)}{len(dtype.names)} fields are needed")
        fields = ((field, *_base(dtype[field])) for field in dtype.names)
        return tuple(
            item if base.names is None else _by_name(item, base, name, (*path, field), len(shape))
            for (field, base, shape), item in zip(fields, value)
        )
    depth = max(depth - 1, 0)
    try:
        items = None if isinstance(value, (str, dict)) else enumerate(value)
    except TypeError:
        items = None
    if items is None or not hasattr(value, "__getitem__") or getattr(given, "ndim", 1) == 0:
        raise _refused(name, f"{_at(path)}{_shown(value)} has not the fields of {dtype}")
    return [_by_name(item, dtype, name, (*path, i), depth) for i, item in items]


def _as_array(value):
    """The array that `value` is, or has; None if NumPy makes one of its items."""
    if isinstance(value, (tuple, list, str, bytes)):
        return None
    if not any(hasattr(value, it) for it in ("dtype", "__array__", "__array_interface__")):
        try:
            memoryview(value)
        except TypeError:
            return None
    return np.asarray(value)


def _base(dtype):
    """A dtype without its shape, and that."""
    return dtype.base, dtype.shape


def _in_order(given, dtype, name, path):
    """An array with the fields of `dtype` in its order; itself, if it has."""
    order = _order(given.dtype, dtype, name, path)
    if order == given.dtype:
        return given
    made = np.empty(given.shape, order)
    _copy(given, made)
    return made


def _order(given, dtype, name, path):
    """The dtype `given` with its fields as in `dtype`."""
    if dtype.names is None:
        return given
    if given.names is None or set(given.names) != set(dtype.names):
        raise _refused(name, f"{_at(path)}{given} has not the fields of {dtype}")
    fields = []
    for field in dtype.names:
        (ours, needs), (theirs, shape) = _base(dtype[field]), _base(given[field])
        if shape != needs:  # NumPy cuts it or fills it up
            raise _refused(name, f"{_at((*path, field))}its shape is {shape}, this takes {needs}")
        fields.append((field, _order(theirs, ours, name, (*path, field)), shape))
    return given if given.names == dtype.names and _is_nested_alike(given, fields) else np.dtype(fields)


def _is_nested_alike(given, fields):
    return all(given[field].base == inner for field, inner, _ in fields)


def _copy(given, made):
    if made.dtype.names is None or given.dtype == made.dtype:
        made[...] = given
    else:
        for field in made.dtype.names:
            _copy(given[field], made[field])


def _same_items(value, made, name, path):
    """As `_same`, for what is not an array."""
    if made.dtype.names is None:
        _same(np.asarray(value), made, name, path)
    elif made.ndim > 0 and not isinstance(value, np.ndarray):
        for i, item in enumerate(value):
            _same_items(item, made[i, ...], name, (*path, i))
    elif isinstance(value, (np.ndarray, np.void)):
        _same(np.asarray(value), made, name, path)
    else:
        for field, item in zip(made.dtype.names, value):
            _same_items(item, made[field], name, (*path, field))


def _same(given, made, name, path):
    if made.dtype.names is not None:
        for field in made.dtype.names:
            _same(given[field], made[field], name, (*path, field))
        return
    if given.dtype == made.dtype or given.size == 0:
        return
    if given.dtype.kind == "O":
        given = np.array([_plain(item) for item in given.ravel()], object).reshape(given.shape)
    with np.errstate(all="ignore"):
        if made.dtype.kind == "V":
            wrong = np.full(given.shape, given.dtype.itemsize != made.dtype.itemsize)
        elif made.dtype.kind == "S" and given.dtype.kind == "U":
            wrong = made.astype(f"U{made.dtype.itemsize}") != given
        elif made.dtype.kind in "fc" and given.dtype.kind in "fiub":
            wrong = np.isfinite(given) & ~np.isfinite(made)
        elif made.dtype.kind == "c" and given.dtype.kind == "c":
            wrong = np.isfinite(given) & ~np.isfinite(made)
        elif (made.dtype.kind in "SU") != (given.dtype.kind in "SU"):
            wrong = np.ones(given.shape, bool)
        else:
            wrong = ~np.asarray(given == made)
    wrong = np.asarray(wrong)
    if wrong.shape != given.shape:
        wrong = np.broadcast_to(wrong, given.shape)
    if wrong.any():
        at = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
        bad = np.atleast_1d(given)[at]
        where = _at((*path, *(at if given.ndim else ())))
        raise _refused(name, f"{where}{_shown(bad)} cannot be a {made.dtype}")


def _plain(item):
    return item.item() if hasattr(item, "item") and getattr(item, "ndim", 1) == 0 else item


def _at(path):
    return "".join(f"[{step!r}]" for step in path) + (" " if path else "")


def _shown(value):
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _refused(name, why):
    remedy = "convert it yourself, and say how: array.astype(...), numpy.clip"
    return _refusal(InvalidArgument, f"sending {name}: invalid argument; {why}", name, remedy)
