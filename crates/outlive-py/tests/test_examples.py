"""The examples run and end as they say: programs, and those in the documentation of every name."""

import doctest
import inspect
import os
import pathlib
import re
import subprocess
import sys
import time
import traceback

import numpy as np
import outlive
import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"
REPO = pathlib.Path(__file__).resolve().parents[3]

HANGS_S = 60.0
"""An example in the documentation that takes longer does not end."""
DONE = "as it says"


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


def documented():
    """Name and documentation of the modules, their public classes and functions, and the members of
    those classes. (``outlive.bench`` is a program.)"""
    found = {"outlive": outlive.__doc__, "msg": outlive.msg.__doc__}
    for name, what in public().items():
        found[name] = what.__doc__
        for owner in ours(what):
            for member, of in vars(owner).items():
                of = getattr(of, "__func__", of)
                is_ours = inspect.isroutine(of) or inspect.isdatadescriptor(of)
                if member[0] != "_" and is_ours and of.__doc__ not in found.values():
                    found[f"{name}.{member}"] = of.__doc__
    return found


def ours(what):
    """A class and its bases, without those of Python; none of a function."""
    return [of for of in getattr(what, "__mro__", ()) if of.__module__.startswith("outlive")]


def public():
    """The public classes and functions by name."""
    modules = (("", outlive), ("msg.", outlive.msg))
    names = ((start + name, getattr(of, name)) for start, of in modules for name in of.__all__)
    return {name: what for name, what in names if callable(what)}


def examples():
    """The documentation with examples, by name."""
    return {name: text for name, text in documented().items() if ">>> " in (text or "")}


def run_examples(directory):
    """Runs each in a process and domain of its own; a file of its name has what it said."""
    for number, (name, text) in enumerate(examples().items()):
        said = os.open(f"{directory}/{name}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        child = os.fork()
        if child == 0:
            os.dup2(said, 1)
            os.dup2(said, 2)
            os.environ["OUTLIVE_DIR"] = f"{directory}/{number}"
            run_example(name, text)
        if not has_ended(child):
            os.kill(child, 9)
            os.waitpid(child, 0)
            os.write(said, f"not done after {HANGS_S} s".encode())
        os.close(said)


def run_example(name, text):
    """Runs one and ends this process."""
    try:
        node = outlive.Node("planner")
        names = {"np": np, "outlive": outlive, "msg": outlive.msg, "node": node}
        test = doctest.DocTestParser().get_doctest(text, names, name, None, None)
        if doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0:
            print(DONE, end="")
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(0)


def has_ended(child):
    end = time.monotonic() + HANGS_S
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """The directory with what the examples said."""
    directory = tmp_path_factory.mktemp("said")
    program = f"import test_examples; test_examples.run_examples({str(directory)!r})"
    here = pathlib.Path(__file__).parent
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=here)
    assert out.returncode == 0, out.stderr
    return directory


@pytest.mark.parametrize("name", examples())
def test_the_example_in_the_documentation_of(name, said):
    text = (said / name).read_text()
    assert text.endswith(DONE), text


def test_no_example_in_the_sources_is_left_out():
    package = pathlib.Path(__file__).resolve().parents[1]
    sources = [*package.glob("python/outlive/*.py"), *package.glob("src/*.rs")]
    lines = (line.lstrip(" /") for source in sources for line in source.read_text().splitlines())
    parse = doctest.DocTestParser().get_examples
    assert sum(len(parse(text)) for text in examples().values()) == sum(
        line.startswith(">>> ") for line in lines
    )


@pytest.mark.parametrize("name", public())
def test_there_is_an_example_of(name):
    what, shown = public()[name], examples()
    if name in shown:
        return
    elsewhere = re.search(r"Example: ``([\w.]+)``\.", what.__doc__ or "")
    assert elsewhere, "give it an example, or say 'Example: ``NAME``.' where NAME has one"
    assert elsewhere[1] in shown, f"{elsewhere[1]} has no example"
    # An error is caught there, by the name of a base, too; of a row a field is read.
    names = {what.__name__, *getattr(what, "_fields", ()), *(of.__name__ for of in ours(what))}
    names.difference_update(dir(outlive.Node))  # a node has those
    used = re.findall(r"\.(\w+)", shown[elsewhere[1]])
    assert names.intersection(used), f"the example of {elsewhere[1]} uses none of {names}"
