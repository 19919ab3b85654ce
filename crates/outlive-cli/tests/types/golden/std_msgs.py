"""Messages of std_msgs, made by ``outlive types import``."""

import numpy as np

from outlive import msg


class ColorRGBA(msg.Fixed):
    type_name = "std_msgs/msg/ColorRGBA"
    dtype = np.dtype(
        [
            ("r", "<f4"),
            ("g", "<f4"),
            ("b", "<f4"),
            ("a", "<f4"),
        ]
    )
