"""One voice of the conversation test; see test_conversation.py."""

import dataclasses
import sys

import numpy as np

import outlive

READING = np.dtype(
    [
        ("stamp_ns", "u8"),
        ("sender", "u4"),
        ("number", "u4"),
        ("values", "f8", (3,)),
        ("grid", "i2", (2, 2)),
    ]
)
OF = {"type": READING, "type_name": "test/Reading"}


@dataclasses.dataclass
class Plan:
    """What travels as MessagePack."""

    goal: str
    number: int
    speeds: list


def make(number):
    return np.array((1, 2, number, (1.5, 2.5, 3.5), ((1, 2), (3, 4))), READING)


def total(r):
    return float(r["values"].sum() + r["grid"].sum())


def say(*words):
    print(*words, flush=True)


def numbers():
    return (int(line) for line in sys.stdin)


def word(e):
    return {"OwnerDied": "owner died", "ServerDied": "server died"}.get(type(e).__name__, repr(e))


def main(role):
    if role == "layout":
        say(outlive.describe(READING).replace("\n", "|"))
        say(make(3).tobytes().hex())
        return
    node = outlive.Node("python")
    service = ("/c/service", (READING, None, "test/Reading"), np.float64)
    if role == "publish":
        publisher = outlive.Publisher(node, "/c/topic", depth=64, **OF)
        say("ready")
        for number in numbers():
            publisher.publish(make(number))
            say("ok")
    elif role == "plan":
        publisher = outlive.Publisher(node, "/c/plan", Plan, type_name="test/Plan")
        say("ready")
        for number in numbers():
            publisher.publish(Plan("dock", number, [0.5, 0.25]))
            say("ok")
    elif role == "follow":
        subscriber = outlive.Subscriber(node, "/c/plan", Plan, type_name="test/Plan")
        say("ready")
        for sample in subscriber:
            plan = sample.value
            say(plan.goal, plan.number, f"{sum(plan.speeds):g}")
    elif role == "subscribe":
        subscriber = outlive.Subscriber(node, "/c/topic", **OF)
        say("ready")
        for sample in subscriber:
            say(sample.array["number"], f"{total(sample.array):g}")
    elif role == "produce":
        producer = outlive.Producer(node, "/c/queue", **OF)
        say("ready")
        for number in numbers():
            try:
                producer.send(make(number))
                say("ok")
            except outlive.Error as e:
                say(word(e))
    elif role == "consume":
        consumer = outlive.Consumer(node, "/c/queue", **OF)
        say("ready")
        for message in consumer:
            say(message["number"], f"{total(message):g}")
    elif role == "serve":
        server = outlive.Server(node, *service)
        say("ready")
        for request in server:
            value = request.value
            request.respond(total(value) + float(value["number"]))
    elif role == "call":
        client = outlive.Client(node, *service)
        say("ready")
        for number in numbers():
            try:
                say(f"{float(client.call(make(number))):g}")
            except outlive.Error as e:
                say(word(e))
    elif role == "lock":
        mutex = outlive.RobustMutex(node, "/c/lock", **OF)
        say("ready")
        for number in numbers():
            mutex.acquire()
            data, how = mutex.data, "owner died" if mutex.owner_died else "ok"
            before = int(data["number"])
            if mutex.owner_died:
                mutex.mark_consistent()
            data["number"] = number  # and keeps the lock
            say(how, before)


main(sys.argv[1])
