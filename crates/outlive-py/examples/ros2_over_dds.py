"""Carries topics between outlive and a ROS 2 over DDS, with the package cyclonedds; without ROS.

    pip install outlive cyclonedds
    python ros2_over_dds.py out:/chatter:std_msgs/msg/String in:/cmd_vel:geometry_msgs/msg/Twist

Here the messages are MessagePack named like those of ROS, with the fields as keys; a topic goes one
way. ROS_DOMAIN_ID is the domain of DDS. More messages: more classes like those below."""

import dataclasses
import os
import signal
import sys
import threading
import typing

from cyclonedds.core import (
    InstanceState, Policy, Qos, ReadCondition, SampleState, ViewState, WaitSet)
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct, types
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

import outlive

LOOK_EVERY = 0.1  # s


@dataclasses.dataclass
class String(IdlStruct, typename="std_msgs.msg.dds_.String_"):
    data: str = ""


@dataclasses.dataclass
class Vector3(IdlStruct, typename="geometry_msgs.msg.dds_.Vector3_"):
    x: types.float64 = 0.0
    y: types.float64 = 0.0
    z: types.float64 = 0.0


@dataclasses.dataclass
class Twist(IdlStruct, typename="geometry_msgs.msg.dds_.Twist_"):
    linear: Vector3 = dataclasses.field(default_factory=Vector3)
    angular: Vector3 = dataclasses.field(default_factory=Vector3)


KNOWN = {"std_msgs/msg/String": String, "geometry_msgs/msg/Twist": Twist}


def build(of, value):
    """A message of DDS from a map; what that lacks is zero, what it has too much an error."""
    hints = typing.get_type_hints(of)
    inner = {n: build(hints[n], v) if dataclasses.is_dataclass(hints.get(n)) else v
             for n, v in value.items()}
    return of(**inner)


def default_qos():
    """What nodes of ROS have unless told otherwise."""
    return Qos(Policy.Reliability.Reliable(duration(milliseconds=100)),
               Policy.History.KeepLast(10), Policy.Durability.Volatile)


def tell(line):
    """One write for a whole line: several threads tell."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def carry_out(node, participant, name, of, ends):
    writer = DataWriter(participant, Topic(participant, "rt" + name, KNOWN[of]), qos=default_qos())
    subscriber = outlive.Subscriber(node, name, type_name=of)
    tell(f"carrying {name} to DDS")
    while not ends.is_set():
        sample = subscriber.receive(LOOK_EVERY)
        if sample is None:
            continue
        try:
            writer.write(build(KNOWN[of], sample.value))
        except Exception as e:  # one bad message must not stop the others
            print(f"{name}: a message is not a valid {of}: {e}", file=sys.stderr)


def carry_in(node, participant, name, of, ends):
    reader = DataReader(participant, Topic(participant, "rt" + name, KNOWN[of]), qos=default_qos())
    publisher = outlive.Publisher(node, name, type_name=of, depth=16)
    new = ReadCondition(reader, SampleState.NotRead | ViewState.Any | InstanceState.Alive)
    waits = WaitSet(participant)
    waits.attach(new)
    tell(f"carrying {name} from DDS")
    while not ends.is_set():
        waits.wait(duration(seconds=LOOK_EVERY))
        for message in reader.take(64, condition=new):
            publisher.publish(dataclasses.asdict(message))


def main(args):
    routes = [arg.split(":") for arg in args]
    fine = [len(r) == 3 and r[0] in ("in", "out") and r[2] in KNOWN for r in routes]
    if not fine or not all(fine):
        sys.exit(f"usage: ros2_over_dds.py in|out:NAME:TYPE ...\nknown: {', '.join(KNOWN)}")
    node = outlive.Node("ros2_over_dds")
    participant = DomainParticipant(int(os.environ.get("ROS_DOMAIN_ID", 0)))
    ends = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ends.set())
    ways = {"in": carry_in, "out": carry_out}
    threads = [threading.Thread(target=ways[way], args=(node, participant, name, of, ends))
               for way, name, of in routes]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(LOOK_EVERY)


if __name__ == "__main__":
    main(sys.argv[1:])
