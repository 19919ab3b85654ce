"""A schema and a payload of each third-party encoding, for test_matrix.py and scripts/view_tests.py."""

import pathlib
import struct

MADE = pathlib.Path(__file__).resolve().parents[3] / "crates/outlive-record/tests/foreign"

# By the encoding: what echo prints as JSON; of FlatBuffers and Arrow a part of it.
VALUES = {
    "protobuf": {"goal": "dock", "steps": [1, 2]},
    "json": {"goal": "dock", "x": 0.5},
    "cdr": {"x": 1.5, "n": [7, -8]},
    "flatbuffer": {"goal": "dock", "step": "Dock", "names": ["x", "ö"], "next": {"seconds": 2.5}},
    "arrow": {"x": [1.5, None, -2.0], "name": ["dock", None, "grüß"], "mode": ["auto", "hand", "auto"]},
}


def write_foreign(at):
    """Into the directory `at`, as ENCODING.schema and ENCODING.payload. Needs protobuf."""
    from google.protobuf import descriptor_pb2

    def put(encoding, schema, payload):
        (at / f"{encoding}.schema").write_bytes(schema)
        (at / f"{encoding}.payload").write_bytes(payload)

    file = descriptor_pb2.FileDescriptorProto(name="plan.proto", package="matrix", syntax="proto3")
    plan = file.message_type.add(name="Plan")
    plan.field.add(name="goal", number=1, label=1, type=9)
    plan.field.add(name="steps", number=2, label=3, type=5)
    files = descriptor_pb2.FileDescriptorSet(file=[file])
    put("protobuf", files.SerializeToString(), b"\x0a\x04dock\x12\x02\x01\x02")
    put("json", b'{"type":"object"}', b'{"goal":"dock","x":0.5}')
    part = struct.pack("<4xfI2h", 1.5, 2, 7, -8)
    put("cdr", b"float32 x\nint16[] n\n", b"\0\1" + part[2:])
    put("flatbuffer", (MADE / "plan.bfbs").read_bytes(), (MADE / "plan.bin").read_bytes())
    put("arrow", (MADE / "table.schema").read_bytes(), (MADE / "table.arrow").read_bytes())
