"""Values as arrays of a dtype: the same values, or an exception."""

import numpy as np

from ._errors import InvalidArgument


def convert(value, dtype, name):
    """A contiguous array of `dtype` with the values of `value`.

    Floats may be rounded to shorter ones. Nothing else may change: no fraction is cut off, nothing
    wraps around, no text is cut short. `name` is that of the type, for messages.
    """
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
        if not np.can_cast(given.dtype, dtype, "safe"):
            _same(given, made, name, ())
    elif dtype.names is None:
        _same(np.asarray(value), made, name, ())
    else:
        _same_items(value, made, name, ())
    return made


def _same_items(value, made, name, path):
    """As `_same`, for what is not an array."""
    if made.dtype.names is None:
        _same(np.asarray(value), made, name, path)
    elif made.ndim > 0 and not isinstance(value, np.ndarray):
        for i, item in enumerate(value):
            _same_items(item, made[i, ...], name, (*path, i))
    elif isinstance(value, (np.ndarray, np.void)):
        _same(np.asarray(value), made, name, path)
    elif not isinstance(value, (tuple, list)):
        for field in made.dtype.names:  # NumPy gives one value to all
            _same_items(value, made[field], name, (*path, field))
    elif len(value) == len(made.dtype.names):
        for field, item in zip(made.dtype.names, value):
            _same_items(item, made[field], name, (*path, field))
    else:
        raise _refused(name, f"{_at(path)}{len(made.dtype.names)} fields are needed")


def _same(given, made, name, path):
    if made.dtype.names is not None:
        if given.dtype.names is None or len(given.dtype.names) != len(made.dtype.names):
            raise _refused(name, f"{_at(path)}{given.dtype} has not the fields of {made.dtype}")
        # NumPy gives one structured dtype to another by position.
        for ours, theirs in zip(made.dtype.names, given.dtype.names):
            if ours != theirs:
                raise _refused(name, f"{_at(path)}field {theirs} is {ours} here")
            _same(given[theirs], made[ours], name, (*path, ours))
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
    return InvalidArgument(
        f"sending {name}: invalid argument; {why}; {remedy}", object=name, remedy=remedy
    )
