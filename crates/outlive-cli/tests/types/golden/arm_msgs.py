"""Messages of arm_msgs, made by ``outlive types import``."""

import numpy as np

from outlive import msg

from . import builtin_interfaces
from . import geo_msgs
from . import std_msgs


class FollowGoal(msg.Fixed):
    type_name = "arm_msgs/action/Follow_Goal"
    dtype = np.dtype(
        [
            ("path", geo_msgs.Polygon.dtype),
        ]
    )


class FollowResult(msg.Fixed):
    type_name = "arm_msgs/action/Follow_Result"
    dtype = np.dtype(
        [
            ("distance", "<f4"),
        ]
    )


class FollowFeedback(msg.Fixed):
    type_name = "arm_msgs/action/Follow_Feedback"
    dtype = np.dtype(
        [
            ("corner", "<u4"),
        ]
    )


class Stamp(msg.Fixed):
    type_name = "arm_msgs/msg/Stamp"
    dtype = np.dtype(
        [
            ("stamp", builtin_interfaces.Time.dtype),
            ("frame_id", "S16"),
        ]
    )


class Joint(msg.Fixed):
    """One joint.

    What is not measured is zero.
    """

    type_name = "arm_msgs/msg/Joint"
    dtype = np.dtype(
        [
            ("header", Stamp.dtype),
            # ROTATING or SLIDING
            ("type", "u1"),
            # Zero.
            ("reserved", "u1", (3,)),
            # rad, or m
            ("position", "<f4"),
            ("brakes", "?", (3,)),
            ("name", "S12"),
            # Zero.
            ("reserved2", "u1", (1,)),
        ]
    )
    # Kinds of joints.
    ROTATING = 0
    SLIDING = 1
    defaults = {
        "name": "elbow".encode(),
    }


class Arm(msg.Fixed):
    type_name = "arm_msgs/msg/Arm"
    dtype = np.dtype(
        [
            ("header", Stamp.dtype),
            ("joints", Joint.dtype, (2,)),
            ("tool", geo_msgs.Pose.dtype),
            ("reach", geo_msgs.Polygon.dtype),
        ]
    )
    defaults = {
        "joints": Joint.new(),
        "tool": geo_msgs.Pose.new(),
    }


class Battery(msg.Fixed):
    type_name = "arm_msgs/msg/Battery"
    dtype = np.dtype(
        [
            ("header", Stamp.dtype),
            ("voltage", "<f4"),
            ("cell_count", "<u2"),
            # Zero.
            ("reserved", "u1", (2,)),
            ("cells", "<f4", (12,)),
            # How many of cells there are.
            ("cells_count", "<u4"),
            ("state", "u1"),
            # Zero.
            ("reserved2", "u1", (3,)),
        ]
    )
    UNKNOWN = 0
    CHARGING = 1
    defaults = {
        "voltage": -1.0,
    }


class Cell(msg.Fixed):
    """Of a pack; Rust has a Cell, too."""

    type_name = "arm_msgs/msg/Cell"
    dtype = np.dtype(
        [
            # V
            ("voltage", "<f4"),
        ]
    )


class Defaults(msg.Fixed):
    type_name = "arm_msgs/msg/Defaults"
    dtype = np.dtype(
        [
            ("gains", "<i2", (3,)),
            # Zero.
            ("reserved", "u1", (2,)),
            ("speeds", "<f4", (4,)),
            # How many of speeds there are.
            ("speeds_count", "<u4"),
            ("names", "S8", (2,)),
            # Zero.
            ("reserved2", "u1", (4,)),
            ("rotations", geo_msgs.Quaternion.dtype, (2,)),
        ]
    )
    defaults = {
        "gains": [1, -2, 3],
        "speeds": [0.5, 1.5, 0, 0],
        "speeds_count": 2,
        "names": ["left".encode(), "right".encode()],
        "rotations": geo_msgs.Quaternion.new(),
    }


class Grid(msg.Fixed):
    type_name = "arm_msgs/msg/Grid"
    dtype = np.dtype(
        [
            ("width", "<u2"),
            ("height", "<u2"),
            ("resolution", "<f4"),
            ("origin", geo_msgs.Pose.dtype),
            ("data", "i1", (100,)),
            # How many of data there are.
            ("data_count", "<u4"),
        ]
    )
    defaults = {
        "resolution": 0.05,
        "origin": geo_msgs.Pose.new(),
    }


class Imu(msg.Fixed):
    type_name = "arm_msgs/msg/Imu"
    dtype = np.dtype(
        [
            ("header", Stamp.dtype),
            ("orientation", geo_msgs.Quaternion.dtype),
            # rad/s
            ("angular_velocity", geo_msgs.Point.dtype),
            # m/s^2
            ("linear_acceleration", geo_msgs.Point.dtype),
            ("covariance", "<f4", (9,)),
            # Zero.
            ("reserved", "u1", (4,)),
        ]
    )
    defaults = {
        "orientation": geo_msgs.Quaternion.new(),
    }


class Numbers(msg.Fixed):
    """Every number, with its limits as constants."""

    type_name = "arm_msgs/msg/Numbers"
    dtype = np.dtype(
        [
            ("b", "?"),
            ("o", "u1"),
            ("c", "u1"),
            ("i8", "i1"),
            ("i16", "<i2"),
            # Zero.
            ("reserved", "u1", (2,)),
            ("i32", "<i4"),
            # Zero.
            ("reserved2", "u1", (4,)),
            ("i64", "<i8"),
            ("u8", "u1"),
            # Zero.
            ("reserved3", "u1", (1,)),
            ("u16", "<u2"),
            ("u32", "<u4"),
            ("u64", "<u8"),
            ("f32", "<f4"),
            # Zero.
            ("reserved4", "u1", (4,)),
            ("f64", "<f8"),
        ]
    )
    YES = True
    LEAST_BYTE = 0
    LETTER = 65
    LEAST8 = -128
    LEAST16 = -32768
    LEAST32 = -2147483648
    LEAST64 = -9223372036854775808
    MOST8 = 255
    MOST16 = 65535
    MOST32 = 4294967295
    MOST64 = 18446744073709551615
    HALF = 0.5
    PI = 3.141592653589793
    GREETING = "say \"hi\" # loud"
    # not a trigraph ??/
    ODD = "??= \\ ä"
    defaults = {
        "b": True,
        "o": 1,
        "c": 65,
        "i8": -8,
        "i16": -16,
        "i32": -32,
        "i64": -64,
        "u8": 8,
        "u16": 16,
        "u32": 32,
        "u64": 64,
        "f32": 0.25,
        "f64": -1.5,
    }


class Pack(msg.Fixed):
    """Has types whose names Rust has for others."""

    type_name = "arm_msgs/msg/Pack"
    dtype = np.dtype(
        [
            ("cells", Cell.dtype, (2,)),
            ("age", builtin_interfaces.Duration.dtype),
        ]
    )


class Scan(msg.Fixed):
    """A planar scan of at most 360 rays."""

    type_name = "arm_msgs/msg/Scan"
    dtype = np.dtype(
        [
            ("header", Stamp.dtype),
            # rad
            ("angle_min", "<f4"),
            # m
            ("ranges", "<f4", (360,)),
            # How many of ranges there are.
            ("ranges_count", "<u4"),
            ("intensities", "u1", (360,)),
            # How many of intensities there are.
            ("intensities_count", "<u4"),
        ]
    )


class Tally(msg.Fixed):
    """The name of its list is also one of a count."""

    type_name = "arm_msgs/msg/Tally"
    dtype = np.dtype(
        [
            ("count", "<u4", (8,)),
            # How many of count there are.
            ("count_count", "<u4"),
        ]
    )


class Text(msg.Fixed):
    type_name = "arm_msgs/msg/Text"
    dtype = np.dtype(
        [
            ("lines", "S32", (3,)),
            # How many of lines there are.
            ("lines_count", "<u4"),
            ("digest", "u1", (16,)),
        ]
    )


class Wheels(msg.Fixed):
    type_name = "arm_msgs/msg/Wheels"
    dtype = np.dtype(
        [
            ("speed", "<f8", (4,)),
            ("ticks", "<i8"),
            ("light", std_msgs.ColorRGBA.dtype),
        ]
    )


class ReachRequest(msg.Fixed):
    """Moves the tool."""

    type_name = "arm_msgs/srv/Reach_Request"
    dtype = np.dtype(
        [
            ("goal", geo_msgs.Pose.dtype),
            ("seconds", "<f8"),
        ]
    )
    defaults = {
        "goal": geo_msgs.Pose.new(),
        "seconds": 2.0,
    }


class ReachResponse(msg.Fixed):
    type_name = "arm_msgs/srv/Reach_Response"
    dtype = np.dtype(
        [
            ("reached", "?"),
            ("message", "S64"),
        ]
    )
