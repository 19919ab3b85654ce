"""Reads what scripts/recording-tests made, with the packages mcap, mcap-ros2-support, rosbags and
prometheus_client."""

import json
import sys
from pathlib import Path

from mcap.exceptions import EndOfFile
from mcap.reader import make_reader
from mcap.records import Channel, Message
from mcap.stream_reader import StreamReader
from mcap_ros2.decoder import DecoderFactory
from prometheus_client.parser import text_string_to_metric_families
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

dir = Path(sys.argv[1])
data = (dir / "data").read_bytes()


def finished(file):
    """Through the index."""
    reader = make_reader(file, validate_crcs=True)
    summary = reader.get_summary()
    assert summary.statistics.message_count == 101, summary.statistics
    assert summary.chunk_indexes, "no index"
    assert [m.name for m in reader.iter_metadata()] == ["outlive"]
    yield from ((channel, message) for _, channel, message in reader.iter_messages())


def killed(file):
    """From the front, until it breaks off."""
    channels = {}
    try:
        for record in StreamReader(file, validate_crcs=True).records:
            if isinstance(record, Channel):
                channels[record.id] = record
            if isinstance(record, Message):
                yield channels[record.channel_id], record
    except EndOfFile:
        return
    raise AssertionError("a file that nobody finished has an end")


messages = 0
for path in sorted(dir.glob("*.mcap")):
    with open(path, "rb") as file:
        read = finished if path.name.startswith("finished") else killed
        by_topic = {}
        for channel, message in read(file):
            by_topic.setdefault(channel.topic, []).append((channel, message))
    frames = [message for _, message in by_topic["/data"]]
    assert [m.sequence for m in frames] == list(range(100)), path
    assert b"".join(m.data for m in frames) == data, path
    assert all(0 < m.publish_time <= m.log_time for m in frames), path
    channel, value = by_topic["/value"][0]
    assert channel.message_encoding == "json", channel
    assert json.loads(value.data) == {"x": [1, 2.5, "three"]}, value.data
    assert channel.metadata["outlive.encoding"] == "msgpack", channel
    messages += sum(map(len, by_topic.values()))



def check_own(angles, gripper, scan):
    assert list(angles.data) == [0.5, -1.0], angles
    assert gripper.stamp_ns == 1 << 60 and gripper.opening_m == 0.5, gripper
    assert (gripper.force_limit_n.present, gripper.force_limit_n.value) == (True, 2.5), gripper
    assert (list(gripper.force_n), gripper.mode, gripper.calibrated) == ([1.5, 1.25], 1, True)
    fingers = [(f.name, list(f.joints_rad)) for f in gripper.fingers]
    assert fingers == [("left", [0.25] * 3), ("right", [-0.25] * 3)], gripper
    assert (gripper.tool, len(gripper.outlive_rest)) == ("ä tool", 0), gripper
    assert (scan.stamp_ns, scan.number, list(scan.tail)) == (7, 1, [1, 2, 3, 4, 5, 6]), scan


recordings = {}
for path in sorted((dir / "own").iterdir()):
    with open(path, "rb") as file:
        reader = make_reader(file, validate_crcs=True, decoder_factories=[DecoderFactory()])
        read = sorted(reader.iter_decoded_messages(), key=lambda one: one[1].topic)
    check_own(*(decoded for *_, decoded in read))
    store = get_typestore(Stores.EMPTY)
    for schema, *_ in read:
        store.register(get_types_from_msg(schema.data.decode(), schema.name))
    check_own(*(store.deserialize_cdr(m.data, schema.name) for schema, _, m, _ in read))
    recordings[path.name] = [(schema.name, schema.data, m.data) for schema, _, m, _ in read]
first = recordings["first.mcap"]
assert [name for name, *_ in first] == [
    "outlive/msg/F64Array", "robot/msg/Gripper", "robot/msg/HeadedScanHeader"
], first
assert recordings["outlive.mcap"] == first, recordings
# ROS has a message of its own for numbers.
assert recordings["ros2.mcap"][1:] == first[1:], recordings
print(f"recordings: {len(first)} own types read by mcap-ros2-support and rosbags, "
      "the same after they were played")

families = list(text_string_to_metric_families((dir / "metrics").read_text()))
assert all(f.type in ("counter", "gauge") and f.documentation for f in families)
published = {
    s.labels["topic"]: s.value
    for f in families
    for s in f.samples
    if s.name == "outlive_publisher_messages_total"
}
assert published == {"/data": 100.0, "/value": 1.0}, published
print(f"recordings: {messages} messages read by mcap, {len(families)} metrics by prometheus_client")
