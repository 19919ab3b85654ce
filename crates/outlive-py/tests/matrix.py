"""A writer or a reader of every type; see test_matrix.py."""

import pathlib
import sys

import numpy as np

import outlive

SPOT = np.dtype([("x", "f4"), ("y", "f4")])
# As outlive::msg::Optional of Rust.
MAYBE = np.dtype({"names": ["present", "value"], "formats": ["?", "f8"], "offsets": [0, 8]})
OWN = np.dtype([
    ("limit", MAYBE), ("real", "f8"), ("big", "u8"), ("at", SPOT, 2), ("grid", "i2", (2, 3)),
    ("name", "S8"), ("mode", "u1"), ("on", "?"), ("small", "i1"), ("bytes", "u1", 1)])
# Its alignment is that of what may be absent.
CLIMATE = np.dtype([("celsius", MAYBE), ("humidity", MAYBE)])
FOREIGN = {
    "protobuf": "matrix.Plan",
    "json": "matrix/Goal",
    "cdr": "matrix_msgs/msg/Part",
    "flatbuffer": "robot.Plan",
    "arrow": "table",
}


def make(number):
    return np.array(
        ((True, 2.5), number, 2**64 - 1, [(number, 0.5), (number, -1.5)],
         [[1, 2, 3], [-4, 5, 6]], "grüß".encode(), 2, True, -7, [number]), OWN)


def main(dir, role):
    def file(encoding, what):
        return (pathlib.Path(dir) / f"{encoding}.{what}").read_bytes()

    node = outlive.Node("python")
    # Bytes go in and out as they are.
    types = {
        encoding: outlive.Encoded(encoding, name, file(encoding, "schema"),
                                  encode=bytes, decode=bytes)
        for encoding, name in FOREIGN.items()}
    own = {"type": OWN, "type_name": "matrix/Own"}
    # Open, so that all agree on it.
    climate = outlive.Subscriber(node, "/x/climate", CLIMATE, type_name="matrix/Climate")
    if role == "write":
        to = outlive.Publisher(node, "/x/own", **own)
        others = [(outlive.Publisher(node, f"/x/{encoding}", of), file(encoding, "payload"))
                  for encoding, of in types.items()]
        print("ready", flush=True)
        for line in sys.stdin:
            to.publish(make(int(line)))
            for publisher, payload in others:
                publisher.publish(payload)
            print("ok", flush=True)
        return
    subscriber = outlive.Subscriber(node, "/x/own", **own)
    others = [outlive.Subscriber(node, f"/x/{encoding}", of) for encoding, of in types.items()]
    print("ready", flush=True)
    for sample in subscriber:
        m = sample.array
        x, y = m["at"][1]["x"], m["at"][1]["y"]
        print(f"{m['limit']['value']:g} {m['real']:g} {m['big']} {x:g} {y:g} {m['grid'][1][0]}",
              m["name"].item().decode(), m["mode"], int(m["on"]), m["small"], m["bytes"][0],
              int(m["limit"]["present"]), flush=True)
        for other in others:
            print(other.receive().value.hex(), flush=True)


main(*sys.argv[1:])
