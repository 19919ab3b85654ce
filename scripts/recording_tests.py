"""Reads what scripts/recording-tests made, with the packages mcap and prometheus_client."""

import sys
from pathlib import Path

from mcap.exceptions import EndOfFile
from mcap.reader import make_reader
from mcap.records import Channel, Message
from mcap.stream_reader import StreamReader
from prometheus_client.parser import text_string_to_metric_families

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
    assert channel.message_encoding == "msgpack", channel
    assert value.data == b"\x81\xa1x\x93\x01\xcb\x40\x04\0\0\0\0\0\0\xa5three", value.data
    assert channel.metadata["outlive.encoding"] == "msgpack", channel
    messages += sum(map(len, by_topic.values()))

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
