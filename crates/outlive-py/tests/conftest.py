"""A domain of its own for every test."""

import os
import signal
import subprocess

import pytest

import outlive

# A shell that runs the tests in the background ignores it.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("OUTLIVE_DIR", str(tmp_path / "root"))
    return tmp_path / "root"


@pytest.fixture
def node():
    return outlive.Node("test")


@pytest.fixture
def child():
    """Runs a function in a forked process, before this one opened a node; kills what is left."""
    pids = []

    def start(run):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                run()
                status = 0
            finally:
                os._exit(status)
        pids.append(pid)
        return pid

    yield start
    for pid in pids:
        try:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
        except (ProcessLookupError, ChildProcessError):
            pass


@pytest.fixture
def viewer():
    """A viewer's client of `outlive view`, which scripts/view-tests builds."""
    if "OUTLIVE_VIEW" not in os.environ:
        pytest.skip("scripts/view-tests runs it")
    from viewer import Client

    command = [os.environ["OUTLIVE_VIEW"], "--port", "0"]
    view = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    line = next((line for line in view.stdout if "ws://" in line), None)
    assert line, f"{command} says no address"
    yield Client(int(line.split("ws://127.0.0.1:")[1].split()[0]))
    view.terminate()
    assert view.wait() == 0
