"""All four languages on one topic, queue, service and lock, each killed in turn.

Each voice is a process that reads commands from its standard input: actor.{c,cpp,rs,py}.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parents[2]
C = REPO / "crates/outlive-c"
LANGUAGES = ["rust", "c", "cpp", "python"]
SUM = "17.5"


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """The command of each language's actor."""
    if shutil.which("cargo") is None or not (C / "examples/actor.rs").exists():
        pytest.skip("needs the repository and cargo")
    at = tmp_path_factory.mktemp("actors")
    environment = {k: v for k, v in os.environ.items() if k != "OUTLIVE_DIR"}

    def run(*command, **extra):
        subprocess.run(command, check=True, cwd=REPO, env={**environment, **extra})

    run("cargo", "build", "-q", "-p", "outlive-c", "--lib", "--example", "actor")
    run("cargo", "build", "-q", "-p", "outlive-cli", "--bin", "outlive")
    built = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", REPO / "target")) / "debug"
    run("scripts/install", str(at), OUTLIVE_BUILT=str(built))
    flags = ["-O2", "-Wall", "-Werror", f"-I{at}/include", f"-L{at}/lib", "-loutlive"]
    flags.append(f"-Wl,-rpath,{at}/lib")
    run("cc", str(C / "tests/c/actor.c"), "-o", str(at / "actor_c"), *flags)
    source = str(C / "tests/cpp/actor.cpp")
    run("g++", "-std=c++20", source, "-o", str(at / "actor_cpp"), *flags)
    return {
        "rust": [str(built / "examples/actor")],
        "c": [str(at / "actor_c")],
        "cpp": [str(at / "actor_cpp")],
        "python": [sys.executable, str(HERE / "actor.py")],
        "command": [str(built / "outlive")],
    }


class Voice:
    """A process in a role."""

    def __init__(self, programs, language, role):
        self.name = f"{role} in {language}"
        self.process = subprocess.Popen(
            [*programs[language], role], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.says() == "ready", self.name

    def says(self):
        """Its next line; the watchdog of the test run ends one that says nothing."""
        return self.process.stdout.readline().rstrip("\n")

    def tell(self, number):
        self.process.stdin.write(f"{number}\n")
        self.process.stdin.flush()

    def ask(self, number):
        self.tell(number)
        return self.says()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.fixture
def voices(programs):
    started = []

    def start(role, languages=LANGUAGES):
        new = [Voice(programs, language, role) for language in languages]
        started.extend(new)
        return new

    yield start
    for voice in started:
        if voice.process.poll() is None:
            voice.kill()


def test_all_see_the_same_description_and_the_same_bytes(programs):
    def layout(language):
        command = [*programs[language], "layout"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    layouts = {language: layout(language) for language in LANGUAGES}
    assert layouts["rust"].startswith("outlive-type 1 align 8|struct:48| 0 u64 stamp_ns|")
    # Then the ready-made messages, which C names, and formats, whose names Rust and Python have.
    lines = layouts["rust"].splitlines()
    assert lines[9].startswith("outlive/PointXyzi ") and lines[-3] == "10 depth_m32 4"
    for language, count in {"rust": len(lines), "c": 2, "cpp": 10, "python": len(lines)}.items():
        assert layouts[language].splitlines() == lines[:count], language


def test_ready_made_messages_of_every_language_are_read_in_every_language(voices):
    senders, viewers = voices("send"), voices("see")
    where = "reading an image:"
    seen = {
        1: "12",
        2: f"{where} corrupt; its header promises 9 rows of 2 rgb8 pixels (6 bytes), 6 bytes "
        "apart, and 12 bytes follow it; correct the sender",
        3: f"{where} unsupported; pixel format 77 is unknown here; update this program, or correct "
        "the sender",
        4: "15",
    }
    for number, image in seen.items():
        bytes_of = set()
        for sender in senders:
            assert sender.ask(number) == "ok", sender.name
            for viewer in viewers:
                line = f"map 7 {number} {number} 0.5 9.75 -1 {number} -1.5 {number} 0.25 {image}"
                assert viewer.says() == line, (sender.name, viewer.name)
                bytes_of.add(viewer.says())
        assert len(bytes_of) == 1, number
        assert len(bytes_of.pop()) == 2 * (96 + 88 + 336 + 40 + 56 + 64 + 32 + 64 + 12)


def test_ready_made_messages_of_every_language_go_through_every_tool(programs, voices, tmp_path):
    """Printed, recorded, read by the package mcap, converted and played."""
    reader = pytest.importorskip("mcap.reader")
    decoders = pytest.importorskip("mcap_ros2.decoder")

    def run(*words):
        command = [*programs["command"], *map(str, words)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def check(viewers):
        for number in numbers:
            for viewer in viewers:
                line = f"map 7 {number} {number} 0.5 9.75 -1 {number} -1.5 {number} 0.25"
                assert viewer.says() == f"{line} {number + 11}", (number, viewer.name)
                viewer.says()

    def echo(topic):
        out = run("topic", "echo", topic, "--history", 9, "--count", len(numbers),
                  "--timeout", 60, "--json", "--full")
        return [json.loads(line)["value"] for line in out.splitlines()]

    def messages(path):
        of, decoder = {}, decoders.DecoderFactory()
        with open(path, "rb") as file:
            for schema, channel, message in reader.make_reader(file).iter_messages():
                if decode := decoder.decoder_for(channel.message_encoding, schema):
                    of.setdefault(channel.topic, []).append((schema.name, decode(message.data)))
        return of

    senders, viewers = voices("send"), voices("see")
    numbers = range(10, 10 + len(senders))
    for number, sender in zip(numbers, senders):
        assert sender.ask(number) == "ok", sender.name
    check(viewers)
    poses, images = echo("/m/pose"), echo("/m/image")
    assert [pose["position"]["z"] for pose in poses] == list(numbers)
    assert [(image["width"], image["height"]) for image in images] == [(2, 2)] * len(numbers)

    paths = [tmp_path / f"{profile}.mcap" for profile in ("outlive", "ros2")]
    for path in paths:
        run("record", "/m/*", "--history", 9, "--count", 6 * len(numbers), "--profile", path.stem,
            "-o", path)
    of = messages(paths[1])
    assert {name for all in of.values() for name, _ in all} == {
        "geometry_msgs/msg/PoseStamped", "geometry_msgs/msg/TwistStamped", "sensor_msgs/msg/Imu",
        "sensor_msgs/msg/JointState", "sensor_msgs/msg/PointCloud2", "sensor_msgs/msg/Image"}
    for number, (_, image), (_, cloud) in zip(numbers, of["/m/image"], of["/m/cloud"]):
        assert bytes(image.data) == bytes(range(number, number + 12)), number
        assert (cloud.width, len(cloud.data)) == (2, 32), number
    assert [pose.pose.position.z for _, pose in of["/m/pose"]] == list(numbers)
    of = messages(paths[0])
    assert [pose.position.z for _, pose in of["/m/pose"]] == list(numbers)
    run("convert", paths[0], "--output", tmp_path / "tables")
    assert len(list((tmp_path / "tables").rglob("*.png"))) == len(numbers)

    for voice in [*senders, *viewers]:
        voice.kill()
    run("clean")
    viewers = voices("see")
    run("play", paths[0], "--wait-for-subscribers", len(viewers), "--timeout", 60)
    check(viewers)


def test_ready_made_messages_of_every_language_are_seen_in_view(voices, viewer):
    topics = [f"/m/{name}" for name in ("pose", "twist", "imu", "joints", "cloud", "image")]
    for number, sender in enumerate(voices("send"), 10):
        assert sender.ask(number) == "ok", sender.name
        seen = viewer.one_of_each(topics)
        for topic, message in seen.items():
            assert message.header.frame_id == "map", (sender.name, topic)
            # 7 ns after the clock of this machine began.
            stamp = message.header.stamp.sec + message.header.stamp.nanosec / 1e9
            assert abs(stamp + time.monotonic() - time.time()) < 1, (sender.name, topic)
        pose, twist, imu, joints, cloud, image = (seen[topic] for topic in topics)
        assert (pose.pose.position.z, pose.pose.orientation.w) == (number, 1), sender.name
        assert (twist.twist.linear.x, twist.twist.angular.z) == (number, 0.5), sender.name
        assert imu.linear_acceleration.z == 9.75, sender.name
        assert imu.orientation_covariance[0] == -1, sender.name
        assert joints.name == ["elbow"], sender.name
        assert (*joints.position, *joints.effort) == (number, -1.5), sender.name
        points = cloud.data.view("<f4").reshape(2, 4).tolist()
        assert points == [[number, 0, 0, 0.5], [0, number, 0, 0.25]], sender.name
        assert (image.encoding, image.width, image.height, image.step) == ("rgb8", 2, 2, 6)
        assert image.data.tolist() == list(range(number, number + 12)), sender.name


@pytest.mark.parametrize("language", LANGUAGES)
def test_echo_prints_the_fields_of_a_topic_of_every_language(programs, voices, language):
    assert voices("publish", [language])[0].ask(42) == "ok"
    echo = [*programs["command"], "topic", "echo", "/c/topic", "--history", "1", "--count", "1"]

    def says(*options):
        command = [*echo, "--timeout", "60", *options]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    message = json.loads(says("--json"))
    value = {"stamp_ns": 1, "sender": 2, "number": 42, "values": [1.5, 2.5, 3.5]}
    value["grid"] = [[1, 2], [3, 4]]
    assert message["value"] == value and message["bytes"] == 48
    line = says()
    assert "number: 42" in line and "[1.5, 2.5, 3.5]" in line, line


def test_a_topic_outlives_its_publishers_and_subscribers(voices):
    publishers, subscribers = voices("publish"), voices("subscribe")
    number = 100

    def talk():
        nonlocal number
        for publisher in publishers:
            number += 1
            assert publisher.ask(number) == "ok", publisher.name
            for subscriber in subscribers:
                assert subscriber.says() == f"{number} {SUM}", subscriber.name

    talk()
    for i, language in enumerate(LANGUAGES):
        publishers.pop(0).kill()
        talk()
        publishers.extend(voices("publish", [language]))
        subscribers.pop(0).kill()
        talk()
        subscribers.extend(voices("subscribe", [language]))
        talk()


@pytest.mark.skipif(
    not pathlib.Path("/usr/include/msgpack.hpp").exists(), reason="needs libmsgpack-cxx-dev"
)
def test_a_plan_is_understood_in_every_language_with_messagepack(voices):
    languages = ["rust", "cpp", "python"]
    publishers, subscribers = voices("plan", languages), voices("follow", languages)
    for number, publisher in enumerate(publishers):
        assert publisher.ask(number) == "ok", publisher.name
        for subscriber in subscribers:
            assert subscriber.says() == f"dock {number} 0.75", (publisher.name, subscriber.name)


def test_a_queue_outlives_its_producers_and_consumers(voices):
    for language in LANGUAGES:
        consumer, producers = voices("consume", [language])[0], voices("produce")
        for _ in LANGUAGES:
            for number, producer in enumerate(producers):
                assert producer.ask(number) == "ok", producer.name
                assert consumer.says() == f"{number} {SUM}", consumer.name
            producers.pop(0).kill()
        producers = voices("produce")
        consumer.kill()
        for producer in producers:
            assert producer.ask(1) == "owner died", producer.name
            producer.kill()


def test_a_service_outlives_its_servers_and_clients(voices):
    for language in LANGUAGES:
        server, clients = voices("serve", [language])[0], voices("call")
        for _ in LANGUAGES:
            for client in clients:
                assert client.ask(2) == "19.5", (server.name, client.name)
            clients.pop(0).kill()
        clients = voices("call")
        assert [client.ask(4) for client in clients] == ["21.5"] * len(clients)
        server.kill()
        for client in clients:
            assert client.ask(1) == "server died", (server.name, client.name)
            client.kill()


def test_a_lock_passes_from_the_dead_to_every_language(voices):
    number, before = 0, "ok 0"
    for _ in range(2):
        for language in [*LANGUAGES, *reversed(LANGUAGES)]:
            number += 1
            holder = voices("lock", [language])[0]
            assert holder.ask(number) == before, holder.name
            holder.kill()
            before = f"owner died {number}"
