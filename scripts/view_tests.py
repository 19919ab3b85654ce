"""`outlive view` before independent clients; scripts/view-tests calls it. What the example feed
publishes follows from the number of each message, so what arrives can be checked."""

import base64
import json
import os
import queue
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import foxglove
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

sys.path.append(str(Path(__file__).resolve().parents[1] / "crates/outlive-py/tests"))
from viewer import PATIENCE, Client, decode  # noqa: E402

OUTLIVE, VIEW = os.environ["OUTLIVE"], os.environ["VIEW"]
ROOT = Path(os.environ["OUTLIVE_DIR"])
# `outlive view` finds its program in PATH.
os.environ["PATH"] = f"{VIEW}:{os.environ['PATH']}"
started = []


class Process:
    """A process of ours, with the lines that it writes."""

    def __init__(self, *command, **options):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, **options)
        self.lines, self.told = queue.Queue(), []
        started.append(self)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.put(line.rstrip("\n"))
        self.lines.put(None)

    def line(self, begin):
        """Waits for a line that begins so."""
        until = time.monotonic() + PATIENCE
        while (left := until - time.monotonic()) > 0:
            try:
                line = self.lines.get(timeout=left)
            except queue.Empty:
                break
            if line is None:
                break
            self.told.append(line)
            if line.startswith(begin):
                return line
        raise AssertionError(f"no line {begin!r} in {self.told}")

    def finish(self):
        """What has published all leaves in order."""
        self.process.stdin.close()
        assert self.process.wait(PATIENCE) == 0

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        return self.process.wait(PATIENCE)


def view(*args):
    process = Process(OUTLIVE, "view", "--port", "0", "--stats", *args)
    told = process.line("outlive-view: open ws://")
    process.port = int(told.split("ws://127.0.0.1:")[1].split()[0])
    return process


def feed(*feeds):
    return Process(f"{VIEW}/examples/feed", *feeds)


def check(kind, value):
    """The number of the message, after all else in it was compared with what that number makes."""
    now = time.time()
    if hasattr(value, "header"):
        stamp = value.header.stamp.sec + value.header.stamp.nanosec / 1e9
        assert abs(stamp - now) < PATIENCE, (stamp, now)
    if kind in ("picture", "big"):
        assert (value.encoding, value.header.frame_id) == ("rgb8", "camera")
        width, height = (64, 48) if kind == "picture" else (1920, 1080)
        assert (value.width, value.height, value.step) == (width, height, 3 * width)
        assert len(value.data) == 3 * width * height
        n = int(value.data[0])
        assert all(int(value.data[i]) == (i + n) % 256 for i in range(0, 64 * 48 * 3, 97))
        return n
    if kind == "jpeg":
        assert value.format == "jpeg" and bytes(value.data[:2]) == b"\xff\xd8"
        assert len(value.data) == 10
        return int(value.data[2])
    if kind == "lidar":
        assert [f.name for f in value.fields] == ["x", "y", "z", "intensity"]
        points = value.data.view("<f4").reshape(100, 4)
        assert (points[:, 0] == range(100)).all() and (points[:, 2:] == [-1, 0.25]).all()
        return int(points[5, 1])
    if kind == "pose":
        assert (value.pose.orientation.w, value.pose.position.z) == (1.0, -1.0)
        return int(value.pose.position.x)
    if kind == "imu":
        return int(value.linear_acceleration.x)
    if kind == "joints":
        assert list(value.name) == ["elbow", "wrist"] and value.position[1] == 0.5
        return int(value.position[0])
    if kind == "number":
        assert value.data % 1 == 0.5
        return int(value.data)
    if kind == "count":
        return int(value.data)
    if kind == "bytes":
        assert bytes(value.data[1:]) == b"\x01\x02"
        return int(value.data[0])
    if kind == "state":
        assert (value["volts"], value["cells"][0], value["cells"][2]) == (24.1, 0.1, None)
        assert value["matrix"][0] == [1, 2]
        assert base64.b64decode(value["data"]) == bytes([value["seq"] % 256]) * 40
        assert value["name"] == list(b"base\0\0\0\0")
        return value["seq"]
    if kind == "pairs":
        assert list(value.data[1:]) == [1, 2, 3]
        return int(value.data[0])
    assert kind == "plan" and value["goal"] == "döck"
    assert value["path"] == [[value["seq"], 0.5], [1, 2]]
    return value["seq"]


SCHEMAS = {
    "picture": "sensor_msgs/msg/Image", "jpeg": "sensor_msgs/msg/CompressedImage",
    "lidar": "sensor_msgs/msg/PointCloud2", "pose": "geometry_msgs/msg/PoseStamped",
    "imu": "sensor_msgs/msg/Imu", "joints": "sensor_msgs/msg/JointState",
    "number": "std_msgs/msg/Float64", "count": "std_msgs/msg/UInt64",
    "bytes": "std_msgs/msg/UInt8MultiArray", "state": "example/State", "plan": "example/Plan",
    "pairs": "std_msgs/msg/UInt16MultiArray"}


def files():
    """All but what a publisher that is there adds to its chunks while many are borrowed, and keeps."""
    found = {str(p.relative_to(ROOT)) for p in ROOT.rglob("*") if p.is_file()}
    added = re.compile(r"(.*/data\.\d+\.\d+)\.[1-9]\d*")
    return sorted(f for f in found if not (m := added.fullmatch(f)) or f"{m[1]}.0" not in found)


def every_kind_arrives_as_it_was_sent():
    server = view()
    client = Client(server.port)
    assert client.info["name"] == "outlive default" and client.channels == {}
    source = feed(*(f"{kind}:40:200" for kind in SCHEMAS), "odd:40:200")
    # Topics appear while we are connected. MessagePack may be told of before its first message.
    client.until(lambda: all(f"/{k}" in client.channels for k in [*SCHEMAS, "odd"]))
    for kind in [*SCHEMAS, "odd"]:
        client.subscribe(f"/{kind}")
    seen = {kind: [] for kind in SCHEMAS}
    again = set()

    def each(message):
        topic, time_ns, payload = message
        kind, channel = topic[1:], client.channels[topic]
        seen[kind].append(check(kind, decode(channel, payload)))
        assert abs(time_ns / 1e9 - time.time()) < PATIENCE

    def done():
        # A channel that changed its form has to be subscribed to again.
        ids = {c["id"] for c in client.subscribed.values()}
        for topic in list(client.channels):
            if client.channels[topic]["id"] not in ids:
                again.add(topic)
                client.subscribe(topic)
        return all(len(numbers) >= 5 for numbers in seen.values())

    client.until(done, each)
    assert again <= {"/jpeg", "/plan", "/odd"}, again
    for kind, schema in SCHEMAS.items():
        assert client.channels[f"/{kind}"]["schemaName"] == schema, client.channels[f"/{kind}"]
        assert seen[kind] == sorted(set(seen[kind])), (kind, seen[kind])
    assert client.channels["/state"]["metadata"] == {
        "unit": "V", "outlive.type": "example/State", "outlive.encoding": "fixed"}
    plan = json.loads(client.channels["/plan"]["schema"])
    assert set(plan["properties"]) == {"seq", "goal", "path"}
    client.until(lambda: any(s.get("id") == "wrong /odd" for s in client.statuses), each)
    while sum(" published " in told for told in source.told) <= len(SCHEMAS):
        source.line("")
    # Who comes late has the last message, of a publisher that sends no more, too.
    late = Client(server.port)
    late.until(lambda: all(f"/{kind}" in late.channels for kind in SCHEMAS))
    for kind in SCHEMAS:
        late.subscribe(f"/{kind}")
    last = {}

    def one(message):
        topic, _, payload = message
        last[topic[1:]] = check(topic[1:], decode(late.channels[topic], payload))

    modulo = {"picture": 256, "jpeg": 256, "bytes": 256}
    late.until(lambda: all(last.get(k) == 199 % modulo.get(k, 1000) for k in SCHEMAS), one)
    # Nobody who publishes is left: the channels go.
    source.finish()
    late.until(lambda: not late.channels)
    assert server.end() == 0
    try:
        while True:
            late.receive()
    except ConnectionClosed as closed:
        assert closed.rcvd.code == 1001, closed
    return f"{len(SCHEMAS)} kinds, {sum(map(len, seen.values()))} messages equal what was published"


def names_and_globs_choose():
    server = view("/p*", "/number")
    source = feed("picture:100:1", "pose:100:1", "number:100:1", "imu:100:1")
    client = Client(server.port, "foxglove.websocket.v1")
    client.until(lambda: {"/picture", "/pose", "/number"} <= set(client.channels))
    source.finish()
    client.until(lambda: not client.channels)
    server.end()
    assert all(c["topic"] != "/imu" for c in client.subscribed.values())
    return "three of four topics chosen, told by the older name of the protocol"


def rates_hold_by_count():
    throttled, whole = view("--rate", "1", "--rate", "/count=20"), view("--rate", "inf")
    source = feed("count:1000:6000")
    clients = [Client(throttled.port), Client(whole.port)]
    seen, took = [[], []], [0, 0]
    for client in clients:
        client.until(lambda: "/count" in client.channels)

    def read(which):
        client, numbers, begun = clients[which], seen[which], time.monotonic()
        client.subscribe("/count")

        def each(message):
            # CDR of one number: a header of 4 bytes, and the number.
            numbers.append(struct.unpack("<Q", message[2][4:])[0])
        client.until(lambda: numbers and numbers[-1] == 5999, each)
        took[which] = time.monotonic() - begun

    threads = [threading.Thread(target=read, args=[which]) for which in (0, 1)]
    [thread.start() for thread in threads]
    [thread.join(PATIENCE) for thread in threads]
    few, all_ = seen
    took = took[0]
    assert few == sorted(set(few)) and few[-1] == 5999, few[-5:]
    # Whatever the machine does: one message for each 20th of a second, and one at the beginning.
    assert 2 <= len(few) <= 20 * took + 2, (len(few), took)
    assert all_ == list(range(all_[0], 6000)), "every message, once"
    line = throttled.line("topic /count")
    while int(line.split()[3]) < len(few):
        line = throttled.line("topic /count")
    words = line.split()
    assert int(words[5]) > 0, line
    throttled.end()
    whole.end()
    source.finish()
    return f"{len(few)} of 6000 at 20 Hz in {took:.1f} s, {len(all_)} from the first on at inf"


def a_client_that_never_reads_costs_its_own_frames():
    count, hz = 300, 60
    alone = feed(f"big:{hz}:{count}")
    before = int(alone.line("big published").split()[-1])
    alone.finish()
    server = view("--rate", "inf")
    source = feed(f"big:{hz}:{count}")
    slow, fast = Client(server.port), Client(server.port)
    # Only what fits into the buffers of this client and of the kernel is taken from the server.
    slow.until(lambda: "/big" in slow.channels)
    fast.until(lambda: "/big" in fast.channels)
    slow.subscribe("/big")
    fast.subscribe("/big")
    sockets = slow.socket.socket.getsockname()
    got = []

    def each(message):
        got.append(check("big", decode(fast.channels["/big"], message[2])))

    fast.until(lambda: got and got[-1] == (count - 1) % 256, each)
    after = int(source.line("big published").split()[-1])
    line = server.line(f"client {sockets[0]}:{sockets[1]}")
    while int(line.split()[-1]) == 0:
        line = server.line(f"client {sockets[0]}:{sockets[1]}")
    dropped = int(line.split()[-1])
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    peak_mb = int(status.split("VmHWM:")[1].split()[0]) // 1024
    assert peak_mb < 200, f"{peak_mb} MB for {count} frames of 6 MB"
    # When it reads again, what is new comes at once.
    frames = []

    def old(message):
        frames.append(check("big", decode(slow.channels["/big"], message[2])))

    slow.until(lambda: frames and frames[-1] == (count - 1) % 256, old)
    assert len(frames) < count / 4, frames
    slow.until(lambda: any(s.get("id") == "slow /big" for s in slow.statuses), old)
    assert "--rate /big=HZ" in slow.statuses[-1]["message"]
    source.finish()
    server.end()
    return (f"{count} frames of 6 MB published in spite of it, {dropped} dropped for it and "
            f"counted; it read {len(frames)}, the last the newest; {peak_mb} MB; publishing took "
            f"{before / 1e3:.0f} us without a view, {after / 1e3:.0f} us with")


def what_is_no_client_or_asks_nonsense_is_told_so():
    server = view()
    source = feed("number:100:1")
    url = f"ws://127.0.0.1:{server.port}"
    for options, code in (
        ({}, 400), ({"subprotocols": ["foxglove.sdk.v2"]}, 400),
        ({"subprotocols": ["foxglove.sdk.v1"], "origin": "https://evil.example"}, 403),
    ):
        try:
            connect(url, **options).__enter__()
            raise AssertionError(options)
        except InvalidStatus as refused:
            assert refused.response.status_code == code, refused
    connect(url, subprotocols=["foxglove.sdk.v1"], origin="https://app.foxglove.dev").__enter__()
    for garbage in (b"\0" * 100, b"GET / HTTP/1.1\r\n\r\n", os.urandom(5000)):
        with socket.create_connection(("127.0.0.1", server.port)) as raw:
            raw.sendall(garbage)
    client = Client(server.port)
    client.until(lambda: "/number" in client.channels)
    client.socket.send("nonsense")
    client.ask("subscribe", subscriptions=[{"id": 1, "channelId": 4711}])
    client.ask("unsubscribe", subscriptionIds=[9])
    client.ask("getParameters", parameterNames=[])
    client.socket.send(b"\x01" + bytes(20))
    client.until(lambda: len(client.statuses) == 5)
    assert all(s["level"] == 2 for s in client.statuses)
    assert "4711" in client.statuses[1]["message"], client.statuses
    client.subscribe("/number")
    again = client.next
    message = None
    while message is None:
        message = client.receive()
    assert check("number", decode(client.channels["/number"], message[2])) == 0 and again == 2
    server.end()
    source.finish()
    return "refused with 400 and 403, told of 5 errors, served all the same"


def bad_arguments_are_named():
    def fails(code, text, *args):
        ran = subprocess.run(
            [OUTLIVE, "view", *args], capture_output=True, text=True, timeout=PATIENCE)
        assert ran.returncode == code and text in ran.stderr, (args, ran)

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        fails(1, f"cannot listen at 127.0.0.1:{port}: ", "--port", port)
    fails(1, "--bind and --port choose another", "--bind", "192.0.2.1")
    fails(2, "'fast' is not a valid rate: write 10", "--rate", "fast")
    fails(2, "'/cam(' is not a valid regular expression", "--regex", "/cam(")
    return "4 wrong arguments named, with a remedy"


def a_view_that_is_killed_leaves_nothing():
    source = feed("count:200:100000000", "big:30:100000000")
    before = None
    while (now := files()) != before or not now:
        before = now
        time.sleep(0.2)
    server = view()
    client = Client(server.port)
    client.until(lambda: {"/count", "/big"} <= set(client.channels))
    client.subscribe("/count")
    client.subscribe("/big")
    seen = []
    client.until(lambda: len(seen) > 20, seen.append)
    during = files()
    server.end(signal.SIGKILL)
    client.close()
    subprocess.run([OUTLIVE, "clean"], check=True, capture_output=True)
    until = time.monotonic() + PATIENCE
    while files() != before:
        assert time.monotonic() < until, set(files()) ^ set(before)
        subprocess.run([OUTLIVE, "clean"], check=True, capture_output=True)
    # The publisher never noticed.
    server = view()
    client = Client(server.port)
    client.until(lambda: "/count" in client.channels)
    client.subscribe("/count")
    more = []
    client.until(lambda: len(more) > 5, more.append)
    source.end()
    server.end()
    subprocess.run([OUTLIVE, "clean"], check=True, capture_output=True)
    return f"{len(set(during) - set(before))} files of it, none after; the publishers went on"


def foxgloves_own_server_says_the_same():
    theirs = foxglove.start_server(port=0)
    schema = {"type": "object", "properties": {"seq": {"type": "integer"}}}
    channel = foxglove.Channel("/state", message_encoding="json", schema=schema)
    server, source = view("/state"), feed("state:100:1")
    clients = [Client(theirs.port), Client(server.port)]
    for client in clients:
        client.until(lambda: "/state" in client.channels)
        client.subscribe("/state")
    them, us = clients
    assert set(them.info) <= set(us.info), (them.info, us.info)
    # Ours has metadata besides.
    keys = [set(c.channels["/state"]) - {"metadata"} for c in clients]
    assert keys[0] == keys[1], keys
    for key in ("encoding", "schemaEncoding"):
        assert them.channels["/state"][key] == us.channels["/state"][key]
    seen = [[], []]
    channel.log({"seq": 0})
    while not seen[0]:
        channel.log({"seq": 0})
        seen[0] += [m for m in [them.receive()] if m]
    us.until(lambda: seen[1], seen[1].append)
    [messages] = {tuple(type(part) for part in messages[0]) for messages in seen}
    for client in clients:
        client.ask("subscribe", subscriptions=[{"id": 9, "channelId": 4711}])
        client.until(lambda: client.statuses)
    assert set(them.statuses[0]) <= set(us.statuses[0]), (them.statuses, us.statuses)
    theirs.stop()
    server.end()
    source.finish()
    return "fields of serverInfo, advertise, status and messages are those of foxglove-sdk"


try:
    for test in (
        every_kind_arrives_as_it_was_sent, names_and_globs_choose, rates_hold_by_count,
        a_client_that_never_reads_costs_its_own_frames,
        what_is_no_client_or_asks_nonsense_is_told_so, bad_arguments_are_named,
        a_view_that_is_killed_leaves_nothing, foxgloves_own_server_says_the_same,
    ):
        if len(sys.argv) > 1 and test.__name__ not in sys.argv[1:]:
            continue
        print(f"view: {test.__name__.replace('_', ' ')}: {test()}", flush=True)
finally:
    for process in started:
        if process.process.poll() is None:
            process.process.kill()
        process.process.wait()
