"""Messages of geo_msgs, made by ``outlive types import``."""

import numpy as np

from outlive import msg


class Point(msg.Fixed):
    """A point in the frame of the message that has it."""

    type_name = "geo_msgs/msg/Point"
    dtype = np.dtype(
        [
            # m, forward
            ("x", "<f8"),
            # m, left
            ("y", "<f8"),
            # m, up
            ("z", "<f8"),
        ]
    )


class Polygon(msg.Fixed):
    """At most 8 corners."""

    type_name = "geo_msgs/msg/Polygon"
    dtype = np.dtype(
        [
            ("corners", Point.dtype, (8,)),
            # How many of corners there are.
            ("corners_count", "<u4"),
            # Zero.
            ("reserved", "u1", (4,)),
        ]
    )


class Quaternion(msg.Fixed):
    """A rotation; no rotation by default."""

    type_name = "geo_msgs/msg/Quaternion"
    dtype = np.dtype(
        [
            ("x", "<f8"),
            ("y", "<f8"),
            ("z", "<f8"),
            ("w", "<f8"),
        ]
    )
    defaults = {
        "x": 0.0,
        "y": 0.0,
        "z": 0.0,
        "w": 1.0,
    }


class Pose(msg.Fixed):
    type_name = "geo_msgs/msg/Pose"
    dtype = np.dtype(
        [
            ("position", Point.dtype),
            ("orientation", Quaternion.dtype),
        ]
    )
    defaults = {
        "orientation": Quaternion.new(),
    }


class Covariance(msg.Fixed):
    """Row by row, about x, y, z."""

    type_name = "geo_msgs/msg/Covariance"
    dtype = np.dtype(
        [
            ("data", "<f8", (9,)),
        ]
    )


class Flag(msg.Fixed):
    type_name = "geo_msgs/msg/Flag"
    dtype = np.dtype(
        [
            ("on", "?"),
        ]
    )


class Nothing(msg.Fixed):
    type_name = "geo_msgs/msg/Nothing"
    dtype = np.dtype(
        [
            ("structure_needs_at_least_one_member", "u1"),
        ]
    )


class PoseWithCovariance(msg.Fixed):
    type_name = "geo_msgs/msg/PoseWithCovariance"
    dtype = np.dtype(
        [
            ("pose", Pose.dtype),
            ("covariance", Covariance.dtype),
        ]
    )
    defaults = {
        "pose": Pose.new(),
    }
