"""Messages of builtin_interfaces, made by ``outlive types import``."""

import numpy as np

from outlive import msg


class Time(msg.Fixed):
    type_name = "builtin_interfaces/msg/Time"
    dtype = np.dtype(
        [
            ("sec", "<i4"),
            ("nanosec", "<u4"),
        ]
    )


class Duration(msg.Fixed):
    type_name = "builtin_interfaces/msg/Duration"
    dtype = np.dtype(
        [
            ("sec", "<i4"),
            ("nanosec", "<u4"),
        ]
    )
