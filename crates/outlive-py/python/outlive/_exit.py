"""Leaving in order when the interpreter ends, so that nobody takes its end for a death."""

import atexit
import os
import sys
import threading

from . import _outlive

_prepared = None


def prepare():
    """Called when a node is opened."""
    global _prepared
    if _prepared == os.getpid():
        return
    _prepared = os.getpid()
    # A process that multiprocessing has forked ends without the handlers of atexit.
    util = sys.modules.get("multiprocessing.util")
    if util is not None:
        util.Finalize(None, _close_after_threads, exitpriority=-1)


def _close_after_threads():
    """In a worker this comes before multiprocessing waits for the worker's threads: one may have a
    lock still. Waits as it does, which also tells idle threads of executors to end; what waits
    again finds them ended."""
    try:
        threading._shutdown()
    finally:
        _outlive._close_all()


# Handlers that the program registers later come first, and may still send.
atexit.register(_outlive._close_all)
os.register_at_fork(after_in_child=_outlive._after_fork)
