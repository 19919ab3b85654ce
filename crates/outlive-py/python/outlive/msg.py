"""Ready-made messages, the same in all languages: poses, images, point clouds, joints.

>>> from outlive import msg
>>> camera = outlive.Publisher(node, "/camera/left", msg.Image)
>>> viewer = outlive.Subscriber(node, "/camera/left", msg.Image)
>>> with msg.Image.loan(camera, 640, 480, "rgb8", frame_id="left_optical") as pixels:
...     pixels[:] = 128  # an array in shared memory, published at the end of the block
>>> image = viewer.receive(timeout=1.0).value
>>> image.format, image.pixels.shape, image.frame_id, image.pixels.flags.writeable
('rgb8', (480, 640, 3), 'left_optical', False)

>>> poses = outlive.Publisher(node, "/base/pose", msg.Pose)
>>> reader = outlive.Subscriber(node, "/base/pose", msg.Pose)
>>> poses.publish(msg.Pose.new(header=msg.Header.now("map"), position=(1.0, 2.0, 0.0)))
0
>>> pose = reader.receive(timeout=1.0).value  # an array of no dimensions
>>> float(pose["position"]["y"]), pose["header"]["frame_id"].item().decode()
(2.0, 'map')

Units are SI: metres, seconds, radians, newtons; stamps are ns of CLOCK_MONOTONIC (``now_ns``).
Bodies look along x, y is left, z is up; optical frames (name ends in ``_optical``) look along z, x
is right, y is down. Rotations are right-handed. Texts are UTF-8 of at most 32 bytes.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, ClassVar, Iterable, Iterator, TypeVar

import numpy as np

from ._convert import convert
from ._errors import InvalidArgument, _refusal
from ._outlive import _check_image, _check_point_cloud, _dlpack, _dlpack_place, now_ns
from ._types import ReadyMade

if TYPE_CHECKING:
    import numpy.typing as npt

    from . import Publisher, Sample

_Self = TypeVar("_Self", bound="_Headed")

__all__ = [
    "FORMATS",
    "Fixed",
    "Header",
    "Image",
    "Imu",
    "Joint",
    "JointState",
    "PointCloud",
    "PointXyzi",
    "Pose",
    "Quaternion",
    "Twist",
    "Vector3",
]

FORMATS: dict[str, tuple[int, str | None, tuple[int, ...]]] = {
    "mono8": (1, "u1", ()),
    "mono16": (2, "<u2", ()),
    "rgb8": (3, "u1", (3,)),
    "bgr8": (4, "u1", (3,)),
    "rgba8": (5, "u1", (4,)),
    "bgra8": (6, "u1", (4,)),
    "yuyv": (7, "u1", (2,)),
    "bayer_rggb8": (8, "u1", ()),
    "depth_mm16": (9, "<u2", ()),
    "depth_m32": (10, "<f4", ()),
    "jpeg": (100, None, ()),
    "png": (101, None, ()),
}
"""Pixel formats: number, dtype of a value, values of a pixel. Compressed pictures have no dtype."""
_NAMES = {number: name for name, (number, _, _) in FORMATS.items()}


class Fixed(ReadyMade):
    """A message of a fixed size: a structured dtype with the name that all languages have for it.

    Subclasses are types for ports; ``outlive types import`` writes them.

    >>> class Grip(msg.Fixed):
    ...     type_name = "example/Grip"
    ...     dtype = np.dtype([("opening_m", "<f4"), ("name", "S12")])
    ...     defaults = {"opening_m": 0.5}
    >>> grips = outlive.Publisher(node, "/grip", Grip)
    >>> grips.publish(Grip.new(name="left"))
    0
    """

    type_name: ClassVar[str]
    dtype: ClassVar[np.dtype]
    defaults: ClassVar[dict[str, Any]] = {}
    """Values of fields that ``new`` is not given, where they are not zero."""

    @classmethod
    def new(cls, /, **fields: Any) -> np.ndarray:
        """One with these fields, all others as in ``defaults`` or zero: an array of no dimensions,
        for ``publish``. ``InvalidArgument``: a value would be another one in its field; text is
        not cut."""
        made = np.zeros((), cls.dtype)
        for name, value in {**cls.defaults, **fields}.items():
            if name not in cls.dtype.names:
                what, known = f"{cls.__name__} has no field {name}", ", ".join(cls.dtype.names)
                raise _refusal(InvalidArgument, what, cls.type_name, f"it has {known}")
            _put(made, name, value, cls.type_name)
        return made


def _put(made: np.ndarray, name: str, value: Any, of: str) -> None:
    """Writes a field of the type `of`: the same value, or an exception."""
    dtype = made.dtype[name]
    if isinstance(value, str) and dtype.base.kind == "S":
        if "\0" in value:
            what = f"{of}.{name}: other languages end {value!r} at its first zero"
            raise _refusal(InvalidArgument, what, f"{of}.{name}", "give text without zeros")
        value = value.encode()
    converted = convert(value, dtype.base, f"{of}.{name}")
    try:
        made[name] = converted
    except ValueError as e:
        remedy = f"give a value of shape {dtype.shape}"
        raise _refusal(InvalidArgument, f"{of}.{name}: {e}", f"{of}.{name}", remedy) from e


def _text(text: str) -> bytes:
    """The whole characters of a text that fit into 32 bytes, up to its first zero."""
    return text.split("\0")[0].encode()[:32].decode(errors="ignore").encode()


class Header(Fixed):
    """When something was measured and in which frame its coordinates are; 40 bytes.

    ``stamp_ns`` (ns of CLOCK_MONOTONIC, 0 unknown), ``frame_id`` (like ``base_link``).

    >>> header = msg.Header.now("base_link")
    >>> header["frame_id"].item().decode(), int(header["stamp_ns"]) <= outlive.now_ns()
    ('base_link', True)
    """

    type_name = "outlive/Header"
    dtype = np.dtype([("stamp_ns", "<u8"), ("frame_id", "S32")])

    @classmethod
    def now(cls, frame_id: str = "") -> np.ndarray:
        """Measured now, in that frame; the name is cut off after 32 bytes."""
        return cls.new(stamp_ns=now_ns(), frame_id=_text(frame_id))


class Vector3(Fixed):
    """``x``, ``y``, ``z``; the field that holds it says unit and frame. 24 bytes.

    >>> force = msg.Vector3.new(x=1.5, z=-9.75)
    >>> force.tolist()
    (1.5, 0.0, -9.75)
    >>> outlive.Publisher(node, "/force", msg.Vector3).publish(force)
    0
    """

    type_name = "outlive/Vector3"
    dtype = np.dtype([("x", "<f8"), ("y", "<f8"), ("z", "<f8")])


class Quaternion(Fixed):
    """A rotation as unit quaternion: ``x``, ``y``, ``z``, ``w``; 32 bytes.

    All zero is "unknown".

    >>> pose = msg.Pose.new(orientation=msg.Quaternion.IDENTITY)
    >>> pose["orientation"].tolist()
    (0.0, 0.0, 0.0, 1.0)
    """

    type_name = "outlive/Quaternion"
    dtype = np.dtype([("x", "<f8"), ("y", "<f8"), ("z", "<f8"), ("w", "<f8")])
    IDENTITY = (0.0, 0.0, 0.0, 1.0)
    """No rotation."""


class Pose(Fixed):
    """Position and orientation of a body in the frame of ``header``; 96 bytes.

    ``header``, ``position`` (m), ``orientation`` (from the body's axes to those of the frame).

    >>> header = msg.Header.now("map")
    >>> pose = msg.Pose.new(header=header, position=(1.0, 2.0, 0.0))
    >>> float(pose["position"]["y"])
    2.0
    >>> outlive.Publisher(node, "/base/pose", msg.Pose).publish(pose)
    0
    """

    type_name = "outlive/Pose"
    dtype = np.dtype(
        [("header", Header.dtype), ("position", Vector3.dtype), ("orientation", Quaternion.dtype)]
    )


class Twist(Fixed):
    """Velocity of a body in its own axes; 88 bytes.

    ``header`` (the body's frame), ``linear`` (m/s), ``angular`` (rad/s about each axis).

    >>> ahead = msg.Twist.new(linear=(0.5, 0.0, 0.0), angular=(0.0, 0.0, 0.25))
    >>> float(ahead["linear"]["x"]), float(ahead["angular"]["z"])
    (0.5, 0.25)
    >>> outlive.Publisher(node, "/base/velocity", msg.Twist).publish(ahead)
    0
    """

    type_name = "outlive/Twist"
    dtype = np.dtype(
        [("header", Header.dtype), ("linear", Vector3.dtype), ("angular", Vector3.dtype)]
    )


class Imu(Fixed):
    """Reading of an inertial measurement unit, in the sensor's frame; 336 bytes.

    ``header``, ``orientation`` (to a frame whose z points up), ``angular_velocity`` (rad/s),
    ``linear_acceleration`` (m/s², with gravity), and their covariances of shape (9,): 3 x 3, row
    by row; all zero unknown, first element -1: no such reading.

    >>> reading = msg.Imu.new(
    ...     header=msg.Header.now("imu"),
    ...     angular_velocity=(0.0, 0.0, 0.25),
    ...     linear_acceleration=(0.0, 0.0, 9.75),
    ...     orientation_covariance=[-1.0] + 8 * [0.0],  # it measures none
    ... )
    >>> outlive.Publisher(node, "/imu", msg.Imu).publish(reading)
    0
    """

    type_name = "outlive/Imu"
    dtype = np.dtype(
        [
            ("header", Header.dtype),
            ("orientation", Quaternion.dtype),
            ("angular_velocity", Vector3.dtype),
            ("linear_acceleration", Vector3.dtype),
            ("orientation_covariance", "<f8", (9,)),
            ("angular_velocity_covariance", "<f8", (9,)),
            ("linear_acceleration_covariance", "<f8", (9,)),
        ]
    )


class Joint(Fixed):
    """One joint of a ``JointState``; 56 bytes. What is not measured is NaN.

    ``name``, ``position`` (rad or m), ``velocity`` (rad/s or m/s), ``effort`` (N m or N).

    >>> elbow = msg.Joint.new(name="elbow", position=1.5, effort=float("nan"))
    >>> outlive.Publisher(node, "/elbow", msg.Joint).publish(elbow)
    0
    """

    type_name = "outlive/Joint"
    dtype = np.dtype(
        [("name", "S32"), ("position", "<f8"), ("velocity", "<f8"), ("effort", "<f8")]
    )


class PointXyzi(Fixed):
    """One point of a ``PointCloud``; 16 bytes. A ray without an echo has NaN coordinates.

    ``x``, ``y``, ``z`` (m), ``intensity`` (0 to 1, or as the sensor counts; 0 without).

    >>> points = np.zeros(100, msg.PointXyzi.dtype)
    >>> points["z"] = 0.5
    >>> msg.PointCloud.of(points, "lidar").xyzi[99].tolist()
    [0.0, 0.0, 0.5, 0.0]
    """

    type_name = "outlive/PointXyzi"
    dtype = np.dtype([("x", "<f4"), ("y", "<f4"), ("z", "<f4"), ("intensity", "<f4")])


class _Headed(ReadyMade, tuple):
    """A header and its elements: a tuple of two arrays, as ``publish`` takes it."""

    type_name: ClassVar[str]
    header_dtype: ClassVar[np.dtype]
    element_dtype: ClassVar[np.dtype]

    def __new__(cls: type[_Self], parts: Sample[Any] | tuple[np.ndarray, np.ndarray]) -> _Self:
        """Of the value or the array of a sample, or of a sample."""
        made = super().__new__(cls, getattr(parts, "value", parts))
        if len(made) != 2:
            what = f"{cls.__name__}: invalid argument; it is of {len(made)} parts"
            raise _refusal(InvalidArgument, what, cls.__name__, "give a header and its elements")
        return made

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self[0]!r}, {len(self[1])} elements)"

    @property
    def header(self) -> np.ndarray:
        """What comes before the elements: a structured array of no dimensions."""
        return self[0]

    @property
    def stamp_ns(self) -> int:
        """When it was measured, ns of CLOCK_MONOTONIC; 0 unknown."""
        return int(self[0]["header"]["stamp_ns"])

    @property
    def frame_id(self) -> str:
        """The frame of its coordinates."""
        return self[0]["header"]["frame_id"].item().decode(errors="replace")

    @classmethod
    def _header(cls, frame_id: str, stamp_ns: int | None, **fields: Any) -> np.ndarray:
        made = np.zeros((), cls.header_dtype)
        stamp_ns = now_ns() if stamp_ns is None else stamp_ns
        made["header"] = Header.new(stamp_ns=stamp_ns, frame_id=_text(frame_id))
        for name, value in fields.items():
            _put(made, name, value, cls.type_name)
        return made


class JointState(_Headed):
    """A header and one ``Joint`` for each joint that was measured.

    >>> arm = msg.JointState.of([("elbow", 1.57, 0.0, float("nan"))], "base_link")
    >>> float(arm.joint("elbow")["position"])
    1.57
    """

    type_name = "outlive/JointState"
    header_dtype = np.dtype([("header", Header.dtype)])
    element_dtype = Joint.dtype

    @classmethod
    def of(
        cls,
        joints: np.ndarray | Iterable[tuple[str, float, float, float]],
        frame_id: str = "",
        stamp_ns: int | None = None,
    ) -> JointState:
        """Of an array of ``Joint.dtype``, or of tuples (name, position, velocity, effort).
        `stamp_ns`: now unless given."""
        if not isinstance(joints, np.ndarray):
            joints = [(_text(name), *rest) for name, *rest in joints]
        return cls((cls._header(frame_id, stamp_ns), np.asarray(joints, Joint.dtype)))

    @property
    def joints(self) -> np.ndarray:
        """The joints: a structured array of one dimension."""
        return self[1]

    def joint(self, name: str) -> np.void | None:
        """The joint of that name, or None."""
        found = np.flatnonzero(self[1]["name"] == _text(name))
        return self[1][found[0]] if len(found) else None


class Image(_Headed):
    """A picture: ``pixels`` is an array of the right shape and dtype without a copy.

    The image itself is such an array to others: ``np.asarray(image)``,
    ``torch.from_dlpack(image)``. OpenCV takes ``image.pixels``.

    >>> image = msg.Image.of(np.zeros((480, 640, 3), np.uint8), "bgr8", "front_optical")
    >>> outlive.Publisher(node, "/camera/right", msg.Image).publish(image)
    0
    """

    type_name = "outlive/Image"
    header_dtype = np.dtype(
        [
            ("header", Header.dtype),
            ("width", "<u4"),
            ("height", "<u4"),
            ("row_bytes", "<u4"),
            ("format", "<u4"),
            ("reserved", "<u4", (2,)),
        ]
    )
    element_dtype = np.dtype(np.uint8)

    @classmethod
    def of(
        cls,
        pixels: npt.ArrayLike | bytes,
        format: str,
        frame_id: str = "",
        stamp_ns: int | None = None,
        *,
        width: int = 0,
        height: int = 0,
    ) -> Image:
        """Of an array of shape (height, width) or (height, width, values of a pixel), or of the
        bytes of a compressed picture, whose `width` and `height` are given. `stamp_ns`: now unless
        given."""
        number, dtype, values = _format(format)
        if dtype is None:
            fields = {"width": width, "height": height, "format": number}
            header = cls._header(frame_id, stamp_ns, **fields)
            return cls((header, np.frombuffer(pixels, np.uint8)))  # type: ignore[arg-type]
        array = np.asarray(pixels)
        if array.dtype != dtype or array.ndim < 2 or array.shape[2:] != values:
            wanted = ", ".join(["height", "width", *map(str, values)])
            what = f"an image of format {format}: it has dtype {array.dtype} and shape {array.shape}"
            remedy = f"give {np.dtype(dtype)} and ({wanted})"
            raise _refusal(InvalidArgument, what, format, remedy)
        height, width = array.shape[:2]
        header = cls._plain(width, height, format, frame_id, stamp_ns)
        return cls((header, np.ascontiguousarray(array).reshape(-1).view(np.uint8)))

    @classmethod
    @contextlib.contextmanager
    def loan(
        cls,
        publisher: Publisher[Image],
        width: int,
        height: int,
        format: str,
        *,
        frame_id: str = "",
        stamp_ns: int | None = None,
    ) -> Iterator[np.ndarray]:
        """A slot in shared memory for an uncompressed picture: ``with Image.loan(...) as pixels``
        publishes what was written to the array, unless an exception leaves the block. It holds
        whatever was there before."""
        header = cls._plain(width, height, format, frame_id, stamp_ns)
        with publisher.loan(int(header["row_bytes"]) * height) as (head, data):
            head[...] = header
            pixels = cls((head, data)).pixels
            try:
                yield pixels
            finally:
                pixels.flags.writeable = False

    @classmethod
    def _plain(
        cls, width: int, height: int, format: str, frame_id: str, stamp_ns: int | None
    ) -> np.ndarray:
        number, dtype, values = _format(format)
        if dtype is None:
            what = f"an image of format {format}: its size is not known before"
            raise _refusal(InvalidArgument, what, format, "use Image.of(file, ...)")
        row_bytes = width * np.dtype((dtype, values)).itemsize
        if not (0 <= width and 0 <= height < 1 << 32 and row_bytes < 1 << 32):
            what = f"an image of {width} x {height} pixels: invalid argument"
            raise _refusal(InvalidArgument, what, format, "give sizes below 2**32")
        fields = {"width": width, "height": height, "row_bytes": row_bytes, "format": number}
        return cls._header(frame_id, stamp_ns, **fields)

    @property
    def width(self) -> int:
        """Columns, pixels."""
        return int(self[0]["width"])

    @property
    def height(self) -> int:
        """Rows, pixels."""
        return int(self[0]["height"])

    @property
    def format(self) -> str:
        """``rgb8``, ``depth_m32``, ``jpeg`` and so on, or ``unknown``."""
        return _NAMES.get(int(self[0]["format"]), "unknown")

    @property
    def pixels(self) -> np.ndarray:
        """The pixels in place, of shape (height, width) or (height, width, values of a pixel); the
        bytes of a compressed picture's file.

        ``Corrupt``: rows that the header promises overlap or are missing. ``Unsupported``: the
        format is unknown.
        """
        header, data = self
        _check_image(header.tobytes(), data.nbytes)
        _, dtype, values = FORMATS[self.format]
        if dtype is None:
            return data
        size = np.dtype((dtype, values)).itemsize
        shape = (self.height, self.width, *values)
        strides = (int(header["row_bytes"]), size, *(1 for _ in values))
        return np.ndarray(shape, dtype, data, strides=strides)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return self.pixels.__array_interface__

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        pixels = self.pixels if dtype is None else self.pixels.astype(dtype, copy=False)
        return pixels.copy() if copy else pixels

    def __dlpack__(
        self,
        *fields: Any,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if fields:  # numpy 1 calls it with what is in a tuple instead of the tuple
            self = Image((self, *fields))  # type: ignore[arg-type]
        _dlpack_place(stream, dl_device)
        pixels = self.pixels.copy() if copy else self.pixels
        return _dlpack(pixels, max_version, not pixels.flags.writeable)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class PointCloud(_Headed):
    """Points, in the sensor's frame.

    >>> cloud = msg.PointCloud.of(np.zeros((3, 4), np.float32), "lidar")
    >>> cloud.points["x"].tolist(), cloud.xyzi.shape
    ([0.0, 0.0, 0.0], (3, 4))
    """

    type_name = "outlive/PointCloud"
    header_dtype = np.dtype(
        [("header", Header.dtype), ("width", "<u4"), ("height", "<u4"), ("reserved", "<u4", (4,))]
    )
    element_dtype = PointXyzi.dtype

    @classmethod
    def of(
        cls, points: npt.ArrayLike, frame_id: str = "", stamp_ns: int | None = None
    ) -> PointCloud:
        """Of an array of ``PointXyzi.dtype``, or of float32 with x, y, z and intensity as its last
        dimension; of two dimensions of points if the cloud is ordered."""
        array = np.asarray(points)
        if array.dtype == np.float32 and array.shape[-1:] == (4,):
            array = np.ascontiguousarray(array).view(PointXyzi.dtype)[..., 0]
        if array.dtype != PointXyzi.dtype or array.ndim not in (1, 2):
            what = f"a point cloud: it has dtype {array.dtype} and shape {array.shape}"
            remedy = "give float32 and (points, 4) or (rows, points, 4), or PointXyzi.dtype"
            raise _refusal(InvalidArgument, what, cls.type_name, remedy)
        height, width = array.shape if array.ndim == 2 else (1, len(array))
        header = cls._header(frame_id, stamp_ns, width=width, height=height)
        return cls((header, np.ascontiguousarray(array).reshape(-1)))

    @property
    def points(self) -> np.ndarray:
        """The points in place: a structured array of one dimension, or of rows and columns if the
        cloud is ordered. ``Corrupt``: points that the header promises are missing."""
        header, points = self
        _check_point_cloud(header.tobytes(), len(points))
        height, width = int(header["height"]), int(header["width"])
        points = points[: height * width]
        return points if height == 1 else points.reshape(height, width)

    @property
    def xyzi(self) -> np.ndarray:
        """The points as float32, with x, y, z and intensity as the last dimension."""
        points = self.points
        return points.view(np.float32).reshape(*points.shape, 4)


def _format(name: str) -> tuple[int, str | None, tuple[int, ...]]:
    if name not in FORMATS:
        what = f"an image of format {name!r}: invalid argument"
        raise _refusal(InvalidArgument, what, name, f"use one of {', '.join(FORMATS)}")
    return FORMATS[name]
