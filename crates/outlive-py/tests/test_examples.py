"""The examples run and end as they say."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import outlive
import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"
REPO = pathlib.Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    "name, says",
    [
        ("async_service", "asyncio: 3 answers, the last done in 0.2 s; then the server left"),
        ("hello", "hello: x 1.0 m, y 2.0 m, heading 0.5 rad"),
        ("camera", "camera: 3 frames to 2 viewers without a copy"),
        ("many_producers", "many producers: 300 messages of 3 producers, each in order"),
        ("request_response", "request/response: 5.0 m, then the server died"),
        ("robust_lock", "robust lock: left 50, right 50"),
        ("shutdown", "shutdown: after 3 messages the worker left"),
        ("watching_a_death", "watching: the camera died; its last words were 'still here'"),
    ],
)
def test_example(name, says):
    command = [sys.executable, str(EXAMPLES / f"{name}.py")]
    out = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert out.returncode == 0 and says in out.stdout, out.stdout + out.stderr


@pytest.mark.parametrize(
    "page, says",
    [("README.md", "pixel 255\n"), ("docs/book/services.md", "[1, 4, 9]\n")],
)
def test_the_program_in_a_page(page, says):
    program = (REPO / page).read_text().split("```python\n")[1].split("```")[0]
    command = [sys.executable, "-c", program]
    out = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert out.returncode == 0 and out.stdout == says, out.stdout + out.stderr


def test_the_program_that_gets_a_newcomer_started(tmp_path):
    page = (REPO / "docs/book/getting-started.md").read_text()
    program = page.split("```python\n")[1].split("```")[0]
    root = str(tmp_path / "root")
    started = subprocess.Popen([sys.executable, "-c", program], env=os.environ | {"OUTLIVE_DIR": root})
    try:
        node = outlive.Node("planner", root=root)
        pose = np.dtype([("x", "f8"), ("y", "f8"), ("heading", "f8")])
        poses = outlive.Subscriber(node, "/robot/pose", pose, type_name="example/Pose")
        assert poses.receive(timeout=60.0).array.tolist() == (1.0, 2.0, 0.5)
    finally:
        started.kill()
        started.wait()
