"""Makes table.arrow; needs pyarrow. The others: flatc --binary --schema plan.fbs, then
flatc --binary plan.fbs plan.json."""

from decimal import Decimal
from pathlib import Path

import pyarrow as pa

columns = {
    "x": pa.array([1.5, None, -2.0], pa.float64()),
    "half": pa.array([0.5, 1.0, -2.0], pa.float16()),
    "n": pa.array([-1, 0, 127], pa.int8()),
    "big": pa.array([0, 1, 2**64 - 1], pa.uint64()),
    "on": pa.array([True, False, None]),
    "name": pa.array(["dock", None, "grüß"]),
    "long": pa.array(["a", "", "c"], pa.large_utf8()),
    "data": pa.array([b"\x00\xff", b"", None], pa.binary()),
    "id": pa.array([b"abc", b"def", b"ghi"], pa.binary(3)),
    "list": pa.array([[1, 2], [], None], pa.list_(pa.int16())),
    "pair": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.float32(), 2)),
    "at": pa.array([{"x": 1, "y": [0.5]}, None, {"x": 3, "y": []}],
                   pa.struct([("x", pa.int32()), ("y", pa.list_(pa.float64()))])),
    "mode": pa.array(["auto", "hand", "auto"]).dictionary_encode(),
    "price": pa.array([Decimal("1.25"), Decimal("-0.05"), None], pa.decimal128(10, 2)),
    "when": pa.array([1_700_000_000_000_000_000, 0, None], pa.timestamp("ns", "UTC")),
    "day": pa.array([19000, 0, 1], pa.date32()),
    "took": pa.array([1, 2, 3], pa.duration("us")),
    "none": pa.nulls(3),
    "map": pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int32())),
    "view": pa.array(["short", "a text of more than 12 bytes", None], pa.string_view()),
}
table = pa.table(columns)
here = Path(__file__).parent
with pa.ipc.new_stream(here / "table.arrow", table.schema) as writer:
    writer.write_table(table.slice(0, 2))
    writer.write_table(table.slice(2))
(here / "table.schema").write_bytes(table.schema.serialize())
