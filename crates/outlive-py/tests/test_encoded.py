"""Values in third-party encodings: Protocol Buffers, JSON, Arrow, CDR."""

import json
import pathlib
import subprocess
import sys
import threading
import typing

import numpy as np
import pytest

import outlive

SCHEMA = {"type": "object", "properties": {"x": {"type": "number"}}}


@pytest.fixture
def protos():
    """Two versions of `robot.Plan`, which imports a time stamp, as protoc would have made them."""
    pytest.importorskip("google.protobuf")
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

    def make(goal_type):
        file = descriptor_pb2.FileDescriptorProto(
            name="plan.proto", package="robot", syntax="proto3", dependency=[timestamp_pb2.DESCRIPTOR.name]
        )
        plan = file.message_type.add(name="Plan")
        plan.field.add(name="goal", number=1, label=1, type=goal_type)
        plan.field.add(name="points", number=2, label=3, type=1)
        stamp = ".google.protobuf.Timestamp"
        plan.field.add(name="at", number=3, label=1, type=11, type_name=stamp)
        pool = descriptor_pool.DescriptorPool()
        pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
        pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())
        found = pool.FindMessageTypeByName("robot.Plan")
        return message_factory.GetMessageClass(found)

    return make(9), make(5)


def test_messages_of_protocol_buffers_arrive_as_objects_of_their_class(node, protos):
    Plan, Other = protos
    publisher = outlive.Publisher(node, "/plan", Plan)
    subscriber = outlive.Subscriber(node, "/plan", Plan)
    plan = Plan(goal="dock", points=[1.5, -2.0])
    plan.at.FromSeconds(7)
    publisher.publish(plan)
    got = subscriber.receive(timeout=5.0).value
    assert isinstance(got, Plan) and got == plan
    with pytest.raises(outlive.TypeMismatch, match="send an object of Plan"):
        publisher.publish({"goal": "dock"})
    with pytest.raises(outlive.TypeMismatch) as refused:
        outlive.Subscriber(node, "/plan", Other)
    assert "robot.Plan has 'string goal = 1', this program has 'int32 goal = 1'" in str(refused.value)
    with pytest.raises(outlive.InvalidArgument, match="leave type_name out"):
        outlive.Subscriber(node, "/plan", Plan, type_name="plan")


def test_bytes_that_are_no_value_are_corrupt_and_the_next_value_arrives(node, protos):
    Plan, _ = protos
    raw = outlive.Encoded("protobuf", "robot.Plan")
    subscriber = outlive.Subscriber(node, "/plan", Plan)
    publisher = outlive.Publisher(node, "/plan", raw)
    publisher.publish(b"\x0a\xff")
    publisher.publish(Plan(goal="next").SerializeToString())
    first, second = subscriber.receive(timeout=5.0), subscriber.receive(timeout=5.0)
    with pytest.raises(outlive.Corrupt, match="2 bytes are not a valid robot.Plan .protobuf."):
        first.value
    assert second.value.goal == "next"


def test_json_has_its_schema_and_another_is_refused(node):
    goal = outlive.Encoded("json", "robot/Goal", SCHEMA)
    subscriber = outlive.Subscriber(node, "/goal", goal)
    outlive.Publisher(node, "/goal", goal).publish({"x": 1.5, "tags": ["ä"]})
    assert subscriber.receive(timeout=5.0).value == {"x": 1.5, "tags": ["ä"]}
    # Written with blanks, or not given at all, it is the same.
    text = json.dumps(SCHEMA, indent=4)
    outlive.Publisher(node, "/goal", outlive.Encoded("json", "robot/Goal", text))
    outlive.Publisher(node, "/goal", outlive.Encoded("json", "robot/Goal"))
    with pytest.raises(outlive.TypeMismatch, match="this program has '.*\"array\""):
        outlive.Publisher(node, "/goal", outlive.Encoded("json", "robot/Goal", {"type": "array"}))


@pytest.mark.parametrize("value", [float("nan"), {"x": [1.0, float("-inf")]}])
def test_numbers_that_json_does_not_have_are_refused(node, value):
    publisher = outlive.Publisher(node, "/goal", outlive.Encoded("json", "robot/Goal"))
    with pytest.raises(outlive.InvalidArgument, match="JSON has no nan"):
        publisher.publish(value)
    assert publisher.published == 0


def test_a_class_that_knows_its_json_schema_is_a_type(node):
    class Goal:  # as pydantic's
        def __init__(self, x):
            self.x = x

        @staticmethod
        def model_json_schema():
            return SCHEMA

        def model_dump(self):
            return {"x": self.x}

        def model_dump_json(self):
            return json.dumps({"x": self.x})

        @classmethod
        def model_validate_json(cls, data):
            return cls(json.loads(data)["x"])

    subscriber = outlive.Subscriber(node, "/goal", Goal, type_name="robot/Goal")
    publisher = outlive.Publisher(node, "/goal", Goal, type_name="robot/Goal")
    publisher.publish(Goal(1.5))
    assert subscriber.receive(timeout=5.0).value.x == 1.5
    with pytest.raises(outlive.TypeMismatch, match="send an object of Goal"):
        publisher.publish({"x": 1.5})
    with pytest.raises(outlive.InvalidArgument, match="JSON has no nan"):
        publisher.publish(Goal([1.5, (float("inf"),)]))
    assert publisher.published == 1


def test_numbers_that_json_does_not_have_are_refused_in_models_of_pydantic(node):
    pydantic = pytest.importorskip("pydantic")

    class Leg(pydantic.BaseModel):
        x: float

    class Goal(pydantic.BaseModel):
        x: typing.Optional[float] = None
        legs: typing.List[Leg] = []

    class InWords(Goal, ser_json_inf_nan="strings"):
        pass

    publisher = outlive.Publisher(node, "/goal", Goal)
    subscriber = outlive.Subscriber(node, "/goal", Goal)
    for bad in (Goal(x=float("nan")), Goal(legs=[Leg(x=1.5), Leg(x=float("-inf"))])):
        with pytest.raises(outlive.InvalidArgument, match="JSON has no nan"):
            publisher.publish(bad)
    for good in (Goal(), Goal(x=1e300, legs=[Leg(x=-0.0)])):
        publisher.publish(good)
        assert subscriber.receive(timeout=5.0).value == good
    subscriber = outlive.Subscriber(node, "/words", InWords)
    outlive.Publisher(node, "/words", InWords).publish(InWords(x=float("inf")))
    assert subscriber.receive(timeout=5.0).value == InWords(x=float("inf"))


def test_a_table_of_arrow_is_read_in_place(node):
    pa = pytest.importorskip("pyarrow")
    schema = pa.schema([("x", pa.float64()), ("name", pa.string())])
    table = pa.table({"x": np.arange(1000.0), "name": ["a"] * 1000}, schema=schema)
    publisher = outlive.Publisher(node, "/table", schema)
    subscriber = outlive.Subscriber(node, "/table", schema)
    publisher.publish(table)
    sample = subscriber.receive(timeout=5.0)
    payload = sample.array
    got = sample.value
    del sample
    assert got == table
    begin = payload.__array_interface__["data"][0]
    column = got.column("x").chunk(0).buffers()[1].address
    assert begin <= column < begin + payload.nbytes, "a copy"
    assert begin % 64 == 0 and column % 8 == 0
    other = table.rename_columns(["y", "name"])
    with pytest.raises(outlive.TypeMismatch, match="its schema is y: double"):
        publisher.publish(other)


def test_what_is_no_table_is_refused(node):
    pa = pytest.importorskip("pyarrow")
    publisher = outlive.Publisher(node, "/table", pa.schema([("x", pa.float64())]))
    for wrong in ([1.0], {"x": [1.0]}, None, pa.array([1.0])):
        with pytest.raises(outlive.InvalidArgument, match="send a Table"):
            publisher.publish(wrong)


def test_a_table_whose_offsets_are_wrong_is_corrupt_and_the_next_arrives(node):
    pa = pytest.importorskip("pyarrow")
    schema = pa.schema([("name", pa.string())])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write(pa.table({"name": ["a", "bc", "def"]}, schema=schema))
    good = sink.getvalue().to_pybytes()
    offsets = np.array([0, 1, 3, 6], np.int32).tobytes()
    assert good.count(offsets) == 1
    wrong = good.replace(offsets, np.array([0, 1, 3, 2**30], np.int32).tobytes())
    subscriber = outlive.Subscriber(node, "/table", schema)
    raw = outlive.Encoded("arrow", "arrow", schema.serialize())
    publisher = outlive.Publisher(node, "/table", raw)
    publisher.publish(wrong)
    publisher.publish(good)
    first, second = subscriber.receive(timeout=5.0), subscriber.receive(timeout=5.0)
    with pytest.raises(outlive.Corrupt, match="bytes are not a valid arrow .arrow."):
        first.value
    assert second.value.column("name").to_pylist() == ["a", "bc", "def"]


def test_bytes_of_any_encoding_travel_as_they_are_in_topics_queues_and_services(node):
    goal = outlive.Encoded("cdr", "my_msgs/msg/Goal", "float64 x\n")
    payload = b"\x00\x01\x00\x00" + np.float64(1.5).tobytes()
    subscriber = outlive.Subscriber(node, "/goal", goal)
    outlive.Publisher(node, "/goal", goal).publish(payload)
    assert subscriber.receive(timeout=5.0).value == payload
    consumer = outlive.Consumer(node, "/goals", goal)
    outlive.Producer(node, "/goals", goal).send(payload)
    assert consumer.receive(timeout=5.0) == payload
    server = outlive.Server(node, "/twice", goal, goal)

    def answer():
        request = server.receive(timeout=5.0)
        request.respond(request.value + request.value)

    answering = threading.Thread(target=answer)
    answering.start()
    client = outlive.Client(node, "/twice", goal, goal)
    assert client.call(payload, timeout=5.0) == payload + payload
    answering.join()
    with outlive.Publisher(node, "/goal", goal).loan(12) as room:
        room[:] = np.frombuffer(payload, np.uint8)
    assert subscriber.receive(timeout=5.0).value == payload
    for encoding, name, schema, why in [
        ("xml", "x", b"", "there is no encoding 'xml'"),
        ("slice", "f64", b"", "is not a third-party encoding"),
        ("flatbuffer", "x.Y", b"table Y {}", "not a binary schema"),
        ("protobuf", "x.Y", b"?", "not a FileDescriptorSet"),
        ("json", "x", "{", "its end is missing"),
        ("cdr", "x", b"x" * 70000, "has 70000 bytes"),
    ]:
        with pytest.raises(outlive.InvalidArgument, match=why):
            outlive.Publisher(node, "/other", outlive.Encoded(encoding, name, schema))
    with pytest.raises(outlive.InvalidArgument, match="third-party encodings"):
        outlive.Publisher(node, "/goal", goal, shape=(3,))


def test_the_program_in_the_book():
    page = pathlib.Path(__file__).resolve().parents[3] / "docs/book/languages.md"
    section = page.read_text().split("## Third-party encodings\n")[1].split("\n## ")[0]
    program = section.split("```python\n")[1].split("```")[0]
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert out.returncode == 0 and out.stdout == "{'goal': 'dock'} dock\n", out.stdout + out.stderr
