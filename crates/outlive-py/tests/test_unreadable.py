"""Requests that the server cannot read: the client gets an error, and the server goes on."""

import dataclasses
import threading

import numpy as np
import pytest

import outlive


@dataclasses.dataclass
class Old:
    block: int


@dataclasses.dataclass
class New:
    block: int
    count: int


def serve(server, errors):
    """As services.md shows it."""
    for request in server:
        try:
            request.respond(request.value.count)
        except outlive.Corrupt as e:
            errors.append((e, request))
        else:
            return


def test_a_client_of_an_older_program_is_refused_at_once_and_the_server_goes_on(node):
    server = outlive.Server(node, "/read", (New, None, "robot/Read"))
    old = outlive.Client(node, "/read", (Old, None, "robot/Read"))
    new = outlive.Client(node, "/read", (New, None, "robot/Read"))
    errors = []
    serving = threading.Thread(target=serve, args=(server, errors))
    serving.start()
    with pytest.raises(outlive.Refused, match="robot/Read.*count"):
        old.call(Old(7), timeout=30.0)
    assert new.call(New(7, 3), timeout=30.0) == 3
    serving.join()
    ((corrupt, request),) = errors
    assert "count" in str(corrupt)
    for again in (lambda: request.respond(1), lambda: request.refuse("no"), lambda: request.value):
        with pytest.raises(outlive.InvalidArgument, match="answered already"):
            again()


def test_bad_json_and_a_failing_class_are_refused_too(node):
    goal = outlive.Encoded("json", "robot/Goal")
    raw = outlive.Encoded("json", "robot/Goal", encode=bytes)
    server = outlive.Server(node, "/goal", goal)
    client = outlive.Client(node, "/goal", raw)
    ticket = client.send(b"{", timeout=30.0)
    request = server.receive(timeout=30.0)
    with pytest.raises(outlive.Corrupt):
        request.value
    with pytest.raises(outlive.Refused, match="robot/Goal"):
        client.receive(30.0, ticket=ticket).value

    class Picky:
        def __init__(self, n):
            raise LookupError("no such block")

    picky = outlive.Encoded("cdr", "robot/Picky", encode=bytes, decode=Picky)
    server = outlive.Server(node, "/picky", picky)
    client = outlive.Client(node, "/picky", picky)
    ticket = client.send(b"1234", timeout=30.0)
    with pytest.raises(outlive.Corrupt, match="no such block"):
        server.receive(timeout=30.0).value
    with pytest.raises(outlive.Refused, match="no such block"):
        client.receive(30.0, ticket=ticket).value


@dataclasses.dataclass
class Checked:
    n: int

    def __post_init__(self):
        if self.n == 3:
            raise KeyboardInterrupt
        if self.n == 4:
            raise MemoryError
        if self.n == 5:
            raise LookupError("five")


def test_what_interrupts_the_reading_leaves_the_request(node):
    server = outlive.Server(node, "/n", (Checked, None, "robot/N"))
    client = outlive.Client(node, "/n", (object, None, "robot/N"))
    for n, kind in ((3, KeyboardInterrupt), (4, MemoryError)):
        ticket = client.send({"n": n}, timeout=30.0)
        request = server.receive(timeout=30.0)
        with pytest.raises(kind):
            request.value
        request.respond(n)
        assert client.receive(30.0, ticket=ticket).value == n
    ticket = client.send({"n": 5}, timeout=30.0)
    request = server.receive(timeout=30.0)
    with pytest.raises(LookupError, match="five"):
        request.value
    with pytest.raises(outlive.Refused, match="five"):
        client.receive(30.0, ticket=ticket).value
