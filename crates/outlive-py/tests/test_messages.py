"""Ready-made messages: arrays in place, checked; what is malformed raises."""

import numpy as np
import pytest

import outlive
from outlive import msg


def ports(node, of, name="/m"):
    return outlive.Publisher(node, name, of), outlive.Subscriber(node, name, of)


@pytest.mark.parametrize("format", [f for f, (_, dtype, _) in msg.FORMATS.items() if dtype])
def test_an_image_is_an_array_of_its_shape_and_dtype_in_place(node, format):
    camera, viewer = ports(node, msg.Image)
    _, dtype, values = msg.FORMATS[format]
    with msg.Image.loan(camera, 40, 30, format, frame_id="front", stamp_ns=7) as pixels:
        assert pixels.shape == (30, 40, *values) and pixels.dtype == dtype
        pixels[:] = np.arange(pixels.size).reshape(pixels.shape) % 251
    assert not pixels.flags.writeable
    sample = viewer.receive(10.0)
    image = sample.value
    assert (image.format, image.width, image.height) == (format, 40, 30)
    assert (image.frame_id, image.stamp_ns) == ("front", 7)
    seen = image.pixels
    assert seen.shape == pixels.shape and seen.dtype == pixels.dtype
    assert not seen.flags.writeable and sample.is_borrowed
    assert seen.ctypes.data == sample.array[1].ctypes.data
    assert seen.ravel()[-1] == (seen.size - 1) % 251
    # The same as all that takes arrays sees it.
    for array in (np.asarray(image), np.from_dlpack(image), np.array(image, copy=False)):
        assert array.shape == seen.shape and array.ctypes.data == seen.ctypes.data
        assert not array.flags.writeable
    assert image.__array_interface__["data"] == (seen.ctypes.data, True)
    assert np.array(image).flags.writeable
    # It goes on as it came, and one made of an array is the same.
    made = msg.Image.of(seen, format, "front", 7)
    for sent in (image, made):
        camera.publish(sent)
        got = viewer.receive(10.0).value
        assert got.header.tobytes() == image.header.tobytes()
        assert np.array_equal(got.pixels, seen)


def test_pixels_keep_the_sample_and_rows_may_have_gaps(node):
    camera, viewer = ports(node, msg.Image)
    with camera.loan(3 * 256 - 106) as (header, data):
        header[...] = msg.Image.of(np.zeros((3, 50, 3), "u1"), "rgb8").header
        header["row_bytes"] = 256
        data[:] = np.arange(len(data)) % 256
    pixels = viewer.receive(10.0).value.pixels
    assert viewer.borrowed == 1
    assert pixels.shape == (3, 50, 3) and pixels[2, 49].tolist() == [147, 148, 149]
    assert np.from_dlpack(msg.Image.of(pixels, "rgb8")).tolist() == pixels.tolist()
    del pixels
    assert viewer.borrowed == 0


def test_a_compressed_picture_is_its_file(node):
    camera, viewer = ports(node, msg.Image)
    camera.publish(msg.Image.of(b"\xff\xd8\xff...", "jpeg", width=640, height=480))
    image = viewer.receive(10.0).value
    assert (image.format, image.width, image.height) == ("jpeg", 640, 480)
    assert image.pixels.tobytes() == b"\xff\xd8\xff..."


MALFORMED = [
    ({"height": 31}, 0, "Corrupt", "promises 31 rows of 40 rgb8 pixels"),
    ({"row_bytes": 119}, 0, "Corrupt", "119 bytes apart"),
    ({"width": 2**32 - 1, "height": 2**32 - 1, "row_bytes": 2**32 - 1}, 0, "Corrupt", "promises"),
    ({}, 1, "Corrupt", "3599 bytes follow it"),
    ({"format": 77}, 0, "Unsupported", "pixel format 77 is unknown here"),
    ({"format": 0}, 0, "Unsupported", "pixel format 0 is unknown here"),
]


@pytest.mark.parametrize("fields, missing, error, says", MALFORMED)
def test_a_malformed_image_raises_and_the_next_arrives(node, fields, missing, error, says):
    camera, viewer = ports(node, msg.Image)
    good = msg.Image.of(np.zeros((30, 40, 3), np.uint8), "rgb8")
    header = good.header.copy()
    for name, value in fields.items():
        header[name] = value
    camera.publish((header, good[1][: 3600 - missing]))
    camera.publish(good)
    image = viewer.receive(10.0).value
    for ask in (lambda: image.pixels, lambda: np.asarray(image), lambda: np.from_dlpack(image)):
        with pytest.raises(getattr(outlive, error), match=says):
            ask()
    assert image.format in ("rgb8", "unknown")
    assert viewer.receive(10.0).value.pixels.shape == (30, 40, 3)


def test_what_is_no_image_is_not_sent(node):
    camera, _ = ports(node, msg.Image)
    grey = np.zeros((3, 4), np.uint8)
    for make, says in [
        (lambda: msg.Image.of(grey, "rgb8"), r"give uint8 and \(height, width, 3\)"),
        (lambda: msg.Image.of(grey, "mono16"), "it has dtype uint8"),
        (lambda: msg.Image.of(grey, "rgb9"), "'rgb9': invalid argument; use one of mono8, mono16, rgb8"),
        (lambda: msg.Image.loan(camera, 3, 4, "png").__enter__(), "its size is not known"),
        (lambda: msg.Image.loan(camera, -3, 4, "rgb8").__enter__(), "sizes below"),
        (lambda: msg.Image.loan(camera, 2**31, 4, "rgb8").__enter__(), "sizes below"),
        (lambda: msg.Image((grey,)), "give a header and its elements"),
        (lambda: msg.PointCloud.of(grey), "a point cloud: it has dtype uint8"),
        (lambda: msg.Pose.new(pose=1), "Pose has no field pose; it has header, position"),
    ]:
        with pytest.raises(outlive.InvalidArgument, match=says):
            make()
    with pytest.raises(RuntimeError, match="no light"):
        with msg.Image.loan(camera, 4, 3, "mono8"):
            raise RuntimeError("no light")
    assert camera.published == 0


def test_a_point_cloud_is_its_points_in_place(node):
    lidar, viewer = ports(node, msg.PointCloud)
    xyzi = np.arange(4096, dtype=np.float32).reshape(2, 512, 4)
    lidar.publish(msg.PointCloud.of(xyzi, "lidar"))
    lidar.publish(msg.PointCloud.of(xyzi[0], "lidar"))
    sample = viewer.receive(10.0)
    cloud = sample.value
    assert cloud.points.shape == (2, 512) and cloud.points["z"][1, 511] == 4094
    assert np.array_equal(cloud.xyzi, xyzi)
    assert cloud.xyzi.ctypes.data == sample.array[1].ctypes.data
    flat = viewer.receive(10.0).value
    assert flat.points.shape == (512,) and flat.xyzi.shape == (512, 4)
    header = flat.header.copy()
    header["height"] = 2
    lidar.publish((header, flat[1]))
    with pytest.raises(outlive.Corrupt, match="promises 2 rows of 512 points, and 512 points"):
        viewer.receive(10.0).value.points


def test_joints_and_texts_of_any_language(node):
    arm, viewer = ports(node, msg.JointState)
    arm.publish(msg.JointState.of([("joué", 1.5, 0.0, np.nan), ("x" * 40, 2, 3, 4)], "bäse" * 9))
    state = viewer.receive(10.0).value
    assert state.joint("joué")["position"] == 1.5 and state.joint("none") is None
    assert state.joints["name"][1] == b"x" * 32
    assert state.frame_id == ("bäse" * 9).encode()[:32].decode(errors="ignore")
    header = msg.Header.now("a\0b")
    assert header["frame_id"] == b"a" and header["stamp_ns"] > 0
    assert msg.Header.now("x" * 40)["frame_id"] == b"x" * 32


class Grip(msg.Fixed):
    type_name = "test/Grip"
    dtype = np.dtype([("mode", "u1"), ("name", "S4"), ("at", "<f4", (2,)), ("to", "S8", (2,))])
    defaults = {"mode": 3}


@pytest.mark.parametrize(
    "field, value, says",
    [
        ("mode", 1.7, "test/Grip.mode: invalid argument; 1.7 cannot be a uint8"),
        ("mode", 300, "300"),
        ("mode", np.array(300), "300 cannot be a uint8"),
        ("mode", "1", "'1' cannot be a uint8"),
        ("name", b"gripper", "b'gripper' cannot be a"),
        ("name", "gripper", "b'gripper' cannot be a"),
        ("name", "a\0b", "at its first zero"),
        ("at", (1, 1e300), r"\[1\] 1e\+300"),
        ("at", (1, 2, 3), r"test/Grip.at: .*; give a value of shape \(2,\)"),
        ("to", [b"left", b"very right"], "b'very right' cannot"),
    ],
)
def test_a_message_has_in_each_field_what_it_was_given_or_is_not_made(field, value, says):
    with pytest.raises(outlive.InvalidArgument, match=says):
        Grip.new(**{field: value})


def test_a_field_may_have_any_name():
    class Robot(msg.Fixed):
        type_name = "test/Robot"
        dtype = np.dtype([("cls", "<u4"), ("self", "<u4")])

    assert Robot.new(cls=7, self=8).tolist() == (7, 8)


def test_a_message_is_made_of_fields_and_defaults():
    grip = Grip.new(name="grü", at=[0.1, 2], to=["left", b"right"])
    assert (int(grip["mode"]), grip["name"].item()) == (3, "grü".encode())
    assert grip["at"].tolist() == [np.float32(0.1), 2] and grip["to"].tolist() == [b"left", b"right"]
    assert int(Grip.new(mode=np.int64(255))["mode"]) == 255
    header = msg.Header.new(stamp_ns=2**64 - 1, frame_id="map")
    pose = msg.Pose.new(header=header, position=(1, 2, 3))
    assert int(pose["header"]["stamp_ns"]) == 2**64 - 1 and pose["position"]["z"] == 3
    with pytest.raises(outlive.InvalidArgument, match="1.5 cannot be a uint64"):
        msg.JointState.of([], stamp_ns=1.5)


def test_messages_of_queues_and_of_fixed_sizes(node):
    queue = outlive.Queue(node, "/q", msg.Image)
    queue.consumer()
    queue.put(msg.Image.of(np.full((2, 3), 9, np.uint16), "mono16"))
    assert queue.get(10.0).pixels.tolist() == [[9, 9, 9], [9, 9, 9]]
    of = msg.Pose.new(position=(1, 2, 3), orientation=msg.Quaternion.IDENTITY)
    poses, reader = ports(node, msg.Pose, "/pose")
    poses.publish(of)
    assert reader.type_name == "outlive/Pose"
    assert reader.receive(10.0).value.tobytes() == of.tobytes()
