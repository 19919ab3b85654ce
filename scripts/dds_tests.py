"""Topics of outlive and a DDS, by way of examples/ros2_over_dds.py in a process of its own: what
goes out, what comes in, what is not a message, and the death of that process."""

import os
import pathlib
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

from cyclonedds.builtin import BuiltinDataReader, BuiltinTopicDcpsPublication
from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct, types
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

import outlive

MESSAGES = 200
ROOT = pathlib.Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "crates/outlive-py/examples/ros2_over_dds.py"
ROUTES = ["out:/chatter:std_msgs/msg/String", "in:/cmd_vel:geometry_msgs/msg/Twist"]


# As the IDL of ROS has them; the example has types of its own.
@dataclass
class Text(IdlStruct, typename="std_msgs::msg::dds_::String_"):
    data: str


@dataclass
class Vector(IdlStruct, typename="geometry_msgs::msg::dds_::Vector3_"):
    x: types.float64
    y: types.float64
    z: types.float64


@dataclass
class Velocity(IdlStruct, typename="geometry_msgs::msg::dds_::Twist_"):
    linear: Vector
    angular: Vector


def wait_for(what, ask):
    until = time.monotonic() + 60
    while time.monotonic() < until:
        got = ask()
        if got:
            return got
        time.sleep(0.01)
    sys.exit(f"dds: timed out waiting for {what}")


def start():
    child = subprocess.Popen([sys.executable, EXAMPLE, *ROUTES], stdout=subprocess.PIPE, text=True)
    told = sorted(child.stdout.readline() for _ in ROUTES)
    if told != ["carrying /chatter to DDS\n", "carrying /cmd_vel from DDS\n"]:
        child.kill()  # it would be seen by the next run
        sys.exit(f"dds: the example says {told}")
    return child


def main():
    qos = Qos(Policy.Reliability.Reliable(duration(seconds=1)), Policy.History.KeepAll)
    participant = DomainParticipant(int(os.environ["ROS_DOMAIN_ID"]))
    reader = DataReader(participant, Topic(participant, "rt/chatter", Text), qos=qos)
    writer = DataWriter(participant, Topic(participant, "rt/cmd_vel", Velocity), qos=qos)
    node = outlive.Node("robot")
    publisher = outlive.Publisher(node, "/chatter", type_name="std_msgs/msg/String", depth=512)
    subscriber = outlive.Subscriber(
        node, "/cmd_vel", type_name="geometry_msgs/msg/Twist", depth=512, reliable=True)
    child = start()
    try:
        talk(publisher, reader, writer, subscriber, 1)
        publications = BuiltinDataReader(participant, BuiltinTopicDcpsPublication)
        names = {p.topic_name: p.type_name for p in publications.take(99)}
        assert names["rt/chatter"] == "std_msgs::msg::dds_::String_", names

        # What is no message is passed over.
        publisher.publish({"text": "no such field"})
        publisher.publish({"data": 7})
        publisher.publish({"data": "after"})
        come = wait_for("a good one", lambda: [m.data for m in reader.take(99)])
        assert come == ["after"], come

        # Killed: both sides are told, and a new one goes on.
        subscriber.events()
        child.send_signal(signal.SIGKILL)
        child.wait()

        def died():
            assert subscriber.receive(0.01) is None
            return any(what == "died" for what, _ in subscriber.events())

        wait_for("the news of its death", died)
        wait_for("the DDS to see it", lambda: not reader.get_matched_publications())
        child = start()
        talk(publisher, reader, writer, subscriber, 2)
        child.send_signal(signal.SIGTERM)
        assert child.wait(30) == 0
    finally:
        child.kill()
    print(f"dds: {MESSAGES} messages each way, twice; the carrier's death told to both sides")


def talk(publisher, reader, writer, subscriber, round):
    # The first again and again until it comes through: then both sides have found each other.
    def first():
        publisher.publish({"data": f"{round}: 0"})
        time.sleep(0.05)
        return reader.take(999)

    wait_for("a message from here", first)
    zero = Vector(x=0.0, y=0.0, z=0.0)

    def command():
        writer.write(Velocity(linear=zero, angular=zero))
        return subscriber.receive(0.05)

    wait_for("a message from there", command)
    got, came = [], []
    for n in range(1, MESSAGES + 1):
        publisher.publish({"data": f"{round}: {n} ö"})
        writer.write(Velocity(linear=Vector(x=n, y=round, z=-0.5), angular=zero))
        if n % 10 == 0:  # the default depth of ROS, above which it may lose some

            def all():
                got.extend(m.data for m in reader.take(999))
                while sample := subscriber.receive(0):
                    came.append(sample.value)
                return f"{round}: {n} ö" in got and came and came[-1]["linear"]["x"] == n

            wait_for(f"message {n}", all)
    got = [g for g in got if not g.endswith(": 0")]
    assert got == [f"{round}: {n} ö" for n in range(1, MESSAGES + 1)], got
    came = [c for c in came if c["linear"]["x"] > 0]
    nothing = {"x": 0.0, "y": 0.0, "z": 0.0}
    wanted = [{"linear": {"x": float(n), "y": float(round), "z": -0.5}, "angular": nothing}
              for n in range(1, MESSAGES + 1)]
    assert came == wanted, came


main()
