"""A domain of its own for every test."""

import os
import signal

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
