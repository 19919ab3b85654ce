"""Generated messages in Python: their descriptions, sent and seen; see test_types.py."""

import sys

import outlive
from golden import arm_msgs, geo_msgs
from golden.arm_msgs import Arm, Numbers
from golden_cdr import plan_msgs, route_msgs
from golden_msgpack.plan_msgs import Goal, Plan

TYPES = [
    *(Arm, arm_msgs.Battery, arm_msgs.Defaults, geo_msgs.Flag, arm_msgs.FollowGoal),
    *(arm_msgs.Grid, arm_msgs.Imu, arm_msgs.Joint, geo_msgs.Nothing, Numbers),
    *(arm_msgs.ReachRequest, arm_msgs.Scan, arm_msgs.Text, arm_msgs.Wheels),
]


def say(*words):
    print(*words, flush=True)


def arm(number):
    made = Arm.new()
    made["header"]["stamp"]["sec"] = number
    made["header"]["frame_id"] = b"base"
    made["joints"][1]["position"] = 0.5
    made["joints"][1]["brakes"][2] = True
    made["reach"]["corners"][0] = (1.0, -2.0, number)
    made["reach"]["corners_count"] = 1
    return made


def route(number):
    made = route_msgs.Route(last=number, words=["x", ""], shorts=[-1], numbers=[1.5], data=bytes([1, 2]))
    made.plan.goals = [plan_msgs.Goal("dock")]
    made.legs = [route_msgs.Leg(), route_msgs.Leg(1, 2.5, ["halt", "ä"])]
    made.flags, made.nothings = [True, False, True], [plan_msgs.Nothing()]
    return made


def every_type(node, role):
    """A message of each type, as it is by default."""
    port = outlive.Publisher if role == "give" else outlive.Subscriber
    ports = [(of, port(node, f"/all/{of.type_name}", of)) for of in TYPES]
    say("ready")
    if role == "give":
        for _ in sys.stdin:
            for of, publisher in ports:
                publisher.publish(of.new())
            say("ok")
        return
    while True:
        for of, subscriber in ports:
            say(of.type_name, subscriber.receive().array.tobytes().hex())


def main(role):
    if role == "layout":
        for of in TYPES:
            text = outlive.describe(of.dtype).replace("\n", "|")
            say(of.type_name, text, of.new().tobytes().hex())
        say(Numbers.LEAST64, Numbers.MOST64, Numbers.GREETING)
        return
    node = outlive.Node("python")
    if role in ("give", "take"):
        return every_type(node, role)
    if role == "send":
        publisher = outlive.Publisher(node, "/t/arm", Arm)
        say("ready")
        for line in sys.stdin:
            publisher.publish(arm(int(line)))
            say("ok")
        return
    if role == "plan":
        publisher = outlive.Publisher(node, "/t/plan", Plan)
        say("ready")
        for line in sys.stdin:
            plan = Plan(goals=[Goal("dock")], tags=["a", "b"], number=int(line))
            plan.digest = bytes([1, 2, 255])
            publisher.publish(plan)
            say("ok")
        return
    if role == "follow":
        subscriber = outlive.Subscriber(node, "/t/plan", Plan)
        say("ready")
        for sample in subscriber:
            plan = sample.value
            goal = plan.goals[0]
            total = len(goal.covariance) + plan.digest[2] + len(plan.key)
            say(plan.number, goal.name, f"{goal.at[0]:g}", plan.tags[1], total)
        return
    if role == "route":
        publisher = outlive.Publisher(node, "/t/route", route_msgs.Route)
        say("ready")
        for line in sys.stdin:
            publisher.publish(route(int(line)))
            say("ok")
        return
    if role == "ride":
        subscriber = outlive.Subscriber(node, "/t/route", route_msgs.Route)
        say("ready")
        for sample in subscriber:
            value = sample.value
            data = route_msgs.Route.__outlive_encoded__().encode(value)
            total = sum(i * byte for i, byte in enumerate(data, 1))
            say(value.last, value.plan.goals[0].name, value.legs[1].signs[1], value.label, total)
        return
    subscriber = outlive.Subscriber(node, "/t/arm", Arm)
    say("ready")
    for sample in subscriber:
        value = sample.value
        joint, reach = value["joints"][1], value["reach"]
        corners = reach["corners"][: int(reach["corners_count"])]
        say(
            *(value["header"]["stamp"]["sec"], value["header"]["frame_id"].item().decode()),
            *(f"{joint['position']:g}", int(joint["brakes"][1]), int(joint["brakes"][2])),
            joint["name"].decode(),
            *(f"{value['tool']['orientation']['w']:g}", len(corners), f"{corners[0]['z']:g}"),
        )


main(sys.argv[1])
