"""A queue with both ends, opened when they are used."""

from ._outlive import Consumer, Producer


class Queue:
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
        node,
        queue,
        type=None,
        shape=None,
        *,
        type_name=None,
        bound_bytes=None,
        first_bytes=None,
        stamped=False,
        ordered=None,
    ):
        self._args = (node, queue, type, shape)
        both = {"type_name": type_name, "stamped": stamped or ordered is not None}
        self._of_producer = {**both, "bound_bytes": bound_bytes, "first_bytes": first_bytes}
        self._of_consumer = {**both, "ordered": ordered}
        self._producer = None
        self._consumer = None

    def producer(self):
        """The sending end."""
        if self._producer is None:
            self._producer = Producer(*self._args, **self._of_producer)
        return self._producer

    def consumer(self):
        """The receiving end; ``ConsumerExists`` while another process has it."""
        if self._consumer is None:
            self._consumer = Consumer(*self._args, **self._of_consumer)
        return self._consumer

    def put(self, value, timeout=None):
        """Sends a value: see ``Producer.send``."""
        self.producer().send(value, timeout)

    def put_batch(self, values, timeout=None):
        """Sends many at once: see ``Producer.send_batch``."""
        self.producer().send_batch(values, timeout)

    def get(self, timeout=None):
        """The next value, or None: see ``Consumer.receive``."""
        return self.consumer().receive(timeout)

    def borrow(self, timeout=None):
        """The next value where it lies, or None: see ``Consumer.borrow``."""
        return self.consumer().borrow(timeout)

    def __iter__(self):
        return iter(self.consumer())

    def __aiter__(self):
        return self.consumer().__aiter__()

    def close(self):
        """Leaves the queue."""
        for end in (self._producer, self._consumer):
            if end is not None:
                end.close()
        self._producer = self._consumer = None

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.close()
