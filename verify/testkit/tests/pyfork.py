"""Forks of Python: os.fork with and without an orderly end, and multiprocessing.

usage: pyfork.py LIBRARY DIRECTORY
"""

import ctypes
import multiprocessing
import os
import sys

FORKED_CHILD, NOTHING = -1, -99
LARGE = 50_000

library = ctypes.CDLL(sys.argv[1])
root = os.path.join(sys.argv[2], "root").encode()


def function(name, result, *arguments):
    found = getattr(library, "pyfork_" + name)
    found.restype, found.argtypes = result, arguments
    return found


member_p, i64 = ctypes.c_void_p, ctypes.c_int64
open_ = function("open", member_p, ctypes.c_char_p)
node = function("node", ctypes.c_uint64, member_p)
is_alive = function("is_alive", i64, member_p, ctypes.c_uint64)
publish = function("publish", i64, member_p, ctypes.c_uint8, ctypes.c_size_t)
receive = function("receive", i64, member_p)
hold = function("hold", i64, member_p)
held = function("held", i64, member_p)
release = function("release", None, member_p)
close = function("close", None, member_p)


class Member:
    """Closes what it opened when Python collects it, in whatever process that is."""

    def __init__(self):
        self.handle = open_(root)
        assert self.handle, "open"

    def __del__(self):
        if self.handle:
            close(self.handle)


def use_as_child(parent):
    """Inherited handles refuse; a node of the child's own works."""
    for code in (
        publish(parent.handle, 9, 1),
        publish(parent.handle, 9, LARGE),
        receive(parent.handle),
        hold(parent.handle),
        is_alive(parent.handle, 1),
    ):
        assert code == FORKED_CHILD, code
    assert held(parent.handle) == 7
    release(parent.handle)
    own = Member()
    assert node(own.handle) != node(parent.handle)
    assert is_alive(own.handle, node(parent.handle)) == 1
    assert is_alive(own.handle, node(own.handle)) == 1
    # The parent's publisher is heard in the child, the parent does not hear the child's yet.
    assert publish(own.handle, 3, LARGE) == 0
    assert receive(own.handle) == 3


def parent_is_unharmed(parent, round):
    assert held(parent.handle) == 7, "the borrow went with a child"
    for n in range(20):
        assert publish(parent.handle, 100 + n, LARGE) >= 0
        assert held(parent.handle) == 7
    assert is_alive(parent.handle, node(parent.handle)) == 1
    seen = []
    while (byte := receive(parent.handle)) != NOTHING:
        assert byte >= 0, byte
        seen.append(byte)
    # Depth 4, plus what the child sent.
    assert [b for b in seen if b >= 100] == [116, 117, 118, 119], (round, seen)


def in_fork(end):
    """Runs `end` in a forked child; its exit code."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        end()
        os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def main():
    parent = Member()
    assert publish(parent.handle, 7, LARGE) == 0
    assert hold(parent.handle) == 7
    # A message is waiting that inherited handles could give.
    assert publish(parent.handle, 8, LARGE) == 1

    def at_once():
        use_as_child(parent)
        os._exit(0)

    assert in_fork(at_once) == 0
    assert receive(parent.handle) == 8, "a child moved the cursor"
    parent_is_unharmed(parent, "os._exit")

    # An orderly end: atexit handlers, finalizers, and the destructors of the library's threads.
    class Exit(Exception):
        pass

    def in_order():
        use_as_child(parent)
        raise Exit

    try:
        code = in_fork(in_order)
    except Exit:
        # The child: leaves through the interpreter's own end, with `parent` collected by it.
        sys.exit(0)
    assert code == 0, code
    parent_is_unharmed(parent, "exit")

    fork = multiprocessing.get_context("fork")
    for round in range(3):
        worker = fork.Process(target=use_as_child, args=(parent,))
        worker.start()
        worker.join()
        assert worker.exitcode == 0, worker.exitcode
        parent_is_unharmed(parent, f"multiprocessing {round}")

    release(parent.handle)
    assert held(parent.handle) == NOTHING
    # The last of it goes in the end of the interpreter.
    print("all is well")


if __name__ == "__main__":
    main()
