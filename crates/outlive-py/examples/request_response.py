"""A planner that answers requests, in a process of its own; its death ends the client's wait."""

import dataclasses
import math
import multiprocessing
import os
import signal

import outlive


@dataclasses.dataclass
class Point:
    x: float
    y: float


def plan():
    for request in outlive.Server(outlive.Node("planner"), "/planner/distance", Point):
        to = request.value
        if math.isnan(to.x):
            os.kill(os.getpid(), signal.SIGKILL)  # the crash of this example
        request.respond(math.hypot(to.x, to.y))


if __name__ == "__main__":
    planner = multiprocessing.get_context("spawn").Process(target=plan)
    planner.start()
    client = outlive.Client(outlive.Node("robot"), "/planner/distance", Point)
    client.wait_for_server()
    way = client.call(Point(3.0, 4.0), timeout=10.0)
    try:
        client.call(Point(math.nan, 0.0), timeout=10.0)
    except outlive.ServerDied:
        print(f"request/response: {way:.1f} m, then the server died")
    planner.join()
