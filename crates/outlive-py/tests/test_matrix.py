"""Every type in every language, tool and file: written by each language and read by each, printed
with echo, recorded, read by the package mcap, converted, played, seen in a viewer.

Writers and readers: matrix.{rs,c,cpp,py}. The ready-made messages are in test_conversation.py,
types of .msg files in test_types.py; scripts/recording-tests has them in files of others,
scripts/view-tests runs those with a viewer.
"""

import csv
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from foreign import MADE, VALUES, write_foreign
from test_conversation import LANGUAGES, voices  # noqa: F401, with the programs of this file

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parents[2]
C = REPO / "crates/outlive-c"

def own(number):
    """As echo prints it, once Rust has named the values of the enum."""
    spots = [{"x": float(number), "y": y} for y in (0.5, -1.5)]
    return {
        "limit": {"present": True, "value": 2.5}, "real": float(number), "big": 2**64 - 1,
        "at": spots, "grid": [[1, 2, 3], [-4, 5, 6]], "name": "grüß", "mode": "Hold", "on": True,
        "small": -7, "bytes": [number],
    }


def line(number):
    """As every reader prints it."""
    return f"2.5 {number} {2**64 - 1} {number} -1.5 -4 grüß 2 1 -7 {number} 1"


@pytest.fixture(scope="session")
def foreign(tmp_path_factory):
    pytest.importorskip("google.protobuf.descriptor_pb2")
    at = tmp_path_factory.mktemp("foreign")
    write_foreign(at)
    return at


@pytest.fixture(scope="session")
def programs(tmp_path_factory, foreign):
    """The command of each language's writer and reader."""
    if shutil.which("cargo") is None or not MADE.exists():
        pytest.skip("needs the repository and cargo")
    at = tmp_path_factory.mktemp("matrix")
    environment = {k: v for k, v in os.environ.items() if k != "OUTLIVE_DIR"}

    def run(*command, **extra):
        subprocess.run(command, check=True, cwd=REPO, env={**environment, **extra})

    run("cargo", "build", "-q", "-p", "outlive-c", "--lib", "--example", "matrix")
    run("cargo", "build", "-q", "-p", "outlive-cli", "--bin", "outlive")
    built = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", REPO / "target")) / "debug"
    run("scripts/install", str(at), OUTLIVE_BUILT=str(built))
    flags = ["-O2", "-Wall", "-Wextra", "-Werror", f"-I{at}/include", f"-L{at}/lib", "-loutlive"]
    flags.append(f"-Wl,-rpath,{at}/lib")
    run("cc", "-std=gnu11", str(C / "tests/c/matrix.c"), "-o", str(at / "matrix_c"), *flags)
    run("g++", "-std=c++20", str(C / "tests/cpp/matrix.cpp"), "-o", str(at / "matrix_cpp"), *flags)
    return {
        "rust": [str(built / "examples/matrix"), str(foreign)],
        "c": [str(at / "matrix_c"), str(foreign)],
        "cpp": [str(at / "matrix_cpp"), str(foreign)],
        "python": [sys.executable, str(HERE / "matrix.py"), str(foreign)],
        "command": [str(built / "outlive")],
    }


@pytest.fixture
def outlive_command(programs):
    def run(*words):
        command = [*programs["command"], *map(str, words)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    return run


def check_lines(readers, numbers, foreign):
    payloads = [(foreign / f"{encoding}.payload").read_bytes().hex() for encoding in VALUES]
    for number in numbers:
        for reader in readers:
            expected = [line(number), *payloads]
            assert [reader.says() for _ in expected] == expected, (number, reader.name)


def check_echo(run):
    def values(topic):
        out = run("topic", "echo", topic, "--history", 9, "--count", len(LANGUAGES),
                  "--timeout", 60, "--json", "--full")
        return [json.loads(one)["value"] for one in out.splitlines()]

    numbers = range(1, len(LANGUAGES) + 1)
    assert sorted(values("/x/own"), key=lambda v: v["real"]) == [own(n) for n in numbers]
    for encoding, expected in VALUES.items():
        for value in values(f"/x/{encoding}"):
            assert {key: value[key] for key in expected} == expected, encoding


def check_file(path, foreign):
    """By the package mcap and the libraries of the encodings."""
    reader = pytest.importorskip("mcap.reader")
    decoder = pytest.importorskip("mcap_ros2.decoder")
    import pyarrow as pa
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    seen = {}
    with open(path, "rb") as file:
        for schema, channel, message in reader.make_reader(file, validate_crcs=True).iter_messages():
            seen.setdefault(channel.topic, []).append((schema, channel, message))
    assert {topic: len(all) for topic, all in seen.items()} == {
        topic: len(LANGUAGES) for topic in ["/x/own", *(f"/x/{e}" for e in VALUES)]}
    ros = decoder.DecoderFactory()

    def cdr(schema, channel, message):
        return ros.decoder_for(channel.message_encoding, schema)(message.data)

    numbers = []
    for one in seen["/x/own"]:
        m = cdr(*one)
        numbers.append(int(m.real))
        assert (m.limit.present, m.limit.value, m.big) == (True, 2.5, 2**64 - 1), m
        assert [(s.x, s.y) for s in m.at] == [(m.real, 0.5), (m.real, -1.5)], m
        assert (list(m.grid), m.name, m.mode) == ([1, 2, 3, -4, 5, 6], "grüß", 2), m
        assert (m.on, m.small, list(m.bytes)) == (True, -7, [int(m.real)]), m
    assert sorted(numbers) == list(range(1, len(LANGUAGES) + 1))
    encodings = {"protobuf": "protobuf", "json": "jsonschema", "cdr": "ros2msg",
                 "flatbuffer": "flatbuffer", "arrow": "arrow"}
    for encoding, schema_encoding in encodings.items():
        payload = (foreign / f"{encoding}.payload").read_bytes()
        for schema, channel, message in seen[f"/x/{encoding}"]:
            assert message.data == payload, encoding
            assert (channel.message_encoding, schema.encoding) == (encoding, schema_encoding)
    schema, _, message = seen["/x/protobuf"][0]
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(schema.data).file:
        pool.AddSerializedFile(file.SerializeToString())
    plan = message_factory.GetMessageClass(pool.FindMessageTypeByName(schema.name))
    plan = plan.FromString(message.data)
    assert {"goal": plan.goal, "steps": list(plan.steps)} == VALUES["protobuf"]
    part = cdr(*seen["/x/cdr"][0])
    assert {"x": part.x, "n": list(part.n)} == VALUES["cdr"]
    assert json.loads(seen["/x/json"][0][2].data) == VALUES["json"]
    assert seen["/x/flatbuffer"][0][0].data == (MADE / "plan.bfbs").read_bytes()
    table = pa.ipc.open_stream(seen["/x/arrow"][0][2].data).read_all()
    assert {key: table[key].to_pylist() for key in VALUES["arrow"]} == VALUES["arrow"]


def check_tables(dir):
    """What `convert` made."""
    def rows(topic):
        text = (dir / f"{topic}.csv").read_text()
        return list(csv.DictReader(io.StringIO(text)))

    assert [row["limit.value"] for row in rows("x/own")] == ["2.5"] * len(LANGUAGES)
    for encoding, expected in VALUES.items():
        for row in rows(f"x/{encoding}"):
            for key, value in expected.items():
                if isinstance(value, list):
                    assert json.loads(row[key]) == value, (encoding, key)
                elif isinstance(value, str):
                    assert row[key] == value, (encoding, key)
    assert rows("x/flatbuffer")[0]["next.seconds"] == "2.5"


def test_every_type_is_the_same_in_every_language_tool_and_file(
        programs, voices, foreign, outlive_command, tmp_path):
    writers, readers = voices("write"), voices("read")
    for number, writer in enumerate(writers, 1):
        assert writer.ask(number) == "ok", writer.name
    numbers = range(1, len(LANGUAGES) + 1)
    check_lines(readers, numbers, foreign)
    check_echo(outlive_command)

    path = tmp_path / "run.mcap"
    all = len(LANGUAGES) * (1 + len(VALUES))
    outlive_command("record", "--all", "--history", 9, "--count", all, "-o", path)
    check_file(path, foreign)
    outlive_command("convert", path, "--output", tmp_path / "tables")
    check_tables(tmp_path / "tables")

    # Their topics go with them; those of the file are the same types again.
    for voice in [*writers, *readers]:
        voice.kill()
    outlive_command("clean")
    readers = voices("read")
    outlive_command("play", path, "--wait-for-subscribers", len(readers), "--timeout", 60)
    check_lines(readers, numbers, foreign)
    print(f"matrix: {1 + len(VALUES)} types, {len(writers)} writers, {len(readers)} readers, "
          "echo, recorded, read by mcap, converted, played")


def test_every_type_of_every_language_is_seen_in_view(voices, viewer):
    buffer = (MADE / "plan.bfbs").read_bytes(), (MADE / "plan.bin").read_bytes()
    for number, writer in enumerate(voices("write"), 1):
        assert writer.ask(number) == "ok", writer.name
        seen = viewer.one_of_each(["/x/own", *(f"/x/{encoding}" for encoding in VALUES)])
        # JavaScript has no integers beyond 2^53.
        assert seen["/x/own"] == own(number) | {"big": str(2**64 - 1)}, writer.name
        assert seen["/x/json"] == VALUES["json"], writer.name
        plan, part = seen["/x/protobuf"], seen["/x/cdr"]
        assert {"goal": plan.goal, "steps": list(plan.steps)} == VALUES["protobuf"], writer.name
        assert {"x": part.x, "n": list(part.n)} == VALUES["cdr"], writer.name
        assert seen["/x/flatbuffer"] == buffer, writer.name
        # No viewer reads Arrow: as JSON, whose schema is known from the first table on.
        table = seen["/x/arrow"]
        assert {key: table[key] for key in VALUES["arrow"]} == VALUES["arrow"], writer.name
    schema = json.loads(viewer.channels["/x/arrow"]["schema"])
    assert schema["properties"]["x"] == {"type": "array", "items": {"type": "number"}}, schema
