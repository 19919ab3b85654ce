"""A publisher and a subscriber of a structured type, in one program for brevity."""

import numpy as np

import outlive

POSE = np.dtype([("x", "f8"), ("y", "f8"), ("heading", "f8")])  # m, m, rad

node = outlive.Node("hello")
publisher = outlive.Publisher(node, "/robot/pose", POSE, type_name="example/Pose")
subscriber = outlive.Subscriber(node, "/robot/pose", POSE, type_name="example/Pose")

publisher.publish((1.0, 2.0, 0.5))

pose = subscriber.receive(timeout=1.0).array
print(f"hello: x {pose['x']:.1f} m, y {pose['y']:.1f} m, heading {pose['heading']:.1f} rad")
