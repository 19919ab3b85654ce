"""What ``Domain`` tells."""

from typing import Dict, List, NamedTuple, Optional, Tuple

Port = Tuple[int, int]


class NodeInfo(NamedTuple):
    """A node; `started_ns` of CLOCK_MONOTONIC; `pid` in its own namespace, for people only.

    Example: ``Domain.nodes``.
    """

    id: int
    name: str
    pid: int
    alive: bool
    started_ns: int


class PublisherInfo(NamedTuple):
    """A publisher (node and port) and its counters. `closed`: it left in order.

    Example: ``Domain.topics``.
    """

    id: Port
    alive: bool
    closed: bool
    messages: int
    payload_bytes: int
    newest_ns: Optional[int]
    memory_bytes: int


class TopicInfo(NamedTuple):
    """A topic; `description` as of ``describe``, empty if there is none; nodes of subscribers.

    Example: ``Domain.topics``.
    """

    name: str
    type_name: str
    encoding: str
    element_bytes: int
    description: str
    depth: int
    publishers: List[PublisherInfo]
    subscribers: List[int]
    attributes: Dict[str, str]


class SubscriberInfo(NamedTuple):
    """A subscriber (node and port): by publisher, which message it reads next (`sources`) and which
    ones it holds, None for one that the ring does not name any more (`held`).

    Example: ``Domain.subscribers``.
    """

    id: Port
    alive: bool
    reliable: bool
    waiting: bool
    borrows: int
    sources: List[Tuple[Port, int]]
    held: List[Tuple[Port, Optional[int]]]


class LaneInfo(NamedTuple):
    """A producer (node and port) and its lane. `closed`: it left in order.

    Example: ``Domain.queues``.
    """

    producer: Port
    alive: bool
    closed: bool
    unread: int
    received: int
    memory_bytes: int


class QueueInfo(NamedTuple):
    """A queue; `consumer` is the node of the live one, or None.

    Example: ``Domain.queues``.
    """

    name: str
    type_name: str
    description: str
    stamped: bool
    consumer: Optional[int]
    lanes: List[LaneInfo]


class ServiceInfo(NamedTuple):
    """A service: names of its types, nodes of the live server and of live clients.

    Example: ``Domain.services``.
    """

    name: str
    request: str
    response: str
    server: Optional[int]
    clients: List[int]
    unread: int
    memory_bytes: int


class LockInfo(NamedTuple):
    """A lock, condition variable, semaphore, set or segment. `state` is "free", "held",
    "owner died" or "unrecoverable", `owner` node and thread; `count`: permits, or room of a set;
    `users`: reading threads, permits held, members of a set.

    Example: ``Domain.locks``.
    """

    name: str
    kind: str
    type_name: str
    data_bytes: int
    count: int
    state: str
    owner: Optional[Tuple[int, int]]
    waiters: bool
    users: int


class CleanReport(NamedTuple):
    """What ``clean`` removed: files, and whole objects; and what it left.

    Example: ``Domain.clean``.
    """

    node_files: int
    topic_files: int
    queue_files: int
    service_files: int
    realtime_files: int
    topics: int
    queues: int
    services: int
    locks: int
    live_nodes: int
    domain_removed: bool


class AuditReport(NamedTuple):
    """Files that were checked, and a line for each broken invariant.

    Example: ``Domain.audit``.
    """

    files: int
    faults: List[str]


__all__ = [name for name, value in list(globals().items()) if hasattr(value, "_fields")]
