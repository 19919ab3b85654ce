"""Who watches a peer learns of its death at once, whatever killed it; its last words are read."""

import multiprocessing
import time

import outlive


def live(to_parent):
    node = outlive.Node("camera")
    publisher = outlive.Publisher(node, "/heartbeat", bytes)
    publisher.publish(b"still here")
    to_parent.send(node.id)
    time.sleep(60)


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    camera = context.Process(target=live, args=(there,))
    camera.start()
    number = here.recv()
    node = outlive.Node("guard")
    words = outlive.Subscriber(node, "/heartbeat", bytes, history=1)
    watch = node.watch(number)
    print(f"alive: {watch.is_alive}")
    camera.kill()
    outlive.WaitSet().wait([watch], timeout=10.0)
    last = words.receive(timeout=1.0).value.decode()
    print(f"watching: the camera died; its last words were '{last}'")
    camera.join()
