"""Arrays on a device: where they lie, and new ones of the size of a payload.

Nothing of a GPU is imported before a call asks for it, and then only the library that it names.
"""

import sys
from typing import Any, NamedTuple

from . import _errors


class Place(NamedTuple):
    """Where an array lies; what the compiled half needs."""

    ptr: int
    nbytes: int
    stream: int
    #: None: the array does not say; the driver knows.
    device: "int | None"


def _refuse(why: str) -> Exception:
    what = "using an array on a device: invalid argument"
    return _errors._refusal(_errors.InvalidArgument, what, "array", why)


def _device_of(array: Any) -> "int | None":
    """The device's number, if it says; torch calls it index, cupy id."""
    device = getattr(array, "device", None)
    for name in ("index", "id"):
        number = getattr(device, name, None)
        if isinstance(number, int):
            return number
    return None


def _stream_of(array: Any, interface: dict) -> int:
    """The stream on which the array is being written."""
    stream = interface.get("stream")
    if stream is not None:
        return int(stream)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return int(torch.cuda.current_stream(array.device).cuda_stream)
    return 0


def place(
    array: Any, stream: Any = None, device: "int | None" = None, writes: bool = False
) -> "tuple[Place, str, tuple]":
    """Place, NumPy's name of the element type, and shape of a C-contiguous array."""
    interface = getattr(array, "__cuda_array_interface__", None)
    if interface is None:
        raise _refuse("it has no __cuda_array_interface__: pass a tensor of torch, cupy, numba")
    import numpy as np

    shape = tuple(int(n) for n in interface["shape"])
    dtype = np.dtype(interface["typestr"])
    nbytes = dtype.itemsize
    strides, expected = interface.get("strides"), []
    for n in reversed(shape):
        expected.append(nbytes)
        nbytes *= n
    if strides is not None and nbytes and tuple(strides) != tuple(reversed(expected)):
        raise _refuse("its elements do not lie close together: call contiguous() first")
    if writes and interface["data"][1]:
        raise _refuse("it is read-only: make a new one to copy to")
    if interface.get("mask") is not None:
        raise _refuse("it has a mask")
    if stream is None:
        number = _stream_of(array, interface)
    else:
        # torch, cupy, or the driver's own handle.
        number = int(getattr(stream, "cuda_stream", getattr(stream, "ptr", stream)))
    number = 0 if number == 1 else number  # 1 is the default stream by another name
    where = _device_of(array) if device is None else int(device)
    return Place(int(interface["data"][0]), nbytes, number, where), dtype.str, shape


def to_torch(sample: Any, device: Any = "cuda", stream: Any = None) -> Any:
    """A new tensor on `device` with the payload."""
    import torch

    view = sample.array
    device = torch.device(device)
    if device.type == "cpu":
        return torch.from_numpy(view.copy())
    kind = torch.from_numpy(view[:0].copy() if view.ndim else view.copy()).dtype
    tensor = torch.empty(view.shape, dtype=kind, device=device)
    current = torch.cuda.current_stream(tensor.device)
    if stream is not None:
        # What was in this memory before may still be used on the current stream.
        given = stream
        if not isinstance(stream, torch.cuda.Stream):
            given = torch.cuda.ExternalStream(int(getattr(stream, "ptr", stream)), tensor.device)
        given.wait_stream(current)
    sample.copy_to_cuda(tensor, stream=current if stream is None else stream)
    return tensor


def to_cupy(sample: Any, stream: Any = None) -> Any:
    """A new array on cupy's current device with the payload."""
    import cupy

    view = sample.array
    array = cupy.empty(view.shape, dtype=view.dtype)
    current = cupy.cuda.get_current_stream()
    if stream is not None:
        # As with torch.
        given = stream
        if not isinstance(stream, cupy.cuda.Stream):
            given = cupy.cuda.ExternalStream(int(getattr(stream, "cuda_stream", stream)))
        given.wait_event(current.record())
    sample.copy_to_cuda(array, stream=current if stream is None else stream)
    return array
