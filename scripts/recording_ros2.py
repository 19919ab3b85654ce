"""Bags of ROS 2: `make DIR` writes one with the package rosbags, as MCAP and in SQLite, `check DIR`
compares what came of it: played into topics by outlive, recorded from them as messages of ROS, read
by the packages rosbags and mcap-ros2-support. `sqlite` does the same for the one in SQLite,
`images` and `converted` for `outlive convert`."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy
from mcap.reader import make_reader
from mcap_ros2.decoder import DecoderFactory
from rosbags.interfaces import Nodetype
from rosbags.rosbag2 import Reader, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

PACKAGES = ("std_msgs", "geometry_msgs", "sensor_msgs", "nav_msgs", "tf2_msgs", "rosgraph_msgs")
START_NS = 1_600_000_000_000_000_000
FRAMES = 10

store = get_typestore(Stores.ROS2_JAZZY)
names = sorted(n for n in store.fielddefs if n.split("/")[0] in PACKAGES)
random = numpy.random.default_rng(7)


def number(kind):
    if kind.startswith("float"):
        return numpy.dtype(kind).type(random.normal())
    if kind == "bool":
        return bool(random.integers(2))
    kind = {"byte": "uint8", "octet": "uint8", "char": "uint8"}.get(kind, kind)
    info = numpy.iinfo(kind)
    return int(random.integers(info.min, info.max, dtype=kind, endpoint=True))


def value(desc):
    """Any value of a type."""
    node, of = desc
    if node == Nodetype.BASE:
        return f"text ö {random.integers(999)}" if of[0] == "string" else number(of[0])
    if node == Nodetype.NAME:
        return message(of)
    inner, count = of
    count = count if node == Nodetype.ARRAY else int(random.integers(4))
    items = [value(inner) for _ in range(count)]
    if inner[0] == Nodetype.BASE and inner[1][0] != "string":
        kind = {"byte": "uint8", "octet": "uint8", "char": "uint8"}.get(inner[1][0], inner[1][0])
        return numpy.array(items, dtype=kind)
    return items


def message(name, /, **given):
    fields = store.fielddefs[name][1]
    if name == "std_msgs/msg/Header" and not given:
        given = {"stamp": stamp(), "frame_id": "base_link"}
    if name == "std_msgs/msg/Empty":
        given = {"structure_needs_at_least_one_member": 0}
    return store.types[name](**{n: given[n] if n in given else value(d) for n, d in fields})


def stamp():
    sec = START_NS // 10**9 + int(random.integers(10**6))
    return store.types["builtin_interfaces/msg/Time"](sec=sec, nanosec=int(random.integers(10**9)))


def octets(count):
    return random.integers(0, 256, count, dtype=numpy.uint8)


def standard(name):
    """What becomes a type of outlive has to make sense as one."""
    if name == "sensor_msgs/msg/Image":
        encoding, pixel = [("rgb8", 3), ("32FC1", 4), ("mono16", 2), ("bayer_rggb8", 1)][
            int(random.integers(4))]
        return message(name, height=3, width=5, step=5 * pixel + 1, encoding=encoding,
                       is_bigendian=0, data=octets(3 * (5 * pixel + 1)))
    if name == "sensor_msgs/msg/CompressedImage":
        data = numpy.concatenate([numpy.frombuffer(b"\xff\xd8", numpy.uint8), octets(50)])
        return message(name, format="jpeg", data=data)
    if name == "sensor_msgs/msg/PointCloud2":
        field = store.types["sensor_msgs/msg/PointField"]
        fields = [field(name=n, offset=4 * i, datatype=7, count=1)
                  for i, n in enumerate(["x", "y", "z", "intensity"])]
        points = random.normal(size=(6, 4)).astype(numpy.float32)
        return message(name, height=2, width=3, fields=fields, is_bigendian=False, point_step=16,
                       row_step=48, data=points.view(numpy.uint8).reshape(-1), is_dense=True)
    if name == "sensor_msgs/msg/JointState":
        return message(name, name=["elbow", "wrist"], position=random.normal(size=2),
                       velocity=numpy.array([]), effort=random.normal(size=2))
    return message(name)


def topic(name):
    return "/" + name.replace("/msg/", "/").lower()


def make(dir):
    rows = [[(n, store.serialize_cdr(standard(n), n)) for n in names] for _ in range(3)]
    # The one in SQLite without definitions, as the releases wrote it for which it was the default.
    bags = [("bag", 9, StoragePlugin.MCAP), ("old", 8, StoragePlugin.SQLITE3)]
    for name, version, plugin in bags:
        with Writer(dir / name, version=version, storage_plugin=plugin) as bag:
            connections = {n: bag.add_connection(topic(n), n, typestore=store) for n in names}
            for i, row in enumerate(rows):
                for n, data in row:
                    bag.write(connections[n], START_NS + i * 10**7, data)
    print(3 * len(names))


def same(a, b):
    """A message of rosbags and one of any of the packages."""
    if hasattr(a, "__msgtype__"):
        if a.__msgtype__ == "std_msgs/msg/Empty":
            return True
        keys = [name for name, _ in store.fielddefs[a.__msgtype__][1]]
        return all(same(getattr(a, k), getattr(b, k)) for k in keys)
    if isinstance(b, (bytes, bytearray, memoryview)):
        return a.tobytes() == bytes(b)
    if isinstance(a, (list, numpy.ndarray)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return a == b


def read(path):
    with Reader(path) as bag:
        out = {}
        for connection, _, data in bag.messages():
            of = out.setdefault(connection.topic, (connection, []))
            of[1].append(store.deserialize_cdr(data, connection.msgtype))
        return out


def check(dir):
    sent = read(dir / "bag" / "bag.mcap")
    many = compare(sent, dir / "ros2.mcap")
    print(f"recordings: {many} messages of {len(sent)} ROS types through topics and back, "
          "read by rosbags and mcap-ros2-support")


def sqlite(dir):
    assert (dir / "old" / "old.db3").read_bytes().startswith(b"SQLite format 3")
    sent = read(dir / "bag" / "bag.mcap")
    many = compare(sent, dir / "old.mcap")
    print(f"recordings: {many} messages of {len(sent)} ROS types out of SQLite by rosbags-convert, "
          "through topics and back")


def compare(sent, path):
    """Whether all that was sent is in a recording; how many messages."""
    got = read(path)
    assert set(got) == set(sent), set(got) ^ set(sent)
    for name, (connection, messages) in sent.items():
        have, back = got[name]
        assert (have.msgtype, have.ext.serialization_format) == (connection.msgtype, "cdr"), have
        assert len(back) == 3, (name, len(back))
        for a, b in zip(messages, back, strict=True):
            assert same(a, b), f"{name}:\n{a}\n{b}"
    with open(path, "rb") as file:
        reader = make_reader(file, validate_crcs=True, decoder_factories=[DecoderFactory()])
        assert reader.get_header().profile == "ros2"
        decoded = {}
        for schema, channel, _, message in reader.iter_decoded_messages():
            assert (schema.encoding, channel.message_encoding) == ("ros2msg", "cdr"), channel
            decoded.setdefault(channel.topic, []).append(message)
    assert set(decoded) == set(sent)
    for name, (_, messages) in sent.items():
        for a, b in zip(messages, decoded[name], strict=True):
            if name == "/std_msgs/char":
                # The package takes them for signed ones.
                b.data %= 256
            assert same(a, b), f"{name}:\n{a}\n{b}"
    return sum(len(m) for m in decoded.values())


def images(dir):
    """Frames that become brighter, and a number beside them."""
    with Writer(dir / "images", version=9, storage_plugin=StoragePlugin.MCAP) as bag:
        image, float64 = "sensor_msgs/msg/Image", "std_msgs/msg/Float64"
        frames = bag.add_connection("/camera/front", image, typestore=store)
        numbers = bag.add_connection("/number", float64, typestore=store)
        for i in range(FRAMES):
            time = START_NS + i * 10**8
            data = bright(i).reshape(-1)
            frame = message(image, height=24, width=33, step=99, encoding="rgb8", is_bigendian=0,
                            data=data)
            bag.write(frames, time, store.serialize_cdr(frame, image))
            number = message(float64, data=i / 8)
            bag.write(numbers, time, store.serialize_cdr(number, float64))


def bright(i):
    frame = numpy.full((24, 33, 3), 20 * i, numpy.uint8)
    frame[:, :16, 0] = 255
    return frame


def decoded(ffmpeg, path):
    """All frames of a picture or film, by ffmpeg."""
    run = [ffmpeg, "-v", "error", "-i", path, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    return subprocess.run(run, check=True, stdout=subprocess.PIPE).stdout


def converted(dir):
    """Tables and pictures that `outlive convert` made of those images, read by others."""
    with open(dir / "png" / "number.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(r["value"]) for r in rows] == [i / 8 for i in range(FRAMES)], rows
    times = [START_NS + i * 10**8 for i in range(FRAMES)]
    assert [int(r["log_time_ns"]) for r in rows] == times, rows
    with open(dir / "png" / "camera" / "front.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    files = [f"front/{i:06}.png" for i in range(FRAMES)]
    assert [r["file"] for r in rows] == files, rows
    assert all((r["width"], r["height"]) == ("33", "24") for r in rows), rows
    ffmpeg = sys.argv[3] if len(sys.argv) > 3 else ""
    if not ffmpeg:
        print("recordings: tables read; no ffmpeg, so that nobody looked at pictures and films")
        return
    for i, name in enumerate(files):
        assert decoded(ffmpeg, dir / "png" / "camera" / name) == bright(i).tobytes(), name
    film = decoded(ffmpeg, dir / "mp4" / "camera" / "front.mp4")
    film = numpy.frombuffer(film, numpy.uint8).reshape(-1, 24, 34, 3)
    assert len(film) == FRAMES, film.shape
    for i, frame in enumerate(film):
        # Compression changes colours a little.
        difference = numpy.abs(frame[:, :33].astype(int) - bright(i))
        assert numpy.median(difference) < 12, (i, difference)
    print(f"recordings: {FRAMES} images as PNG and MP4, read by ffmpeg; tables")


def definitions(path):
    """Those in the program are those of ROS."""
    text = Path(path).read_text()
    parts = [part.split("\n", 1) for part in text.split("=== ")[1:]]
    from rosbags.typesys import get_types_from_msg

    for name, body in parts:
        ours = get_types_from_msg(body, name)[name]
        want = store.fielddefs[name]
        if name == "std_msgs/msg/Empty":
            # The one field of a message without fields is written nowhere.
            want = ([], [])
        assert ours == want, f"{name}: {ours} {want}"
    print(f"recordings: {len(parts)} definitions are those of ROS 2 Jazzy")


if __name__ == "__main__":
    commands = {f.__name__: f for f in (make, check, sqlite, definitions, images, converted)}
    commands[sys.argv[1]](Path(sys.argv[2]))
