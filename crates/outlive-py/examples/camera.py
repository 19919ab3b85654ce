"""A camera that writes its frames into shared memory, and viewers in processes of their own."""

import multiprocessing

import outlive
from outlive import msg

FRAMES = 3


def view(results):
    node = outlive.Node("viewer")
    subscriber = outlive.Subscriber(node, "/camera/front", msg.Image, reliable=True)
    results.put("ready")
    for sample in subscriber:
        frame = sample.value.pixels  # read-only, where the camera wrote it
        if not (sample.is_borrowed and frame[0, 0, 0] == frame[-1, -1, -1] == sample.seq + 1):
            results.put("wrong")
        if sample.seq == FRAMES - 1:
            break
    results.put("done")


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    viewers = [context.Process(target=view, args=(results,)) for _ in range(2)]
    for viewer in viewers:
        viewer.start()
    node = outlive.Node("camera")
    publisher = outlive.Publisher(node, "/camera/front", msg.Image)
    for _ in viewers:
        results.get()
    for shade in range(1, FRAMES + 1):
        with msg.Image.loan(publisher, 1280, 720, "rgb8") as frame:  # an array in shared memory
            frame[:] = shade  # what a driver would do
    seen = [results.get() for _ in viewers]
    for viewer in viewers:
        viewer.join()
    print(f"camera: {FRAMES} frames to {seen.count('done')} viewers without a copy")
