"""Being asked to end."""

import os
import select
import signal
import sys
import time
import weakref

from ._errors import InvalidArgument, _refusal

_SAME_S = 0.25
"""What comes within this time after the first signal of its kind is the same request: ``timeout``
signals its child, then its whole group."""

_SLICE_S = 0.1
"""Python runs a handler between two steps of the main thread. A signal that comes just before a call
that sleeps, or to another thread, does not end that call: so none sleeps longer than this."""

_opened = []
"""References to those that may have handlers, in the order in which they were put in place."""


class Shutdown:
    """Says when this process is asked to end, by SIGTERM or SIGINT, instead of being ended by it.

    A program that returns then closes its nodes: others see that it left, not that it died. Make it
    in the main thread. What waits for it: ``wait``, a ``WaitSet`` (it has a ``fileno``), asyncio
    (``await shutdown.asked()``). The same signal again, at least 0.25 s later, does what it did
    before; ``close`` puts the handlers back, of several in any order. A handler that the program
    had before runs the first time, too, save that of ``asyncio.run``; a signal that is ignored
    stays ignored. A forked child has none of it: it can make its own.

    >>> with outlive.Shutdown() as shutdown:
    ...     while not shutdown.wait(timeout=0.01):
    ...         shutdown.ask()  # as a signal does
    ...     shutdown.is_asked
    True
    """

    def __init__(self, signals=(signal.SIGTERM, signal.SIGINT)):
        # No threading.Event: a handler that another signal's interrupts has its lock.
        self._asked = False
        self._owner = os.getpid()
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._before = {}
        self._came = {}
        _opened[:] = [known for known in _opened if known() is not None]
        _opened.append(weakref.ref(self))
        try:
            for number in signals:
                if signal.getsignal(number) != signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._on_signal)
        except BaseException:
            self.close()
            raise

    def _on_signal(self, number, frame):
        before = self._before.get(number, signal.SIG_DFL)
        if os.getpid() != self._owner or self._reader < 0:
            # It came before `_close_in_child`, or a handler that stayed over a closed one calls it.
            self._put_back(number)
            os.kill(os.getpid(), number)
        elif callable(before) and not _is_default(before):
            self._put_back(number)
            self.ask()
            before(number, frame)
        elif number not in self._came:
            self._came[number] = time.monotonic()
            self.ask()
        elif time.monotonic() - self._came[number] >= _SAME_S:
            self._put_back(number)
            os.kill(os.getpid(), number)

    def _put_back(self, number):
        before = self._before.pop(number, signal.SIG_DFL)
        signal.signal(number, signal.SIG_DFL if before is None else before)
        return before

    @property
    def is_asked(self):
        """Whether it was asked to end."""
        return self._asked

    def ask(self):
        """Asks it, as a signal does. From any thread."""
        if not self._asked:
            self._asked = True
            if self._writer >= 0 and os.getpid() == self._owner:
                os.write(self._writer, b"x")

    def wait(self, timeout=None):
        """Waits until it is asked, at most `timeout` seconds; whether it was."""
        if timeout is not None and timeout != timeout:
            what = "taking the time nan: invalid argument"
            raise _refusal(InvalidArgument, what, "nan", "give seconds")
        until = None if timeout is None else time.monotonic() + max(0.0, timeout)
        waiting = select.poll()
        while not self._asked:
            left = _SLICE_S if until is None else min(_SLICE_S, until - time.monotonic())
            if left <= 0:
                break
            waiting.register(self.fileno(), select.POLLIN)
            waiting.poll(left * 1000)
        return self._asked

    def fileno(self):
        """A descriptor that is readable from then on. Let no call sleep on it for ever: Python runs
        the handler of a signal only after the call that the main thread is in."""
        if self._reader < 0:
            what = "using a Shutdown: invalid argument; it is closed"
            raise _refusal(InvalidArgument, what, "Shutdown", "make another")
        return self._reader

    async def asked(self):
        """Returns when it is asked.

        >>> import asyncio
        >>> async def run():
        ...     with outlive.Shutdown() as shutdown:
        ...         asyncio.get_running_loop().call_later(0.01, shutdown.ask)  # as SIGTERM does
        ...         await shutdown.asked()
        ...         return "leaving in order"
        >>> asyncio.run(run())
        'leaving in order'
        """
        import asyncio

        loop = asyncio.get_running_loop()
        while not self._asked:
            future = loop.create_future()
            fd = os.dup(self.fileno())

            def wake(future=future):
                future.done() or future.set_result(None)

            timer = loop.call_later(_SLICE_S, wake)
            try:
                loop.add_reader(fd, wake)
                await future
            finally:
                timer.cancel()
                loop.remove_reader(fd)
                os.close(fd)

    def _pass_on(self, number):
        """What the signal did before, to the one that was opened over this one."""
        for known in _opened:
            over = known()
            if over is not None and over._before.get(number) == self._on_signal:
                over._before[number] = self._before.pop(number)
                return

    def close(self):
        """Puts back what the signals did before, where no other handler was put in place meanwhile.
        In the main thread."""
        for number in list(self._before):
            if signal.getsignal(number) == self._on_signal:
                self._put_back(number)
            else:
                self._pass_on(number)
        reader, writer, self._reader, self._writer = self._reader, self._writer, -1, -1
        for fd in (reader, writer):
            if fd >= 0:
                os.close(fd)

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.close()


def _is_default(handler):
    """Whether it is Python's own for SIGINT, or that of `asyncio.run`, which stands in for it by
    cancelling the main task: a program that asks to be told ends itself."""
    runner = getattr(sys.modules.get("asyncio"), "Runner", ())  # from Python 3.11 on
    of = getattr(getattr(handler, "func", None), "__self__", None)
    return handler is signal.default_int_handler or isinstance(of, runner)


def _close_in_child():
    """A forked child gets back what the signals did before, and its parent keeps the pipe."""
    for known in reversed(_opened):
        shutdown = known()
        if shutdown is not None:
            shutdown.close()
            shutdown._asked = False
            shutdown._came.clear()
    _opened.clear()


os.register_at_fork(after_in_child=_close_in_child)
