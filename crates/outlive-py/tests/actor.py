"""One voice of the conversation test; see test_conversation.py."""

import dataclasses
import sys

import numpy as np

import outlive
from outlive import msg

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


def described():
    def show(name, dtype):
        say(name, outlive.describe(dtype).replace("\n", "|"))

    for of in (msg.Pose, msg.Twist, msg.Imu):
        show(of.type_name, of.dtype)
    show(msg.JointState.type_name, msg.JointState.header_dtype)
    show(msg.Joint.type_name, msg.JointState.element_dtype)
    show(msg.Image.type_name, msg.Image.header_dtype)
    show(msg.PointCloud.type_name, msg.PointCloud.header_dtype)
    show(msg.PointXyzi.type_name, msg.PointCloud.element_dtype)
    for name, (number, dtype, values) in msg.FORMATS.items():
        say(number, name, np.dtype((dtype, values)).itemsize if dtype else 0)


def send(node):
    """The ready-made messages with a number in them."""
    names = ["Pose", "Twist", "Imu", "JointState", "PointCloud", "Image"]
    ports = [outlive.Publisher(node, TOPICS[name], getattr(msg, name)) for name in names]
    poses, twists, imus, joints, clouds, images = ports
    say("ready")
    header = msg.Header.new(stamp_ns=7, frame_id="map")
    for n in numbers():
        pose = {"position": (1, 2, n), "orientation": msg.Quaternion.IDENTITY}
        poses.publish(msg.Pose.new(header=header, **pose))
        twists.publish(msg.Twist.new(header=header, linear=(n, 0, 0), angular=(0, 0, 0.5)))
        imu = msg.Imu.new(header=header, linear_acceleration=(0, 0, 9.75))
        imu["orientation_covariance"][0] = -1
        imus.publish(imu)
        joints.publish(msg.JointState.of([("elbow", n, 0.5, -1.5)], "map", 7))
        points = np.array([(n, 0, 0, 0.5), (0, n, 0, 0.25)], np.float32)
        clouds.publish(msg.PointCloud.of(points, "map", 7))
        pixels = np.arange(n, n + 12, dtype=np.uint8).reshape(2, 2, 3)
        image = msg.Image.of(pixels, "rgb8", "map", 7)
        for number, field, value in ((2, "height", 9), (3, "format", 77)):
            if n == number:
                image.header[field] = value
        images.publish(image)
        say("ok")


TOPICS = {
    "Pose": "/m/pose",
    "Twist": "/m/twist",
    "Imu": "/m/imu",
    "JointState": "/m/joints",
    "PointCloud": "/m/cloud",
    "Image": "/m/image",
}


def see(node):
    """What came, field by field, and the bytes of it."""
    ports = [outlive.Subscriber(node, topic, getattr(msg, of)) for of, topic in TOPICS.items()]
    say("ready")
    while True:
        values = [port.receive().value for port in ports]
        pose, twist, imu, state, cloud, image = values
        frame = pose["header"]["frame_id"].item().decode()
        elbow, point = state.joint("elbow"), cloud.points[1]
        words = [
            *(pose["header"]["stamp_ns"], pose["position"]["z"]),
            *(twist["linear"]["x"], twist["angular"]["z"]),
            *(imu["linear_acceleration"]["z"], imu["orientation_covariance"][0]),
            *(elbow["position"], elbow["effort"], point["y"], point["intensity"]),
        ]
        try:
            last = image.pixels[1, 1, 2]
        except outlive.Error as e:
            last = e
        say(frame, *(f"{word:g}" for word in words), last)
        parts = [part for v in values for part in (v if isinstance(v, tuple) else (v,))]
        say(b"".join(part.tobytes() for part in parts).hex())


def numbers():
    return (int(line) for line in sys.stdin)


def word(e):
    return {"OwnerDied": "owner died", "ServerDied": "server died"}.get(type(e).__name__, repr(e))


def main(role):
    if role == "layout":
        say(outlive.describe(READING).replace("\n", "|"))
        say(make(3).tobytes().hex())
        described()
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
    elif role == "send":
        send(node)
    elif role == "see":
        see(node)
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
