"""Shared-memory messaging and locks that survive kill -9.

>>> import numpy as np, outlive
>>> node = outlive.Node("camera")
>>> publisher = outlive.Publisher(node, "/camera/front", np.uint8, (480, 640, 3))
>>> subscriber = outlive.Subscriber(node, "/camera/front", np.uint8, (480, 640, 3))
>>> with publisher.loan() as frame:  # an array in shared memory
...     frame[:] = 7
>>> sample = subscriber.receive(timeout=1.0)
>>> sample.array.shape, int(sample.array[0, 0, 0]), sample.array.flags.writeable
((480, 640, 3), 7, False)

Types are NumPy dtypes, with a shape for arrays, ``bytes``, or dataclasses and plain objects, which
travel as MessagePack; ``outlive.msg`` has ready-made ones, for instance images. Structured dtypes
agree with structs of Rust, C and C++ of the same layout and ``type_name``. Classes of Protocol Buffers
and of pydantic and schemas of Arrow are types, too, and travel as what they are, with their schema;
``Encoded`` is for others.

A node leaves when it is closed (``with``, ``Node.close``) and when the interpreter ends: others see
that it left. ``Shutdown`` ends a program in order when it is sent SIGTERM.

Each process opens its own node: nothing here survives ``os.fork``; ``spawn`` and ``forkserver`` need
nothing special. Errors are exceptions by kind, all of them an ``outlive.Error``.

Examples below this page begin with ``import numpy as np, outlive``, ``from outlive import msg`` and
``node = outlive.Node("planner")``. Most do in one process what several do on a robot.
"""

from . import _domain, _errors, msg
from ._domain import *  # noqa: F403
from ._encoded import Encoded
from ._errors import *  # noqa: F403
from ._outlive import (
    Client,
    Consumer,
    Domain,
    Guard,
    Loan,
    LocklessSet,
    Node,
    Permit,
    Producer,
    Publisher,
    Received,
    Reply,
    Request,
    RobustCondition,
    RobustMutex,
    RobustRwLock,
    RobustSemaphore,
    Sample,
    Server,
    Subscriber,
    Timer,
    WaitSet,
    Watch,
    __version__,
    now_ns,
    packb,
    unpackb,
)
from ._queue import Queue
from ._shutdown import Shutdown
from ._types import Headed, describe

__all__ = [
    "Client",
    "Consumer",
    "Domain",
    "Encoded",
    "Guard",
    "Headed",
    "Loan",
    "LocklessSet",
    "Node",
    "Permit",
    "Producer",
    "Publisher",
    "Received",
    "Queue",
    "Reply",
    "Request",
    "RobustCondition",
    "RobustMutex",
    "RobustRwLock",
    "RobustSemaphore",
    "Sample",
    "Server",
    "Shutdown",
    "Subscriber",
    "Timer",
    "WaitSet",
    "Watch",
    "__version__",
    "describe",
    "msg",
    "now_ns",
    "packb",
    "unpackb",
    *_domain.__all__,
    *_errors.__all__,
]

# Tracebacks and pickles name what users import.
for _name in __all__:
    if str(getattr(globals()[_name], "__module__", "")).startswith("outlive._"):
        globals()[_name].__module__ = "outlive"
del _name
