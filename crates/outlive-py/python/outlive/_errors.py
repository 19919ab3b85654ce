"""One exception per kind of error; each is also the built-in one that comes closest."""


class Error(Exception):
    """What failed, on which object (``object``), why, and what to do next (``remedy``)."""

    def __init__(self, message="", *, object="", remedy=""):
        super().__init__(message)
        self.object = object
        self.remedy = remedy


class InvalidName(Error, ValueError):
    """A name breaks the rules for names."""


class InvalidArgument(Error, ValueError):
    """An argument is outside its documented range, or the object is closed."""


class TypeMismatch(Error, TypeError):
    """The object exists with another type; the message names every field that differs."""


class VersionMismatch(Error):
    """The object was made by another layout version."""


class Corrupt(Error):
    """Shared bytes or a file are not what the layout says."""


class NoSpace(Error, OSError):
    """The RAM disk or a quota is full."""


class NotOwned(Error, PermissionError):
    """A file belongs to someone else, or a lock is not held by this thread."""


class Permission(Error, PermissionError):
    """The kernel refused for lack of permission."""


class NotFound(Error, LookupError):
    """No such topic, node or file."""


class AlreadyExists(Error):
    """The object exists already."""


class Timeout(Error, TimeoutError):
    """The deadline passed."""


class WouldBlock(Error, BlockingIOError):
    """The call would have to wait, or another thread is in a call on the same object."""


class OutOfMemory(Error, MemoryError):
    """The bound on memory of the topic or of the process is reached."""


class TooManyBorrows(Error):
    """The subscriber holds as many samples as it asked for: let go of some."""


class TooManyMembers(Error):
    """A documented bound on members is reached."""


class OwnerDied(Error):
    """The peer is dead: no live consumer; a writer died inside a lock."""


class ConsumerExists(Error):
    """The queue has a live consumer already, or the service a live server."""


class ServerDied(Error):
    """The service has no live server, or it died before it answered."""


class ClientDied(Error):
    """The client of a request is dead or gone."""


class Refused(Error):
    """The server refused the request; the message has its words."""


class Deadlock(Error, RuntimeError):
    """This thread holds the lock already."""


class Unrecoverable(Error):
    """A lock was inherited from a dead owner and let go without repair."""


class OtherDomain(Error):
    """The object belongs to another domain."""


class ForkedChild(Error, RuntimeError):
    """The object belongs to the parent of this forked process: open a node here."""


class Unsupported(Error, NotImplementedError):
    """This kernel or build cannot do it."""


class Io(Error, OSError):
    """Any other answer of the operating system."""


__all__ = [
    name for name, value in list(globals().items()) if isinstance(value, type) and name[0] != "_"
]
