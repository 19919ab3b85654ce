"""What the package promises about memory: no copies, no growth."""

import gc
import multiprocessing
import os

import numpy as np

import outlive

FRAME = (10_000_000,)


def resident_kb():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024


def private_kb():
    """Anonymous memory of this process: what a copy would take."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon"))


def view(root, results):
    os.environ["OUTLIVE_DIR"] = root
    node = outlive.Node("viewer")
    subscriber = outlive.Subscriber(node, "/frames", np.uint8, FRAME, reliable=True)
    results.put("ready")
    before, total = private_kb(), 0
    for sample in subscriber:
        array = sample.array
        in_a_file = array.ctypes.data  # inside a mapping of the publisher's file
        with open("/proc/self/maps") as maps:
            spans = [line.split() for line in maps if "/data." in line]
        bounds = [[int(n, 16) for n in span[0].split("-")] for span in spans]
        assert any(low <= in_a_file < high for low, high in bounds), "not in shared memory"
        assert all("w" not in span[1] for span in spans), "a subscriber maps it writable"
        total += int(array[:: 4096].sum())
        if sample.seq == 9:
            break
    results.put((private_kb() - before, total))


def test_frames_of_10_mb_reach_4_processes_without_a_copy(root):
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    viewers = [context.Process(target=view, args=(str(root), results)) for _ in range(4)]
    for viewer in viewers:
        viewer.start()
    node = outlive.Node("camera")
    publisher = outlive.Publisher(node, "/frames", np.uint8, FRAME, reliable_timeout=60.0)
    for _ in viewers:
        assert results.get(timeout=60) == "ready"
    for n in range(10):
        with publisher.loan() as frame:
            frame[:] = n
    expected = sum(n * len(range(0, FRAME[0], 4096)) for n in range(10))
    for _ in viewers:
        grown_kb, total = results.get(timeout=60)
        assert total == expected and grown_kb < 5_000, "less than half of one frame"
    for viewer in viewers:
        viewer.join()
        assert viewer.exitcode == 0


def test_a_million_messages_do_not_grow_the_process(node):
    publisher = outlive.Publisher(node, "/t", np.uint8, (64,))
    subscriber = outlive.Subscriber(node, "/t", np.uint8, (64,))
    value = np.zeros(64, np.uint8)

    def send(messages):
        for _ in range(messages):
            publisher.publish(value)
            subscriber.receive(0).array

    send(50_000)
    gc.collect()
    before = resident_kb()
    send(1_000_000)
    gc.collect()
    assert resident_kb() - before < 2_000, "16 bytes a message would be 16 MB"


def test_arrays_over_what_was_a_loan_keep_its_memory(node):
    closing = outlive.Node("closing")
    publisher = outlive.Publisher(closing, "/t", np.uint8, (100_000,))
    loans = [publisher.loan(), publisher.loan()]
    arrays = [loan.array for loan in loans]
    for array in arrays:
        array[:] = 7
    loans[0].publish()
    loans[1].drop()
    publisher.close()
    closing.close()
    del publisher, loans
    gc.collect()
    assert all(array.sum() == 700_000 and not array.flags.writeable for array in arrays)
    watch = node.watch(closing.id)
    del array, arrays
    gc.collect()
    assert watch.wait(30.0), "and then others see it leave"
