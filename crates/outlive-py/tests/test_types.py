"""Messages that `outlive types import` wrote: the same in all languages, sent by each to each.

Each voice is a process: crates/outlive-cli/tests/types/voice.{rs,cpp,c,py}, plan.cpp and route.cpp.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from test_conversation import voices  # noqa: F401, with the programs of this file

REPO = pathlib.Path(__file__).resolve().parents[3]
TYPES = REPO / "crates/outlive-cli/tests/types"
MSGPACK = pathlib.Path("/usr/include/msgpack.hpp")
FASTCDR = pathlib.Path("/usr/include/fastcdr/Cdr.h")


@pytest.fixture(scope="session")
def programs(tmp_path_factory):
    """The command of each language's voice."""
    if shutil.which("cargo") is None or not TYPES.exists():
        pytest.skip("needs the repository and cargo")
    at = tmp_path_factory.mktemp("voices")
    environment = {k: v for k, v in os.environ.items() if k != "OUTLIVE_DIR"}

    def run(*command, **extra):
        subprocess.run(command, check=True, cwd=REPO, env={**environment, **extra})

    run("cargo", "build", "-q", "-p", "outlive-c", "--lib")
    run("cargo", "build", "-q", "-p", "outlive-cli", "--bin", "outlive", "--example", "voice")
    built = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", REPO / "target")) / "debug"
    run("scripts/install", str(at), OUTLIVE_BUILT=str(built))
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", f"-I{at}/include", f"-I{TYPES}/golden"]
    flags += [f"-L{at}/lib", "-loutlive", f"-Wl,-rpath,{at}/lib"]
    run("cc", "-std=gnu11", str(TYPES / "voice.c"), "-o", str(at / "voice_c"), *flags)
    run("g++", "-std=c++20", str(TYPES / "voice.cpp"), "-o", str(at / "voice_cpp"), *flags)
    golden = flags.index(f"-I{TYPES}/golden")
    if MSGPACK.exists():
        flags[golden] = f"-I{TYPES}/golden_msgpack"
        source = str(TYPES / "plan.cpp")
        run("g++", "-std=c++20", source, "-o", str(at / "plan_cpp"), *flags)
    if FASTCDR.exists():
        flags[golden] = f"-I{TYPES}/golden_cdr"
        source = str(TYPES / "route.cpp")
        run("g++", "-std=c++20", source, "-o", str(at / "route_cpp"), *flags, "-lfastcdr")
    return {
        "rust": [str(built / "examples/voice")],
        "c": [str(at / "voice_c")],
        "cpp": [str(at / "voice_cpp")],
        "plan_cpp": [str(at / "plan_cpp")],
        "route_cpp": [str(at / "route_cpp")],
        "python": [sys.executable, str(TYPES / "voice.py")],
        "command": [str(built / "outlive")],
    }


def test_descriptions_defaults_and_constants_are_the_same_in_all_languages(programs):
    def layout(language):
        command = [*programs[language], "layout"]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return out.splitlines()

    rust = layout("rust")
    assert len(rust) == 15 and rust[0].startswith("arm_msgs/msg/Arm outlive-type 1 align 8|")
    assert rust[-1] == '-9223372036854775808 18446744073709551615 say "hi" # loud'
    assert layout("cpp") == rust
    assert layout("python") == rust
    # C has a type and no text of it; ports compare the two, below.
    named = [f"{line.split()[0]} {line.split()[-1]}" for line in rust[:-1]]
    assert layout("c") == [*named, rust[-1]]


def test_a_message_of_every_language_is_read_in_every_language_tool_and_file(
        voices, programs, tmp_path):
    def run(line):
        command = [*programs["command"], *line.split()]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def check(viewers, number):
        for viewer in viewers:
            line = f"{number} base 0.5 0 1 elbow 1 1 {number}"
            assert viewer.says() == line, (number, viewer.name)

    senders, viewers = voices("send"), voices("see")
    for number, sender in enumerate(senders, 7):
        assert sender.ask(number) == "ok", sender.name
        check(viewers, number)
    said = run("topic echo /t/arm --history 1 --count 1 --timeout 60 --field joints[1].name")
    assert "elbow" in said, said

    path = tmp_path / "arm.mcap"
    run(f"record /t/arm --history 9 --count {len(senders)} -o {path}")
    reader = pytest.importorskip("mcap.reader")
    factory = pytest.importorskip("mcap_ros2.decoder").DecoderFactory()
    with open(path, "rb") as file:
        all = reader.make_reader(file, decoder_factories=[factory]).iter_decoded_messages()
        arms = [arm for _, channel, _, arm in all if channel.topic == "/t/arm"]
    assert [arm.header.stamp.sec for arm in arms] == [*range(7, 7 + len(senders))]
    assert {(arm.joints[1].name, arm.joints[1].position) for arm in arms} == {("elbow", 0.5)}

    for voice in [*senders, *viewers]:
        voice.kill()
    run("clean")
    viewers = voices("see")
    run(f"play {path} --wait-for-subscribers {len(viewers)} --timeout 60")
    for number in range(7, 7 + len(senders)):
        check(viewers, number)


def test_every_type_of_every_language_is_read_in_every_language_tool_and_file(
        voices, programs, tmp_path):
    def run(line):
        command = [*programs["command"], *line.split()]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    command = [*programs["c"], "layout"]
    layout = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    expected = layout.splitlines()[:-1]
    names = [line.split()[0] for line in expected]
    givers, takers = voices("give"), voices("take")

    def check(takers):
        for taker in takers:
            assert [taker.says() for _ in expected] == expected, taker.name

    for giver in givers:
        assert giver.ask(1) == "ok", giver.name
        check(takers)
    for name in names:
        said = run(f"topic echo /all/{name} --history 9 --count {len(givers)} --timeout 60 --json")
        values = {line[line.index('"value"'):] for line in said.splitlines()}
        assert len(values) == 1 and len(said.splitlines()) == len(givers), (name, said)

    path = tmp_path / "all.mcap"
    run(f"record --all --history 9 --count {len(givers) * len(names)} -o {path}")
    reader = pytest.importorskip("mcap.reader")
    factory = pytest.importorskip("mcap_ros2.decoder").DecoderFactory()
    seen = {}
    with open(path, "rb") as file:
        all = reader.make_reader(file, decoder_factories=[factory]).iter_decoded_messages()
        for _, channel, _, _ in all:
            seen[channel.topic] = seen.get(channel.topic, 0) + 1
    assert seen == {f"/all/{name}": len(givers) for name in names}

    for voice in [*givers, *takers]:
        voice.kill()
    run("clean")
    takers = voices("take")
    run(f"play {path} --wait-for-subscribers {len(takers)} --timeout 60")
    for _ in givers:
        check(takers)


def test_every_type_of_every_language_is_seen_in_view(voices, programs, viewer):
    command = [*programs["c"], "layout"]
    layout = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    topics = [f"/all/{line.split()[0]}" for line in layout.splitlines()[:-1]]
    expected = {}
    for giver in voices("give"):
        assert giver.ask(1) == "ok", giver.name
        seen = viewer.one_of_each(topics)
        assert seen == expected or not expected, giver.name
        expected = seen

    def part(topic, *names):
        message = expected[f"/all/arm_msgs/{topic}"]
        return {name: message[name] for name in names}

    assert part("msg/Defaults", "gains", "names", "speeds", "speeds_count") == {
        "gains": [1, -2, 3], "names": ["left", "right"], "speeds": [0.5, 1.5, 0, 0],
        "speeds_count": 2}
    numbers = {"b": True, "o": 1, "c": 65, "f32": 0.25, "f64": -1.5}
    for bits in (8, 16, 32, 64):
        numbers |= {f"u{bits}": bits, f"i{bits}": -bits}
    assert part("msg/Numbers", *numbers) == numbers
    arm, unit = expected["/all/arm_msgs/msg/Arm"], {"x": 0, "y": 0, "z": 0, "w": 1}
    assert [joint["name"] for joint in arm["joints"]] == ["elbow", "elbow"]
    assert arm["tool"]["orientation"] == unit
    assert part("msg/Battery", "voltage", "cells") == {"voltage": -1, "cells": [0] * 12}
    assert part("msg/Text", "lines", "lines_count") == {"lines": [""] * 3, "lines_count": 0}
    assert part("srv/Reach_Request", "goal")["goal"]["orientation"] == unit


@pytest.mark.skipif(not MSGPACK.exists(), reason="needs libmsgpack-cxx-dev")
def test_messagepack_of_every_language_is_read_in_every_language_that_has_it(voices):
    languages = ["rust", "plan_cpp", "python"]
    senders, viewers = voices("plan", languages), voices("follow", languages)
    for number, sender in enumerate(senders, 5):
        assert sender.ask(number) == "ok", sender.name
        for viewer in viewers:
            assert viewer.says() == f"{number} dock 0.5 b 295", (sender.name, viewer.name)


def test_cdr_of_every_language_is_read_in_every_language_that_has_it(voices):
    languages = ["rust", "python", *["route_cpp"] * FASTCDR.exists()]
    senders, viewers = voices("route", languages), voices("ride", languages)
    for number, sender in enumerate(senders, 5):
        assert sender.ask(number) == "ok", sender.name
        said = {viewer.says() for viewer in viewers}
        # The same bytes, whoever sends them; Rust's are compared with ours in types_cdr.rs.
        assert said == {f"{number} dock ä yard {2016874 + 621 * number}"}, sender.name
