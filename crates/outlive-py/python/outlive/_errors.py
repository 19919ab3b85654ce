"""One exception per kind of error; each is also the built-in one that comes closest."""


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

    def __init__(self, message="", *, object="", remedy=""):
        super().__init__(message)
        self.object = object
        self.remedy = remedy


def _refusal(kind, what, object, remedy):
    """An error of this kind: what went wrong with the object, and what to do next."""
    return kind(f"{what}; {remedy}", object=object, remedy=remedy)


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


__all__ = [
    name for name, value in list(globals().items()) if isinstance(value, type) and name[0] != "_"
]
