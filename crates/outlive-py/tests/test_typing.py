"""What a type checker says of programs, and that the stub has the documentation."""

import ast
import inspect
import os
import pathlib
import subprocess
import sys

import outlive

STUB = pathlib.Path(outlive.__file__).with_name("__init__.pyi")

PROGRAM = """
import asyncio
import dataclasses
import numpy as np
import outlive
from outlive import msg

@dataclasses.dataclass
class Plan:
    goal: str

@dataclasses.dataclass
class Goal:
    place: str

node = outlive.Node("typed")
plans = outlive.Publisher(node, "/plan", Plan)
plans.publish(Plan("dock"))
plans.publish("dock")  # wrong
follower: outlive.Subscriber[Plan] = outlive.Subscriber(node, "/plan", Plan, depth=4)
for plan in follower:
    goal: str = plan.value.goal
    number: int = plan.value.goal  # wrong
camera = outlive.Publisher(node, "/camera", msg.Image)
camera.publish(msg.Image.of(np.zeros((3, 4), np.uint8), "mono8"))
with msg.Image.loan(camera, 4, 3, "rgb8", frame_id="front") as pixels:
    pixels[:] = 1
msg.Image.loan(plans, 4, 3, "rgb8")  # wrong
image = outlive.Subscriber(node, "/camera", msg.Image).receive(1.0)
image.value.width  # wrong: it may be None
assert image is not None and image.value.pixels.shape == (3, 4) and image.value.width == 4
outlive.Publisher(node, "/pose", msg.Pose).publish(msg.Pose.new(position=(1, 2, 3)))
pose = outlive.Subscriber(node, "/pose", msg.Pose).latest()
assert pose is None or pose.value["position"]["x"] == 1
outlive.Publisher(node, "/speed", np.float64).publish(1.5)
outlive.Publisher(node, "/speeds", "f8", (3,)).publish([1.5, 2.0, 2.5])
outlive.Publisher(node, "/grid", np.uint8, (3, 4)).publish(np.zeros((3, 4)))
outlive.Publisher(node, "/pair", [("x", "f8")], type_name="pair").publish((1.0,))
outlive.Publisher(node, "/raw", bytes).publish(b"x")
outlive.Publisher(node, "/raw", bytes).publish(3)  # wrong
outlive.Publisher(node, "/any").publish({"a": 1})
outlive.Producer(node, "/jobs", Plan).send(Plan("x"))
job = outlive.Consumer[Plan](node, "/jobs", Plan).receive(1.0)
assert job is None or job.goal == "x"
client: outlive.Client[Goal, Plan] = outlive.Client(node, "/plan", Goal, Plan)
client.call(Goal("dock")).goal
client.call(3)  # wrong
client.call(Goal("dock")).speed  # wrong
reply = client.receive(1.0)
reply.value  # wrong: it may be None
assert reply is None or reply.value.goal == "dock"
for request in outlive.Server(node, "/plan", Goal, Plan):
    request.respond(Plan(request.value.place))
    request.respond("dock")  # wrong
outlive.Client(node, "/add", (np.float64, (2,)), np.float64).call([1.0, 2.0])
outlive.Client(node, "/goals", Plan, float).call(Plan("x")) + 1
outlive.Client(node, "/goals", Plan, float).call("x")  # wrong
outlive.Client(node, "/count", np.int64, Plan, resume=True).call(3).goal
outlive.Client(node, "/any").call({"a": 1})

async def use() -> str:
    asyncio.create_task(client.wait_for_server_async())
    plan = await asyncio.create_task(client.call_async(Goal("dock")))
    number: int = plan.goal  # wrong
    async for reply in client:
        reply.value.goal
    async for request in outlive.Server(node, "/plan", Goal, Plan):
        request.respond(Plan(request.value.place))
    (await outlive.Consumer(node, "/jobs", Plan).receive_async()).goal
    return (await outlive.Subscriber(node, "/plan", Plan).receive_async()).value.goal
"""


def test_a_type_checker_finds_what_is_wrong_and_nothing_else(tmp_path):
    program = tmp_path / "typed.py"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), str(program)]
    out = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    errors = [line for line in out.stdout.splitlines() if ": error: " in line]
    found = {int(line.split(":")[1]) for line in errors if line.startswith("typed.py:")}
    wrong = {n for n, line in enumerate(PROGRAM.splitlines(), 1) if "# wrong" in line}
    assert found == wrong, out.stdout + out.stderr


def test_ports_name_what_they_carry_at_run_time_too(node):
    plans: outlive.Publisher[dict] = outlive.Publisher[dict](node, "/plans")
    assert plans.publish({"goal": "dock"}) == 0
    client: outlive.Client[str, dict] = outlive.Client[str, dict](node, "/plan")
    server: outlive.Server[str, dict] = outlive.Server[str, dict](node, "/plan")
    client.send("dock")
    assert server.receive(1.0).value == "dock"


def documented(node, owner):
    """The classes and functions of the stub, and the documentation of what there is."""
    for child in node.body:
        if not isinstance(child, (ast.ClassDef, ast.FunctionDef)):
            continue
        there = vars(owner).get(child.name)
        # What a static method is of, not the documentation of `staticmethod`.
        there = getattr(there, "__func__", there)
        text = getattr(there, "__doc__", None)
        names = {d.id for d in child.decorator_list if isinstance(d, ast.Name)}
        if text and not child.name.startswith("__") and "overload" not in names:
            yield child, inspect.cleandoc(text)
        if isinstance(child, ast.ClassDef) and there is not None:
            yield from documented(child, there)


def edit(node, text):
    """Where it goes: the first line, the line behind the last, what is there then."""
    first = node.body[0]
    is_constant = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    indent = " " * (node.col_offset + 4)
    end = ['"""'] if "\n" in text else []
    made = [f'"""{text}' + ("" if end else '"""'), *end]
    made = [f"{indent}{line}".rstrip() for line in "\n".join(made).splitlines()]
    if is_constant and first.value.value is Ellipsis:
        return first.lineno - 1, first.lineno, [None, *made]
    if is_constant:
        return first.lineno - 1, first.end_lineno, made
    at = min([first.lineno, *(d.lineno for d in getattr(first, "decorator_list", []))]) - 1
    return at, at, [*made, ""]


def with_documentation(text):
    """The stub with the documentation of what there is."""
    lines = text.splitlines()
    edits = [edit(*found) for found in documented(ast.parse(text), outlive)]
    # From the end; what replaces a line before what is put in front of it.
    for begin, end, made in sorted(edits, key=lambda e: (e[0], e[1]), reverse=True):
        if made[0] is None:
            made[0] = lines[begin].removesuffix(" ...")
        lines[begin:end] = made
    return "\n".join(lines) + "\n"


def test_the_stub_has_the_documentation_of_what_there_is():
    made = with_documentation(STUB.read_text())
    if os.environ.get("OUTLIVE_WRITE_STUB"):
        STUB.write_text(made)
    assert made == STUB.read_text(), "out of date: run this test with OUTLIVE_WRITE_STUB=1"


def names(body):
    """What a class or module of the stub says that it has."""
    for node in body:
        targets = getattr(node, "targets", [getattr(node, "target", node)])
        yield from (getattr(t, "id", getattr(t, "name", None)) for t in targets)


def test_the_stub_names_what_there_is():
    stub = {c.name: c for c in ast.parse(STUB.read_text()).body if isinstance(c, ast.ClassDef)}
    for name, known in stub.items():
        there = {n for n in vars(getattr(outlive, name, object)) if not n.startswith("_")}
        bases = [stub[b.id] for b in known.bases if getattr(b, "id", None) in stub]
        said = {n for owner in (known, *bases) for n in names(owner.body)}
        assert not there - said, f"missing in {STUB.name}, class {name}"
