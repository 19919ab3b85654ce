"""Type stubs of the package, with the documentation of every name."""

import pathlib
from typing import Any, AsyncIterator, Callable, ContextManager, Coroutine, Generic, Iterator
from typing import Sequence, TypeVar, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

from . import msg as msg
from ._domain import (
    AuditReport as AuditReport,
    CleanReport as CleanReport,
    LaneInfo as LaneInfo,
    LockInfo as LockInfo,
    NodeInfo as NodeInfo,
    PublisherInfo as PublisherInfo,
    QueueInfo as QueueInfo,
    ServiceInfo as ServiceInfo,
    SubscriberInfo as SubscriberInfo,
    TopicInfo as TopicInfo,
)

__version__: str
__all__: list[str]

Type = Any
"""A NumPy dtype, ``bytes``, a dataclass, ``object``, ``Headed``; a class of Protocol Buffers or
pydantic, a schema of Arrow, ``Encoded``; a class that ``outlive types import`` wrote."""
Shape = int | None | Sequence[int | None]
ServiceType = Type | tuple[Type, Shape] | tuple[Type, Shape, str]
Event = tuple[str, tuple[int, int]]
_Numbers = type[np.generic] | type[float] | type[int] | type[msg.Fixed]
"""Types whose values are arrays, and are made from whatever NumPy makes arrays from."""
_T = TypeVar("_T")
"""What is sent: ``Plan`` of ``Publisher(node, "/plan", Plan)``; of dtypes, arrays."""
_Q = TypeVar("_Q")
_R = TypeVar("_R")
"""What a service is asked and answers: ``Client(node, "/plan", Goal, Plan)``."""
_Untyped = _Numbers | np.dtype | Headed | str | list[Any] | tuple[Any, ...] | None

def now_ns() -> int:
    """Now, ns of CLOCK_MONOTONIC: the clock of all time stamps.

    >>> poses = outlive.Subscriber(node, "/pose")
    >>> outlive.Publisher(node, "/pose").publish([1.0, 2.0])
    0
    >>> age_ns = outlive.now_ns() - poses.receive(timeout=1.0).timestamp_ns
    >>> age_ns >= 0
    True
    """
def packb(value: Any) -> bytes:
    """The MessagePack of an object. Tuples come back as lists; in keys of dicts, as tuples.

    >>> outlive.unpackb(outlive.packb({"a": [1, 2.5, None]}))
    {'a': [1, 2.5, None]}
    """
def unpackb(data: bytes) -> Any:
    """The object of a MessagePack value. ValueError for other bytes.

    >>> outlive.unpackb(bytes([0x92, 1, 0xc0]))
    [1, None]
    """
def describe(dtype: npt.DTypeLike, shape: Sequence[int] = ()) -> str:
    """The description of an array of `dtype` with a fixed shape.

    >>> print(outlive.describe([("x", "f8"), ("y", "f8")]), end="")
    outlive-type 1 align 8
    struct:16
     0 f64 x
     8 f64 y
    """

class _Scope:
    """What ``with`` lets go of at its end."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: Any) -> None: ...

class _Port(_Scope):
    def close(self) -> None: ...

class _Lock:
    """A lock and the data that it protects."""

    def __init__(
        self,
        node: Node,
        name: str,
        type: Type = None,
        shape: Shape = None,
        *,
        type_name: str | None = None,
        initial: Any = None,
        repair: Callable[[np.ndarray], Any] | None = None,
    ) -> None: ...
    @property
    def owner_died(self) -> bool: ...
    def mark_consistent(self) -> None: ...
    def close(self) -> None: ...

class Shutdown(_Port):
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

    def __init__(self, signals: Sequence[int] = ...) -> None: ...
    @property
    def is_asked(self) -> bool:
        """Whether it was asked to end."""
    def ask(self) -> None:
        """Asks it, as a signal does. From any thread."""
    def wait(self, timeout: float | None = None) -> bool:
        """Waits until it is asked, at most `timeout` seconds; whether it was."""
    def fileno(self) -> int:
        """A descriptor that is readable from then on. Let no call sleep on it for ever: Python runs
        the handler of a signal only after the call that the main thread is in.
        """
    def asked(self) -> Coroutine[Any, Any, None]:
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

class Encoded(Generic[_T]):
    """A type in an encoding that others define: ``"protobuf"``, ``"json"``, ``"cdr"``, ``"flatbuffer"``
    or ``"arrow"``. `name` and `schema` are what their world has; all members must agree on them.

    `encode` makes bytes of a value. `decode` gets a ``memoryview`` of them, in shared memory where
    the value comes from a sample, which stays for as long as the view. Without these, values are bytes;
    of JSON they are what the module ``json`` knows, and `schema` may be a dict.

    >>> goal = outlive.Encoded("json", "robot/Goal", {"type": "object"})
    >>> subscriber = outlive.Subscriber(node, "/goal", goal)
    >>> outlive.Publisher(node, "/goal", goal).publish({"x": 1.5})
    0
    >>> subscriber.receive(timeout=1.0).value
    {'x': 1.5}
    """

    encoding: str
    name: str
    schema: bytes
    def __init__(
        self,
        encoding: str,
        name: str,
        schema: bytes | str | dict[str, Any] = b"",
        *,
        encode: Callable[[_T], Any] | None = None,
        decode: Callable[[memoryview], _T] | None = None,
    ) -> None: ...
    def encode(self, value: _T) -> Any:
        """The bytes of a value."""
    def decode(self, payload: Any) -> _T:
        """The value of bytes, which may come from anybody."""

class Headed:
    """A header and any number of elements behind it, as one payload: a tuple of two arrays.

    >>> scan = outlive.Headed([("stamp_ns", "u8"), ("range_max", "f8")], "f4")
    >>> publisher = outlive.Publisher(node, "/scan", scan, type_name="robot/Scan")
    >>> subscriber = outlive.Subscriber(node, "/scan", scan, type_name="robot/Scan")
    >>> with publisher.loan(3) as (header, ranges):
    ...     header["stamp_ns"], ranges[:] = 7, 1.5
    >>> header, ranges = subscriber.receive(timeout=1.0).value
    >>> int(header["stamp_ns"]), ranges.tolist()
    (7, [1.5, 1.5, 1.5])
    """

    header: np.dtype
    element: np.dtype
    def __init__(self, header: npt.DTypeLike, element: npt.DTypeLike) -> None: ...

class Node(_Port):
    """A process's membership in a domain. Any thread may use it.

    After ``os.fork`` the child is not the node: every call on an inherited object raises
    ``ForkedChild``, save those that only read what a sample, message, request or reply in hand has,
    or what is fixed, such as a name. Arrays over loans and samples are memory shared with the
    parent: do not touch them in the child. Open a node in each process; ``spawn`` and
    ``forkserver`` need that, too.

    Its domain is the one given, or ``$OUTLIVE_DOMAIN``, or ``default``; domains do not see each
    other.

    ``with outlive.Node("camera") as node: ...`` closes it, and everything that was opened with it.
    At the end of the interpreter all nodes are closed: others see that they left.

    >>> with outlive.Node("camera") as camera:
    ...     publisher = outlive.Publisher(camera, "/camera/front", bytes)
    ...     [known.name for known in outlive.Domain.of(camera).nodes()]
    ['planner', 'camera']
    >>> [known.name for known in outlive.Domain.of(node).nodes()]
    ['planner']
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        domain: str | None = None,
        root: str | None = None,
        group: int | None = None,
    ) -> None: ...
    @property
    def id(self) -> int:
        """Its number in the domain, never reused."""
    @property
    def name(self) -> str:
        """The name given at opening."""
    def watch(self, id: int) -> Watch:
        """Watches the node with this number. ``NotFound``: it left, or died and was cleaned up.
        One that was watched before gives a watch that says it is gone.

        >>> known = {peer.name: peer.id for peer in outlive.Domain.of(node).nodes()}
        >>> node.watch(known["planner"]).is_alive
        True
        """
    def remove_lock(self, name: str) -> bool:
        """Removes the lock, condition variable, semaphore, set or segment `name`; False if there is
        none. Opening it creates it again.

        ``WouldBlock``: somebody has it open. A lock that is ``Unrecoverable`` is removed all the
        same: its users get that until they open it again.

        >>> outlive.RobustMutex(node, "/arm").close()
        >>> node.remove_lock("/arm"), node.remove_lock("/arm")
        (True, False)
        """

class Watch(_Port):
    """Reports a node's death as it happens.

    >>> camera = outlive.Node("camera")  # in another process
    >>> watch = node.watch(camera.id)
    >>> watch.is_alive, watch.wait(timeout=0.01)
    (True, False)
    >>> camera.close()  # or kill -9
    >>> watch.wait(timeout=10.0)
    True
    """

    @property
    def is_alive(self) -> bool:
        """Whether the node is alive. A stopped process is alive."""
    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the node dies or leaves; False when `timeout` seconds passed first."""

class Publisher(_Port, Generic[_T]):
    """Sends messages on a topic.

    `type` is a NumPy dtype, with `shape` for an array of them and None as its first number for any
    length; ``bytes``; a dataclass or ``object`` for MessagePack; ``Headed`` for a header and
    elements; a class of ``outlive.msg``, such as ``msg.Image``; a class of Protocol Buffers or
    pydantic, a schema of Arrow, or ``Encoded``. `type_name` is the name that all languages
    agree on; structured dtypes need one. `reliable_timeout`: seconds that one publish
    waits for the slowest live reliable subscriber; 1 s for None, not at all for 0 or less
    (``WouldBlock``).

    To type checkers it is a ``Publisher[Plan]`` or a ``Publisher[msg.Image]``, by its `type`.

    >>> import dataclasses
    >>> node = outlive.Node("planner")
    >>> @dataclasses.dataclass
    ... class Plan:
    ...     goal: str
    >>> follower = outlive.Subscriber(node, "/plan", Plan)  # in another process
    >>> publisher = outlive.Publisher(node, "/plan", Plan)
    >>> publisher.publish(Plan("dock"))
    0
    >>> follower.receive(timeout=1.0).value
    Plan(goal='dock')
    """

    @overload
    def __init__(
        self: Publisher[bytes],
        node: Node,
        topic: str,
        type: type[bytes],
        shape: None = None,
        *,
        type_name: str | None = None,
        depth: int | None = None,
        memory_bytes_max: int | None = None,
        reliable_timeout: float | None = None,
        volatile: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: Publisher[Any],
        node: Node,
        topic: str,
        type: _Numbers | np.dtype | Headed | str | list[Any],
        shape: Shape = None,
        *,
        type_name: str | None = None,
        depth: int | None = None,
        memory_bytes_max: int | None = None,
        reliable_timeout: float | None = None,
        volatile: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: Publisher[_T],
        node: Node,
        topic: str,
        type: type[_T] | Encoded[_T],
        shape: None = None,
        *,
        type_name: str | None = None,
        depth: int | None = None,
        memory_bytes_max: int | None = None,
        reliable_timeout: float | None = None,
        volatile: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: Publisher[Any],
        node: Node,
        topic: str,
        type: Type = None,
        shape: Shape = None,
        *,
        type_name: str | None = None,
        depth: int | None = None,
        memory_bytes_max: int | None = None,
        reliable_timeout: float | None = None,
        volatile: bool = False,
    ) -> None: ...
    def publish(self, value: _T) -> int:
        """Copies `value` into shared memory and publishes it; returns its number.

        Never waits, unless subscribers asked to be waited for: see `reliable_timeout`.
        ``OutOfMemory``: they hold samples up to the memory bound.
        """
    def publish_batch(self, values: npt.ArrayLike) -> None:
        """Publishes each of `values`, in order: an array of fixed-size messages, or something that
        makes one. Many times as fast as one by one. Up to 1024 bytes all have the same time stamp,
        but one that had to wait and those behind it have another.

        Errors as of ``publish``; those before the one that failed are sent. ``InvalidArgument``:
        messages of this type are not all of one size.

        >>> distances = outlive.Subscriber(node, "/distance", np.float32)
        >>> publisher = outlive.Publisher(node, "/distance", np.float32)
        >>> publisher.publish_batch(np.linspace(0.5, 2.0, 4))
        >>> [float(distances.receive(timeout=1.0).value) for _ in range(4)]
        [0.5, 1.0, 1.5, 2.0]
        """
    def publish_cuda(
        self, array: Any, *, stream: Any = None, device: int | None = None
    ) -> int:
        """Copies an array on a device (torch, cupy, anything with ``__cuda_array_interface__``) into
        shared memory and publishes it when the device is done; returns its number.

        In the order of `stream` (torch's, cupy's, or a handle), else of the stream that the array
        names, else of torch's current one. ``NotFound``: there is no driver or no device.
        """
    def loan(self, count: int | None = None) -> Loan:
        """A slot in shared memory: ``with publisher.loan() as array: ...`` publishes what was written
        to the array, unless an exception leaves the block. `count` is the number of elements of a
        type of any length.

        >>> scans = outlive.Subscriber(node, "/scan", np.float32, (None,))
        >>> publisher = outlive.Publisher(node, "/scan", np.float32, (None,))
        >>> with publisher.loan(3) as ranges:
        ...     ranges[:] = 1.5, 2.0, 2.5
        >>> scans.receive(timeout=1.0).array.tolist()
        [1.5, 2.0, 2.5]
        """
    @property
    def id(self) -> tuple[int, int]:
        """Its identity as subscribers see it: node and port."""
    @property
    def topic(self) -> str:
        """The topic's name."""
    @property
    def published(self) -> int:
        """Messages published so far."""
    @property
    def memory_bytes(self) -> int:
        """Bytes of shared memory it takes."""
    def subscribers(self) -> int:
        """Counts the live subscribers.

        >>> publisher = outlive.Publisher(node, "/plan")
        >>> viewers = [outlive.Subscriber(node, "/plan") for _ in range(2)]
        >>> publisher.subscribers()
        2
        """

class Loan:
    """A writable slot in shared memory, until it is published or dropped.

    Do not keep arrays over it any longer: they become read-only, and their contents change when the
    memory is used again.

    >>> publisher = outlive.Publisher(node, "/grid", np.float32, (100, 100))
    >>> loan = publisher.loan()
    >>> loan.array[:] = 0.5
    >>> loan.publish()  # or loan.drop()
    0
    """

    @property
    def array(self) -> np.ndarray:
        """The slot as an array, of a ``Headed`` type as a tuple of header and elements; holds whatever
        was there before.
        """
    def publish(self) -> int:
        """Makes it visible to subscribers; returns its number."""
    def drop(self) -> None:
        """Gives it back unpublished."""
    def __enter__(self) -> np.ndarray: ...
    def __exit__(self, *exception: Any) -> None: ...

class Subscriber(_Port, Generic[_T]):
    """Receives the messages of all publishers of a topic, in order per publisher.

    Types as of ``Publisher``. Iterate over it, with ``for`` or ``async for``, or call ``receive``.

    >>> node = outlive.Node("planner")
    >>> speeds = outlive.Subscriber(node, "/speed", np.float64)
    >>> publisher = outlive.Publisher(node, "/speed", np.float64)  # in another process
    >>> publisher.publish_batch([0.5, 0.75, 0.0])
    >>> for sample in speeds:
    ...     print(sample.seq, float(sample.value))
    ...     if sample.value == 0.0:
    ...         break
    0 0.5
    1 0.75
    2 0.0
    """

    @overload
    def __init__(
        self: Subscriber[bytes],
        node: Node,
        topic: str,
        type: type[bytes],
        shape: None = None,
        *,
        type_name: str | None = None,
        depth: int | None = None,
        history: int = 0,
        borrows: int | None = None,
        reliable: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: Subscriber[np.ndarray],
        node: Node,
        topic: str,
        type: _Numbers | np.dtype | str | list[Any],
        shape: Shape = None,
        *,
        type_name: str | None = None,
        depth: int | None = None,
        history: int = 0,
        borrows: int | None = None,
        reliable: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: Subscriber[_T],
        node: Node,
        topic: str,
        type: type[_T] | Encoded[_T],
        shape: None = None,
        *,
        type_name: str | None = None,
        depth: int | None = None,
        history: int = 0,
        borrows: int | None = None,
        reliable: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: Subscriber[Any],
        node: Node,
        topic: str,
        type: Type = None,
        shape: Shape = None,
        *,
        type_name: str | None = None,
        depth: int | None = None,
        history: int = 0,
        borrows: int | None = None,
        reliable: bool = False,
    ) -> None: ...
    def receive(self, timeout: float | None = None) -> Sample[_T] | None:
        """The next message, or None when `timeout` seconds passed without one; 0 never waits, None
        waits for ever. A publisher's end does not end the wait; it ends that of a ``WaitSet``.

        ``TooManyBorrows``: release samples first; nothing is lost.
        """
    def latest(self) -> Sample[_T] | None:
        """The newest message, or None; older ones are skipped. Never waits.

        >>> poses = outlive.Subscriber(node, "/pose", np.float64, (2,))
        >>> outlive.Publisher(node, "/pose", np.float64, (2,)).publish_batch([[1, 2], [1, 3]])
        >>> poses.latest().array.tolist()
        [1.0, 3.0]
        >>> poses.latest() is None
        True
        """
    def receive_in_order(self) -> Sample[_T] | None:
        """The earliest published of the available messages, over all publishers, or None. Never waits.

        >>> log = outlive.Subscriber(node, "/log")
        >>> left, right = outlive.Publisher(node, "/log"), outlive.Publisher(node, "/log")
        >>> left.publish("first"), right.publish("second"), left.publish("third")
        (0, 0, 1)
        >>> [log.receive_in_order().value for _ in range(3)]
        ['first', 'second', 'third']
        """
    def events(self) -> list[Event]:
        """What happened to publishers since the last call, oldest first: tuples of "joined", "left",
        "died" or "corrupt", and the publisher's node and port.

        >>> images = outlive.Subscriber(node, "/image")
        >>> with outlive.Publisher(node, "/image") as publisher:
        ...     publisher.publish("a picture")
        0
        >>> images.receive(timeout=1.0).value
        'a picture'
        >>> images.receive(timeout=0)
        >>> [what for what, who in images.events()]
        ['joined', 'left']
        """
    def fileno(self) -> int:
        """A descriptor for event loops: readable unless the last receiving call found nothing."""
    @property
    def lost(self) -> int:
        """Messages lost so far, over all publishers."""
    @property
    def borrowed(self) -> int:
        """Samples held right now."""
    @property
    def topic(self) -> str:
        """The topic's name."""
    @property
    def type_name(self) -> str:
        """Name of the topic's type."""
    def receive_async(self) -> Coroutine[Any, Any, Sample[_T]]:
        """The next message, for asyncio. A task that is cancelled while it waits has received nothing:
        the message is still there.

        >>> import asyncio
        >>> goals = outlive.Subscriber(node, "/goal")
        >>> outlive.Publisher(node, "/goal").publish("dock")
        0
        >>> async def follow():
        ...     sample = await goals.receive_async()
        ...     return sample.value
        >>> asyncio.run(follow())
        'dock'
        """
    def __iter__(self) -> Iterator[Sample[_T]]: ...
    def __aiter__(self) -> AsyncIterator[Sample[_T]]: ...

class Sample(Generic[_T]):
    """A received message. Large ones lie in shared memory, without a copy; arrays over it keep it, so
    that it may outlive its subscriber, and its publisher's death does not affect it.

    It counts against the subscriber's `borrows` until it and all arrays over it are gone.

    >>> images = outlive.Subscriber(node, "/image", np.uint8, (480, 640))
    >>> outlive.Publisher(node, "/image", np.uint8, (480, 640)).publish(np.full((480, 640), 7))
    0
    >>> sample = images.receive(timeout=1.0)
    >>> sample.seq, sample.nbytes, sample.is_borrowed, int(sample.array.max())
    (0, 307200, True, 7)
    >>> images.borrowed
    1
    >>> del sample
    >>> images.borrowed
    0
    """

    @property
    def array(self) -> np.ndarray:
        """The payload as a read-only array, without a copy."""
    @property
    def value(self) -> _T:
        """The payload: an array as of `array`, bytes, or the object that was sent."""
    @property
    def seq(self) -> int:
        """Its number among the messages of its publisher, from 0."""
    @property
    def timestamp_ns(self) -> int:
        """When it was published, ns of CLOCK_MONOTONIC."""
    @property
    def publisher(self) -> tuple[int, int]:
        """Who sent it: node and port."""
    @property
    def lost_before(self) -> int:
        """Messages of its publisher lost right before it."""
    @property
    def is_borrowed(self) -> bool:
        """Whether it lies in shared memory, without a copy."""
    @property
    def nbytes(self) -> int:
        """Size of the payload, bytes."""
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray: ...
    def copy_to_cuda(
        self, array: Any, *, stream: Any = None, device: int | None = None
    ) -> None:
        """Copies the payload into an array on a device (torch, cupy, anything with
        ``__cuda_array_interface__``) and waits until it is there. `stream` as of ``publish_cuda``.
        """
    def to_torch(self, device: Any = "cuda", *, stream: Any = None) -> Any:
        """A new torch tensor on `device` with the payload, in the order of torch's current stream."""
    def to_cupy(self, *, stream: Any = None) -> Any:
        """A new cupy array on its current device with the payload, in the order of its current stream."""
    def __dlpack__(self, **options: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __len__(self) -> int: ...

class Producer(_Port, Generic[_T]):
    """Sends messages to the one consumer of a queue. Types as of ``Publisher``.

    >>> node = outlive.Node("planner")
    >>> consumer = outlive.Consumer(node, "/jobs", bytes)  # in another process
    >>> producer = outlive.Producer(node, "/jobs", bytes)
    >>> producer.has_consumer
    True
    >>> producer.send(b"weld", timeout=1.0)
    >>> consumer.receive(timeout=1.0)
    b'weld'
    """

    @overload
    def __init__(
        self: Producer[bytes],
        node: Node,
        queue: str,
        type: type[bytes],
        shape: None = None,
        *,
        type_name: str | None = None,
        bound_bytes: int | None = None,
        first_bytes: int | None = None,
        stamped: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: Producer[Any],
        node: Node,
        queue: str,
        type: _Numbers | np.dtype | Headed | str | list[Any],
        shape: Shape = None,
        *,
        type_name: str | None = None,
        bound_bytes: int | None = None,
        first_bytes: int | None = None,
        stamped: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: Producer[_T],
        node: Node,
        queue: str,
        type: type[_T] | Encoded[_T],
        shape: None = None,
        *,
        type_name: str | None = None,
        bound_bytes: int | None = None,
        first_bytes: int | None = None,
        stamped: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: Producer[Any],
        node: Node,
        queue: str,
        type: Type = None,
        shape: Shape = None,
        *,
        type_name: str | None = None,
        bound_bytes: int | None = None,
        first_bytes: int | None = None,
        stamped: bool = False,
    ) -> None: ...
    def send(self, value: _T, timeout: float | None = None) -> None:
        """Sends a copy of `value`. If the lane is at its bound it waits for the consumer, at most
        `timeout` seconds (``WouldBlock`` for 0, else ``Timeout``).

        ``OwnerDied``: no live consumer, or it died while this call waited; nothing was sent.
        """
    def send_batch(self, values: npt.ArrayLike, timeout: float | None = None) -> None:
        """Sends all of `values`, or none: an array of fixed-size messages, or something that makes
        one. Several times as fast as one by one. Waits as ``send``.

        ``InvalidArgument``: messages of this type are not all of one size.

        >>> consumer = outlive.Consumer(node, "/ticks", np.int64)
        >>> producer = outlive.Producer(node, "/ticks", np.int64)
        >>> producer.send_batch(np.arange(3))
        >>> [int(consumer.receive(timeout=1.0)) for _ in range(3)]
        [0, 1, 2]
        """
    @property
    def id(self) -> tuple[int, int]:
        """Its identity as the consumer sees it: node and port."""
    @property
    def has_consumer(self) -> bool:
        """Whether a live consumer reads the queue. It may die right after the answer.
        Also true while that cannot be found out, for instance for lack of memory.
        """
    def wait_for_consumer(self, timeout: float | None = None) -> bool:
        """Waits until a live consumer reads the queue; False when `timeout` seconds passed first.

        >>> producer = outlive.Producer(node, "/jobs")
        >>> producer.wait_for_consumer(timeout=0.01)
        False
        >>> consumer = outlive.Consumer(node, "/jobs")  # in another process
        >>> producer.wait_for_consumer(timeout=10.0)
        True
        """

class Consumer(_Port, Generic[_T]):
    """The one consumer of a queue. Types as of ``Publisher``; messages come as values: arrays that are
    copies, bytes, objects; or, from ``borrow``, as they lie in shared memory.

    After a dead consumer the next one continues where that one stopped.

    >>> node = outlive.Node("planner")
    >>> consumer = outlive.Consumer(node, "/jobs")
    >>> for arm in ("left", "right"):  # each in its own process
    ...     outlive.Producer(node, "/jobs").send({"arm": arm, "job": "weld"})
    >>> sorted(consumer.receive(timeout=1.0)["arm"] for _ in range(2))
    ['left', 'right']
    >>> consumer.receive(timeout=0) is None
    True
    """

    @overload
    def __init__(
        self: Consumer[bytes],
        node: Node,
        queue: str,
        type: type[bytes],
        shape: None = None,
        *,
        type_name: str | None = None,
        stamped: bool = False,
        ordered: float | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[np.ndarray],
        node: Node,
        queue: str,
        type: _Numbers | np.dtype | str | list[Any],
        shape: Shape = None,
        *,
        type_name: str | None = None,
        stamped: bool = False,
        ordered: float | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[_T],
        node: Node,
        queue: str,
        type: type[_T] | Encoded[_T],
        shape: None = None,
        *,
        type_name: str | None = None,
        stamped: bool = False,
        ordered: float | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Consumer[Any],
        node: Node,
        queue: str,
        type: Type = None,
        shape: Shape = None,
        *,
        type_name: str | None = None,
        stamped: bool = False,
        ordered: float | None = None,
    ) -> None: ...
    def receive(self, timeout: float | None = None) -> _T | None:
        """The next message, or None when `timeout` seconds passed without one; 0 never waits, None
        waits for ever. A producer's end does not end the wait; it ends that of a ``WaitSet``.
        """
    def borrow(self, timeout: float | None = None) -> Received[_T] | None:
        """The next message where it lies in shared memory, without a copy; else as ``receive``.

        One at a time: until it and all arrays over it are gone, other calls raise
        ``TooManyBorrows``, and its producer cannot use the room again.
        """
    def events(self) -> list[Event]:
        """What happened to producers since the last call: as of ``Subscriber.events``."""
    def fileno(self) -> int:
        """A descriptor for event loops: readable unless the last receiving call found nothing."""
    def receive_async(self) -> Coroutine[Any, Any, _T]:
        """The next message, for asyncio. A task that is cancelled while it waits has received nothing:
        the message is still there.

        >>> import asyncio
        >>> consumer = outlive.Consumer(node, "/jobs")
        >>> outlive.Producer(node, "/jobs").send("weld")
        >>> async def work():
        ...     async for job in consumer:
        ...         return job
        >>> asyncio.run(work())
        'weld'
        """
    def __iter__(self) -> Iterator[_T]: ...
    def __aiter__(self) -> AsyncIterator[_T]: ...

class Received(_Scope, Generic[_T]):
    """A message in its queue, without a copy: ``with consumer.borrow() as message: ...``

    It counts as received when it and all arrays over it are gone; ``ack`` marks it as done. If the
    process dies or the interpreter ends before, the next consumer receives it again.

    An exception inside the ``with`` does not acknowledge: the message is put back, as by ``nack``,
    and the next receiving call gets it again. Without a ``with`` call ``nack`` yourself.

    >>> consumer = outlive.Consumer(node, "/scans", np.float32, (None,))
    >>> producer = outlive.Producer(node, "/scans", np.float32, (None,))
    >>> producer.send([1.5, 2.5])
    >>> with consumer.borrow() as message:
    ...     message.array.tolist(), message.array.flags.writeable
    ([1.5, 2.5], False)
    """

    @property
    def array(self) -> np.ndarray:
        """The payload as a read-only array, without a copy; of objects, their MessagePack bytes."""
    @property
    def value(self) -> _T:
        """The payload: an array as of `array`, bytes, or the object that was sent."""
    @property
    def producer(self) -> tuple[int, int]:
        """Who sent it: node and port."""
    @property
    def timestamp_ns(self) -> int | None:
        """When it was sent, ns of CLOCK_MONOTONIC; None in a queue without time stamps."""
    def ack(self) -> None:
        """It is done: it counts as received once all arrays over it are gone too; they keep it in hand
        for as long as they live.
        """
    def nack(self) -> None:
        """Puts it back: once all arrays over it are gone it is the next message of its producer again.
        Acknowledge what can never be done, or it comes for ever.

        >>> consumer, producer = outlive.Consumer(node, "/jobs"), outlive.Producer(node, "/jobs")
        >>> producer.send("weld")
        >>> message = consumer.borrow(timeout=1.0)
        >>> message.nack()  # the welder is busy
        >>> consumer.receive(timeout=1.0)
        'weld'
        """
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray: ...

class Queue(_Port):
    """A queue: any number of processes put, one gets. Types as of ``Publisher``.

    >>> node = outlive.Node("planner")
    >>> queue = outlive.Queue(node, "/jobs")
    >>> consumer = queue.consumer()  # in the process that gets
    >>> queue.put({"job": 1})
    >>> queue.get(timeout=1.0)
    {'job': 1}

    Without a live consumer ``put`` raises ``OwnerDied``. ``bound_bytes`` and ``first_bytes`` are
    those of ``Producer``, ``ordered`` that of ``Consumer``; ``ordered`` stamps the messages.
    """

    def __init__(
        self,
        node: Node,
        queue: str,
        type: Type = None,
        shape: Shape = None,
        *,
        type_name: str | None = None,
        bound_bytes: int | None = None,
        first_bytes: int | None = None,
        stamped: bool = False,
        ordered: float | None = None,
    ) -> None: ...
    def producer(self) -> Producer[Any]:
        """The sending end."""
    def consumer(self) -> Consumer[Any]:
        """The receiving end; ``ConsumerExists`` while another process has it."""
    def put(self, value: Any, timeout: float | None = None) -> None:
        """Sends a value: see ``Producer.send``."""
    def put_batch(self, values: npt.ArrayLike, timeout: float | None = None) -> None:
        """Sends many at once: see ``Producer.send_batch``."""
    def get(self, timeout: float | None = None) -> Any:
        """The next value, or None: see ``Consumer.receive``."""
    def borrow(self, timeout: float | None = None) -> Received[Any] | None:
        """The next value where it lies, or None: see ``Consumer.borrow``."""
    def __iter__(self) -> Iterator[Any]: ...
    def __aiter__(self) -> AsyncIterator[Any]: ...

class Client(_Port, Generic[_Q, _R]):
    """The asking end of a service.

    `request` and `response` are types as of ``Publisher``, or tuples of type, shape and type name.

    >>> import threading
    >>> node = outlive.Node("planner")
    >>> def serve():
    ...     for request in outlive.Server(node, "/square"):
    ...         request.respond(request.value ** 2)
    >>> threading.Thread(target=serve, daemon=True).start()  # or another process
    >>> client = outlive.Client(node, "/square")
    >>> client.wait_for_server(timeout=10.0)
    True
    >>> client.call(3, timeout=10.0)
    9
    """

    @overload
    def __init__(
        self: Client[Any, Any],
        node: Node,
        service: str,
        request: _Untyped = None,
        response: _Untyped = None,
        *,
        bound_bytes: int | None = None,
        resume: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: Client[_Q, Any],
        node: Node,
        service: str,
        request: type[_Q],
        response: _Untyped = None,
        *,
        bound_bytes: int | None = None,
        resume: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: Client[Any, _R],
        node: Node,
        service: str,
        request: _Untyped,
        response: type[_R],
        *,
        bound_bytes: int | None = None,
        resume: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: Client[_Q, _R],
        node: Node,
        service: str,
        request: type[_Q],
        response: type[_R],
        *,
        bound_bytes: int | None = None,
        resume: bool = False,
    ) -> None: ...
    @overload
    def __init__(
        self: Client[Any, Any],
        node: Node,
        service: str,
        request: ServiceType = None,
        response: ServiceType = None,
        *,
        bound_bytes: int | None = None,
        resume: bool = False,
    ) -> None: ...
    def call(self, request: _Q, timeout: float | None = None) -> _R:
        """Sends a request and waits for the answer, at most `timeout` seconds (``Timeout``).

        ``ServerDied`` at once when the server dies; ``Refused`` with its words.
        """
    def send(self, request: _Q, timeout: float | None = None) -> int:
        """Sends a request and returns its ticket; the answer comes with ``receive``. The server skips
        it if it gets to it only after `timeout` seconds. An answer that is there when the client
        looks is received, even if it came late.

        >>> server, client = outlive.Server(node, "/square"), outlive.Client(node, "/square")
        >>> tickets = [client.send(n) for n in (2, 3)]
        >>> for _ in tickets:
        ...     request = server.receive(timeout=1.0)
        ...     request.respond(request.value ** 2)
        >>> [client.receive(timeout=1.0, ticket=ticket).value for ticket in tickets]
        [4, 9]
        """
    def receive(
        self, timeout: float | None = None, *, ticket: int | None = None
    ) -> Reply[_R] | None:
        """The next reply, to the request of `ticket` or to any, or None when `timeout` seconds passed."""
    def call_async(self, request: _Q, timeout: float | None = None) -> Coroutine[Any, Any, _R]:
        """As ``call``, for asyncio: ``await client.call_async(...)``. A task that is cancelled while
        it waits gives its request up, and the server is notified.

        >>> import asyncio
        >>> server, client = outlive.Server(node, "/square"), outlive.Client(node, "/square")
        >>> async def ask():
        ...     asking = asyncio.create_task(client.call_async(3))
        ...     request = await server.receive_async()  # in another process
        ...     request.respond(request.value ** 2)
        ...     return await asking
        >>> asyncio.run(ask())
        9
        """
    def receive_async(self, *, ticket: int | None = None) -> Coroutine[Any, Any, Reply[_R]]:
        """The next reply, to the request of `ticket` or to any, for asyncio. A task that is cancelled
        while it waits has received nothing: the reply is still there.
        """
    def fileno(self) -> int:
        """A descriptor for event loops: readable unless the last receiving call found nothing."""
    def __aiter__(self) -> AsyncIterator[Reply[_R]]: ...
    def cancel(self, ticket: int) -> None:
        """Gives a request up: no reply to it comes any more, and the server is notified. Of one that
        is answered or given up already nothing is left to do.

        >>> server, client = outlive.Server(node, "/drive"), outlive.Client(node, "/drive")
        >>> ticket = client.send("dock")
        >>> request = server.receive(timeout=1.0)
        >>> client.cancel(ticket)
        >>> request.is_cancelled
        True
        """
    def wait_for_server(self, timeout: float | None = None) -> bool:
        """Waits until a live server is there; False when `timeout` seconds passed first."""
    def wait_for_server_async(
        self, timeout: float | None = None
    ) -> Coroutine[Any, Any, bool]:
        """As ``wait_for_server``, for asyncio."""

class Reply(Generic[_R]):
    """An answer, or the news that there will be none.

    >>> server, client = outlive.Server(node, "/drive"), outlive.Client(node, "/drive")
    >>> ticket = client.send("dock")
    >>> server.receive(timeout=1.0).respond("docked")
    >>> reply = client.receive(timeout=1.0)
    >>> reply.value, reply.ticket == ticket, reply.is_last
    ('docked', True, True)
    """

    @property
    def value(self) -> _R:
        """The answer. ``Refused`` with the server's words; ``ServerDied``: the server may or may not
        have done what was asked.
        """
    @property
    def ticket(self) -> int:
        """The request that it answers."""
    @property
    def is_last(self) -> bool:
        """Whether it is the last for that request."""

class Server(_Port, Generic[_Q, _R]):
    """The one server of a service. Types as of ``Client``.

    ``for request in server: request.respond(...)``, or ``async for``.

    >>> node = outlive.Node("planner")
    >>> server = outlive.Server(node, "/distance", (np.float64, (2,)), np.float64)
    >>> client = outlive.Client(node, "/distance", (np.float64, (2,)), np.float64)
    >>> ticket = client.send([3.0, 4.0])
    >>> for request in server:
    ...     request.respond(np.hypot(*request.value))
    ...     break  # a server would go on
    >>> float(client.receive(timeout=1.0).value)
    5.0
    """

    @overload
    def __init__(
        self: Server[Any, Any],
        node: Node,
        service: str,
        request: _Untyped = None,
        response: _Untyped = None,
        *,
        bound_bytes: int | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Server[_Q, Any],
        node: Node,
        service: str,
        request: type[_Q],
        response: _Untyped = None,
        *,
        bound_bytes: int | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Server[Any, _R],
        node: Node,
        service: str,
        request: _Untyped,
        response: type[_R],
        *,
        bound_bytes: int | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Server[_Q, _R],
        node: Node,
        service: str,
        request: type[_Q],
        response: type[_R],
        *,
        bound_bytes: int | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self: Server[Any, Any],
        node: Node,
        service: str,
        request: ServiceType = None,
        response: ServiceType = None,
        *,
        bound_bytes: int | None = None,
    ) -> None: ...
    def receive(self, timeout: float | None = None) -> Request[_Q, _R] | None:
        """The next request, or None when `timeout` seconds passed without one.

        A client's requests wait while the lane of its replies cannot be opened: a full RAM disk, no
        descriptors, no rights. That raises nothing here; it is tried again after 2 to 250 ms.
        """
    @property
    def passed_over(self) -> int:
        """Requests that were skipped because nobody waited for them any more."""
    def receive_async(self) -> Coroutine[Any, Any, Request[_Q, _R]]:
        """The next request, for asyncio. A task that is cancelled while it waits has received
        nothing: the request is still there.
        """
    def fileno(self) -> int:
        """A descriptor for event loops: readable unless the last receiving call found nothing."""
    def __iter__(self) -> Iterator[Request[_Q, _R]]: ...
    def __aiter__(self) -> AsyncIterator[Request[_Q, _R]]: ...

class Request(Generic[_Q, _R]):
    """A request. Answer it once; if it is dropped without an answer, its client waits until its
    deadline.

    >>> server, client = outlive.Server(node, "/drive"), outlive.Client(node, "/drive")
    >>> ticket = client.send({"speed": 0.5})
    >>> request = server.receive(timeout=1.0)
    >>> request.value, request.is_cancelled
    ({'speed': 0.5}, False)
    >>> request.respond("done")
    """

    @property
    def value(self) -> _Q:
        """The type of requests.

        ``Corrupt``: it is none of that type. Its client gets ``Refused``: continue with the next
        request.
        """
    @property
    def is_cancelled(self) -> bool:
        """Whether the client has given it up or is dead."""
    def respond(self, value: _R) -> None:
        """Answers it. ``ClientDied``: nobody waits for the answer; continue with the next request."""
    def respond_part(self, value: _R) -> None:
        """Sends one part of the answer; more follow, and ``respond`` sends the last.

        >>> server, client = outlive.Server(node, "/drive"), outlive.Client(node, "/drive")
        >>> ticket = client.send("dock")
        >>> request = server.receive(timeout=1.0)
        >>> request.respond_part("half way")
        >>> request.respond("docked")
        >>> replies = [client.receive(timeout=1.0) for _ in range(2)]
        >>> [(reply.value, reply.is_last) for reply in replies]
        [('half way', False), ('docked', True)]
        """
    def refuse(self, why: str) -> None:
        """Refuses it and says why."""

class RobustMutex(_Lock):
    """A mutex whose owner may be killed at any instruction; the next one gets the lock and the data.

    With a `type`, as of ``Publisher`` and of fixed size, it protects data in shared memory:
    ``with mutex as data: data[0] += 1``. It is the same lock as that of Rust and C++ with that
    type.

    If the last owner died inside, the data may be half written: ``owner_died`` is true until
    ``mark_consistent`` is called. If it is released without that, nobody gets the lock any more
    (``Unrecoverable``) until ``Node.remove_lock``. `repair`, called with the data, does both; if it
    raises, the lock is for the next one to repair. A ``with`` that an exception leaves counts as an
    owner that died inside.

    With `inherits_priority`, for threads with real-time priorities, the holder runs with the
    priority of the waiter; it is another lock, with no condition variable.

    >>> node = outlive.Node("planner")
    >>> account = outlive.RobustMutex(node, "/account", np.int64, (2,), initial=[60, 40])
    >>> with account as money:
    ...     if account.owner_died:  # in the midst of a transfer
    ...         money[1] = 100 - money[0]
    ...         account.mark_consistent()
    ...     money += [-10, 10]
    ...     money.tolist()
    [50, 50]
    """

    def __init__(
        self,
        node: Node,
        name: str,
        type: Type = None,
        shape: Shape = None,
        *,
        type_name: str | None = None,
        initial: Any = None,
        repair: Callable[[np.ndarray], Any] | None = None,
        inherits_priority: bool = False,
    ) -> None: ...
    def acquire(self, timeout: float | None = None) -> bool:
        """Takes the lock; False when `timeout` seconds passed first. 0 never waits.

        ``Deadlock``: this thread holds it. ``Unrecoverable``: see above.

        >>> arm = outlive.RobustMutex(node, "/arm")
        >>> if arm.acquire(timeout=1.0):
        ...     try:
        ...         print("the arm is mine")
        ...     finally:
        ...         arm.release()
        the arm is mine
        """
    def release(self) -> None:
        """Releases the lock. ``NotOwned`` when this thread does not hold it."""
    @property
    def data(self) -> np.ndarray | None:
        """The protected data as an array in shared memory, for the thread that holds the lock; None
        without a type. When the lock is released, and in a forked child, it becomes read-only.
        """
    def __enter__(self) -> Any: ...
    def __exit__(self, *exception: Any) -> None: ...

class RobustRwLock(_Lock):
    """A reader/writer lock whose holders may be killed at any instruction; else as ``RobustMutex``.

    ``with lock.read() as data`` for any number of readers, ``with lock.write() as data`` for one
    writer. A dead reader keeps nobody out; after a dead writer readers get ``OwnerDied`` until a
    writer has repaired the data.

    >>> node = outlive.Node("planner")
    >>> gains = outlive.RobustRwLock(node, "/gains", np.float64, (3,))
    >>> with gains.write() as pid:
    ...     pid[:] = 1.0, 0.5, 0.1
    >>> with gains.read(timeout=1.0) as pid:
    ...     pid.tolist(), pid.flags.writeable
    ([1.0, 0.5, 0.1], False)
    """

    def read(self, timeout: float | None = None) -> Guard:
        """For ``with``: takes it for reading and returns the data, read-only. ``Timeout`` after
        `timeout` seconds.
        """
    def write(self, timeout: float | None = None) -> Guard:
        """For ``with``: takes it for writing and returns the data."""
    def acquire_read(self, timeout: float | None = None) -> bool:
        """Takes it for reading; False when `timeout` seconds passed first."""
    def release_read(self) -> None:
        """Ends reading."""
    def acquire_write(self, timeout: float | None = None) -> bool:
        """Takes it for writing; False when `timeout` seconds passed first."""
    def release_write(self) -> None:
        """Ends writing."""

class Guard(ContextManager[Any]):
    """A reader/writer lock about to be taken by ``with``.

    >>> lock = outlive.RobustRwLock(node, "/map", np.uint8, (3,))
    >>> guard = lock.read(timeout=1.0)  # takes nothing yet
    >>> with guard as cells:
    ...     cells.tolist()
    [0, 0, 0]
    """

    def __enter__(self) -> Any: ...
    def __exit__(self, *exception: Any) -> None: ...

class RobustCondition(_Port):
    """Waiting for a change of data under a ``RobustMutex``, between processes as between threads.

    Spurious wake-ups are normal: check the data again, or let ``wait_for`` do it. Killed waiters
    and notifiers leave nobody waiting. It cannot tell whether anyone is left to notify it: wait
    with a timeout, or watch the node.

    >>> node = outlive.Node("planner")
    >>> goal = outlive.RobustMutex(node, "/arm/goal", np.int64)
    >>> changed = outlive.RobustCondition(node, "/arm/goal-changed")
    >>> with goal as data:
    ...     changed.wait_for(goal, lambda: int(data) > 0, timeout=0.01)
    ...     data[...] = 7
    ...     changed.notify_all()
    ...     changed.wait_for(goal, lambda: int(data) > 0)
    False
    True
    """

    def __init__(self, node: Node, name: str) -> None: ...
    def wait(self, mutex: RobustMutex, timeout: float | None = None) -> bool:
        """Releases the mutex, which this thread holds, waits for a notification, at most `timeout`
        seconds, and takes the mutex again, however long that takes; False: no notification came.

        ``NotOwned``: this thread does not hold it. If its owner died meanwhile, ``owner_died`` of
        the mutex is true, or the data is repaired; after ``Unrecoverable`` it is not held any more.
        If this is closed meanwhile it raises ``InvalidArgument``, with the mutex; if the mutex is
        closed, without it. What a signal's handler raised comes before these.
        """
    def wait_for(
        self, mutex: RobustMutex, predicate: Callable[[], Any], timeout: float | None = None
    ) -> Any:
        """Waits as ``wait`` until `predicate()` is true, at most `timeout` seconds; returns its last
        result.
        """
    def notify(self) -> None:
        """Wakes one waiter, if there is any. With or without the mutex held."""
    def notify_all(self) -> None:
        """Wakes all waiters."""

class RobustSemaphore:
    """A counting semaphore: each permit lets one thread in, over all processes. A killed holder's
    permit comes back.

    >>> node = outlive.Node("planner")
    >>> gpu = outlive.RobustSemaphore(node, "/gpu", 2)
    >>> with gpu as permit:
    ...     permit.owner_died, gpu.available
    (False, 1)
    >>> gpu.available
    2
    """

    def __init__(self, node: Node, name: str, permits: int) -> None: ...
    def acquire(self, timeout: float | None = None) -> Permit | None:
        """Takes a permit; None when `timeout` seconds passed and living threads held all of them. 0
        never waits, None waits for ever.

        ``Deadlock``: this thread holds them all.

        >>> gpu = outlive.RobustSemaphore(node, "/gpu", 2)
        >>> permit = gpu.acquire(timeout=1.0)
        >>> if permit is not None:
        ...     print("on device", permit.index)
        ...     permit.release()
        on device 0
        """
    @property
    def permits(self) -> int:
        """How many permits there are."""
    @property
    def available(self) -> int:
        """How many are free right now; others may take them at once. Those of dead holders count as
        held.
        """
    def close(self) -> None:
        """Unmaps its memory. Permits in hand stay valid."""
    def __enter__(self) -> Permit: ...
    def __exit__(self, *exception: Any) -> None: ...

class Permit(_Scope):
    """A permit of a ``RobustSemaphore``, until released or dropped. It is the thread's that took it.

    >>> gpus = outlive.RobustSemaphore(node, "/gpus", 4)
    >>> with gpus.acquire(timeout=1.0) as first, gpus.acquire(timeout=1.0) as second:
    ...     first.index, second.index, gpus.available
    (0, 1, 2)
    >>> gpus.available
    4
    """

    @property
    def index(self) -> int:
        """Which of the permits it is, from 0: for instance the number of a device."""
    @property
    def owner_died(self) -> bool:
        """Whether the previous holder died with it: what it guards may be inconsistent."""
    def release(self) -> None:
        """Gives it back. The second time it does nothing."""

class LocklessSet(_Port):
    """A bounded set of numbers from 1 to 2**64 - 1 that any number of threads and processes change
    without a lock.

    They have no owner: those that a killed process inserted stay until somebody removes them.

    >>> node = outlive.Node("planner")
    >>> ready = outlive.LocklessSet(node, "/fleet/ready", 16)
    >>> ready.insert(7), ready.insert(7), 7 in ready, len(ready)
    (True, False, True, 1)
    >>> ready.remove(7), list(ready)
    (True, [])
    """

    def __init__(self, node: Node, name: str, capacity: int) -> None: ...
    def insert(self, id: int) -> bool:
        """Adds `id`; False if it was a member already. Two that insert the same at the same time may
        both get True. ``NoSpace``: the set is full; ``InvalidArgument`` for 0.
        """
    def remove(self, id: int) -> bool:
        """Removes `id`; False if it was not a member."""
    def ids(self) -> list[int]:
        """All members in ascending order; ids inserted or removed meanwhile may or may not be
        included.
        """
    @property
    def capacity(self) -> int:
        """How many there is room for."""
    def __contains__(self, id: int) -> bool: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[int]: ...

class Domain:
    """The domain that nodes with these settings join, or that of a node (``Domain.of``), seen from
    outside: who is there, and cleaning up. Joins nothing, creates nothing.

    >>> [known.name for known in outlive.Domain().nodes()]
    ['planner']
    """

    def __init__(
        self, domain: str | None = None, *, root: str | None = None, group: int | None = None
    ) -> None: ...
    @staticmethod
    def of(node: Node) -> Domain:
        """The domain that `node` joined.

        >>> outlive.Domain.of(node).dir.name
        'default'
        """
    @property
    def dir(self) -> pathlib.Path:
        """Its directory."""
    def nodes(self) -> list[NodeInfo]:
        """All nodes in order of joining, including dead ones that nobody has cleaned up.

        >>> for known in outlive.Domain.of(node).nodes():
        ...     print(known.name, known.alive, known.id == node.id)
        planner True True
        """
    def topics(self) -> list[TopicInfo]:
        """All topics in order of names.

        >>> publisher = outlive.Publisher(node, "/scan", np.float32, (360,))
        >>> publisher.publish(np.zeros(360))
        0
        >>> for topic in outlive.Domain.of(node).topics():
        ...     print(topic.name, topic.element_bytes, [it.messages for it in topic.publishers])
        /scan 1440 [1]
        """
    def subscribers(self, topic: str) -> list[SubscriberInfo] | None:
        """The subscribers of a topic: what they hold and how far they have read. None if there is no
        such topic.

        >>> viewer = outlive.Subscriber(node, "/scan", borrows=4, reliable=True)
        >>> for seen in outlive.Domain.of(node).subscribers("/scan"):
        ...     print(seen.id[0] == node.id, seen.borrows, seen.reliable, seen.held)
        True 4 True []
        """
    def queues(self) -> list[QueueInfo]:
        """All queues in order of names.

        >>> consumer, producer = outlive.Consumer(node, "/jobs"), outlive.Producer(node, "/jobs")
        >>> producer.send("weld")
        >>> for queue in outlive.Domain.of(node).queues():
        ...     print(queue.name, queue.consumer == node.id, [lane.unread for lane in queue.lanes])
        /jobs True [1]
        """
    def services(self) -> list[ServiceInfo]:
        """All services in order of names.

        >>> server = outlive.Server(node, "/plan", bytes, bytes)
        >>> for service in outlive.Domain.of(node).services():
        ...     print(service.name, service.request, service.server == node.id, service.clients)
        /plan u8 True []
        """
    def locks(self) -> list[LockInfo]:
        """All locks, condition variables, semaphores, sets and segments in order of names.

        >>> arm = outlive.RobustMutex(node, "/arm")
        >>> with arm:
        ...     [(lock.name, lock.kind, lock.state) for lock in outlive.Domain.of(node).locks()]
        [('/arm', 'mutex', 'held')]
        """
    def clean(self) -> CleanReport:
        """Removes everything that dead processes left and no live one needs, and the domain's
        directory, too, when nobody is left. Never touches what a live or stopped process uses.

        ``Timeout``: a stopped process holds the domain's lock.

        >>> report = outlive.Domain.of(node).clean()
        >>> report.live_nodes, report.node_files, report.domain_removed
        (1, 0, False)
        """
    def audit(self) -> AuditReport:
        """Checks the invariants of all files, read-only, while members keep running: how many files,
        and a line for each broken invariant.

        >>> report = outlive.Domain.of(node).audit()
        >>> report.files > 0, report.faults
        (True, [])
        """

class Timer(_Port):
    """Ready every `period` seconds, or once after `delay` seconds. A forked child has one of its own.

    >>> with outlive.Timer(period=0.01) as timer, outlive.WaitSet() as waits:
    ...     ready = waits.wait([timer], timeout=10.0)
    ...     ready == [timer], timer.fired() > 0
    (True, True)
    """

    def __init__(self, period: float | None = None, *, delay: float | None = None) -> None: ...
    def fired(self) -> int:
        """How often it became due since the last call; it stays ready until this is called."""

class WaitSet(_Port):
    """Waits until one of several things is ready.

    >>> goals, jobs = outlive.Subscriber(node, "/goal"), outlive.Consumer(node, "/jobs")
    >>> producer = outlive.Producer(node, "/jobs")  # in another process
    >>> producer.send("weld")
    >>> with outlive.WaitSet() as waits:
    ...     for port in waits.wait([goals, jobs], timeout=10.0):
    ...         print(type(port).__name__, port.receive(timeout=0))
    Consumer weld
    """

    def wait(self, members: list[Any], timeout: float | None = None) -> list[Any]:
        """Waits until one of `members` is ready and returns the list of those that are; empty when
        `timeout` seconds passed first. 0 only looks.

        Members are subscribers, consumers, servers, clients, watches, timers, and what has a
        ``fileno``: that is ready when it can be read.
        """

class Error(Exception):
    """What failed, on which object (``object``), why, and what to do next (``remedy``).

    >>> try:
    ...     outlive.Subscriber(node, "front camera")
    ... except (outlive.Permission, outlive.VersionMismatch):
    ...     raise  # nothing that this program could do
    ... except outlive.Error as e:
    ...     print(f"{type(e).__name__}: {e.object}: {e.remedy}")
    InvalidName: 'front camera': use letters, digits, '_', '-' and '.', parts separated by '/'
    """

    object: str
    remedy: str
    def __init__(self, message: str = "", *, object: str = "", remedy: str = "") -> None: ...

class InvalidName(Error, ValueError):
    """A name breaks the rules for names.

    >>> try:
    ...     outlive.Subscriber(node, "front camera")
    ... except outlive.InvalidName:
    ...     outlive.Subscriber(node, "front_camera").topic
    '/front_camera'
    """
class InvalidArgument(Error, ValueError):
    """An argument is outside its documented range, or the object is closed.

    >>> subscriber = outlive.Subscriber(node, "/scan")
    >>> subscriber.close()
    >>> try:
    ...     subscriber.receive(timeout=0)
    ... except outlive.InvalidArgument as e:
    ...     print(e)
    using Subscriber /scan: invalid argument; it is closed
    """
class TypeMismatch(Error, TypeError):
    """The object exists with another type; the message names every field that differs.

    >>> publisher = outlive.Publisher(node, "/speed", np.float64)
    >>> try:
    ...     outlive.Subscriber(node, "/speed", np.float32)
    ... except outlive.TypeMismatch as e:
    ...     print(e)
    opening topic /speed: type mismatch; the two differ:
      type is f64, this program has f32
    ...
    """
class VersionMismatch(Error):
    """The object was made by another layout version.

    Example: ``Error``.
    """
class Corrupt(Error):
    """Shared bytes or a file are not what the layout says.

    >>> goal = outlive.Encoded("json", "robot/Goal")
    >>> try:
    ...     goal.decode(b"{")
    ... except outlive.Corrupt as e:
    ...     print(e.remedy)
    correct the program that sent them
    """
class NoSpace(Error, OSError):
    """The RAM disk or a quota is full, or a ``LocklessSet``.

    >>> ready = outlive.LocklessSet(node, "/ready", 1)
    >>> ready.insert(7)
    True
    >>> try:
    ...     ready.insert(8)
    ... except outlive.NoSpace as e:
    ...     print(e.remedy)
    it is full: make it larger
    """
class NotOwned(Error, PermissionError):
    """A file belongs to someone else, or a lock is not held by this thread.

    >>> arm = outlive.RobustMutex(node, "/arm")
    >>> try:
    ...     arm.release()
    ... except outlive.NotOwned as e:
    ...     print(e.remedy)
    only the thread that holds it may
    """
class Permission(Error, PermissionError):
    """The kernel refused for lack of permission.

    Example: ``Error``.
    """
class NotFound(Error, LookupError):
    """No such topic, node or file.

    >>> try:
    ...     node.watch(999)
    ... except outlive.NotFound:
    ...     print("node 999 is gone")
    node 999 is gone
    """
class AlreadyExists(Error):
    """The object exists already.

    Example: ``Error``.
    """
class Timeout(Error, TimeoutError):
    """The deadline passed.

    >>> server, client = outlive.Server(node, "/drive"), outlive.Client(node, "/drive")
    >>> try:
    ...     client.call("dock", timeout=0.01)
    ... except outlive.Timeout:
    ...     print("the server is busy")
    the server is busy
    """
class WouldBlock(Error, BlockingIOError):
    """The call would have to wait, or another thread is in a call on the same object.

    >>> consumer = outlive.Consumer(node, "/jobs", bytes)
    >>> producer = outlive.Producer(node, "/jobs", bytes, bound_bytes=4096)
    >>> try:
    ...     while True:
    ...         producer.send(bytes(1000), timeout=0)
    ... except outlive.WouldBlock:
    ...     print("the consumer is behind")
    the consumer is behind
    """
class OutOfMemory(Error, MemoryError):
    """The bound on memory of the topic or of the process is reached.

    >>> publisher = outlive.Publisher(node, "/image", bytes, memory_bytes_max=1 << 20)
    >>> try:
    ...     publisher.publish(bytes(1 << 21))
    ... except outlive.OutOfMemory as e:
    ...     print(e.object)
    /image
    """
class TooManyBorrows(Error):
    """The subscriber holds as many samples as it asked for, or the consumer a message: let go of some.

    >>> consumer, producer = outlive.Consumer(node, "/jobs"), outlive.Producer(node, "/jobs")
    >>> producer.send("weld")
    >>> message = consumer.borrow(timeout=1.0)
    >>> try:
    ...     consumer.receive(timeout=0)
    ... except outlive.TooManyBorrows as e:
    ...     print(e.remedy)
    let go of the message in hand and of all arrays over it
    """
class TooManyMembers(Error):
    """A documented bound on members is reached.

    Example: ``Error``.
    """
class OwnerDied(Error):
    """The peer is dead: no live consumer; a writer died inside a lock.

    >>> producer = outlive.Producer(node, "/jobs")
    >>> try:
    ...     producer.send("weld")
    ... except outlive.OwnerDied:
    ...     producer.wait_for_consumer(timeout=0.01)
    False
    """
class ConsumerExists(Error):
    """The queue has a live consumer already, or the service a live server.

    >>> consumer = outlive.Consumer(node, "/jobs")  # in another process
    >>> try:
    ...     outlive.Consumer(node, "/jobs")
    ... except outlive.ConsumerExists as e:
    ...     print(e.remedy)
    node 1 consumes it: end that one first, or use another queue
    """
class ServerDied(Error):
    """The service has no live server, or it died before it answered.

    >>> client = outlive.Client(node, "/drive")
    >>> try:
    ...     client.call("dock", timeout=1.0)
    ... except outlive.ServerDied:
    ...     client.wait_for_server(timeout=0.01)
    False
    """
class ClientDied(Error):
    """The client of a request is dead or gone.

    >>> server, client = outlive.Server(node, "/drive"), outlive.Client(node, "/drive")
    >>> ticket = client.send("dock")
    >>> request = server.receive(timeout=1.0)
    >>> client.close()
    >>> try:
    ...     request.respond("docked")
    ... except outlive.ClientDied:
    ...     print("on to the next request")
    on to the next request
    """
class Refused(Error):
    """The server refused the request; the message has its words.

    >>> server, client = outlive.Server(node, "/drive"), outlive.Client(node, "/drive")
    >>> ticket = client.send("fly")
    >>> server.receive(timeout=1.0).refuse("it has wheels")
    >>> try:
    ...     client.receive(timeout=1.0).value
    ... except outlive.Refused as e:
    ...     print(e)
    calling service /drive: refused; the server said: it has wheels
    """
class Deadlock(Error, RuntimeError):
    """This thread holds the lock already.

    >>> arm = outlive.RobustMutex(node, "/arm")
    >>> with arm:
    ...     try:
    ...         arm.acquire(timeout=1.0)
    ...     except outlive.Deadlock as e:
    ...         print(e.remedy)
    release what this thread holds of it first
    """
class Unrecoverable(Error):
    """A lock was inherited from a dead owner and let go without repair.

    >>> arm = outlive.RobustMutex(node, "/arm")
    >>> try:
    ...     with arm:
    ...         raise ValueError  # as a death inside
    ... except ValueError:
    ...     with arm:
    ...         pass  # no repair, no mark_consistent
    >>> try:
    ...     arm.acquire()
    ... except outlive.Unrecoverable:
    ...     node.remove_lock("/arm")
    True
    """
class OtherDomain(Error):
    """The object belongs to another domain.

    Example: ``Error``.
    """
class ForkedChild(Error, RuntimeError):
    """The object belongs to the parent of this forked process: open a node here.

    >>> import os
    >>> child = os.fork()
    >>> if child == 0:
    ...     try:
    ...         outlive.Publisher(node, "/scan")
    ...     except outlive.ForkedChild:
    ...         os._exit(7)
    >>> os.WEXITSTATUS(os.waitpid(child, 0)[1])
    7
    """
class Unsupported(Error, NotImplementedError):
    """This kernel or build cannot do it.

    >>> image = msg.Image.of(np.zeros((2, 3), np.uint8), "mono8")
    >>> image.header["format"] = 77  # of a later version
    >>> try:
    ...     image.pixels
    ... except outlive.Unsupported as e:
    ...     print(e.remedy)
    pixel format 77 is unknown here; update this program, or correct the sender
    """
class Io(Error, OSError):
    """Any other answer of the operating system.

    Example: ``Error``.
    """
