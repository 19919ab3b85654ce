"""Latency and frame rate beside multiprocessing's Pipe and Queue, and iceoryx2 where it is there.

    python -m outlive.bench [--quick]

Two processes pass a message to and fro; half a round is one way. Small: an array of 64 bytes, sent and
received as an array. Frames of 1 MiB are answered with a small message, in two manners, the same for
all: *handed over*, where the sender writes the first and the last byte and the receiver reads them, as
if a device had filled the rest; *filled and read*, where NumPy writes every byte and reads every byte,
so that the memory sets the pace. Receivers let go of a frame before they answer. All subjects poll or
block as they do by themselves; their rounds alternate in one run, and what is shown are medians over
the rounds. Pin nothing, run nothing else, and look at the ratios, not at the times.
"""

import argparse
import multiprocessing
import os
import statistics
import tempfile
import time

import numpy as np

SMALL, FRAME = 64, 1 << 20


class Outlive:
    """This package."""

    name = "outlive"

    @staticmethod
    def check():
        """ImportError where it is not installed."""

    def __init__(self, _ends, first):
        import outlive

        self.node = outlive.Node("bench")
        ways = ["/bench/to", "/bench/fro"]
        out, back = ways if first else ways[::-1]
        shape = {SMALL: (SMALL,), FRAME: (FRAME,)}
        self.out, self.back = {}, {}
        for size in shape:
            # Nobody joins late: without history the memory of a frame that was read serves the next.
            # iceoryx2 keeps no history unless it is asked to.
            args, live = (np.uint8, shape[size]), {"volatile": size == FRAME}
            self.out[size] = outlive.Publisher(self.node, f"{out}/{size}", *args, **live)
            self.back[size] = outlive.Subscriber(self.node, f"{back}/{size}", *args)

    def connect(self):
        while any(port.subscribers() == 0 for port in self.out.values()):
            time.sleep(0.001)

    def send(self, array):
        self.out[SMALL].publish(array)

    def frame(self, write, n):
        with self.out[FRAME].loan() as frame:
            write(frame, n)

    def receive(self, size):
        port = self.back[size]
        while True:
            sample = port.receive(0)
            if sample is not None:
                return sample.array

    def let_go(self):
        pass


class Iceoryx2:
    """The PyPI package iceoryx2."""

    name = "iceoryx2"

    @staticmethod
    def check():
        import iceoryx2  # noqa: F401

    def __init__(self, _ends, first):
        import ctypes

        import iceoryx2 as iox2

        iox2.set_log_level(iox2.LogLevel.Error)
        self.ctypes = ctypes
        self.node = iox2.NodeBuilder.new().create(iox2.ServiceType.Ipc)
        ways = ["outlive-bench-to", "outlive-bench-fro"]
        out, back = ways if first else ways[::-1]
        self.out, self.back, self.services = {}, {}, []
        for size in (SMALL, FRAME):
            services = []
            for name in (out, back):
                service = iox2.ServiceName.new(f"{name}-{size}-{os.environ['OUTLIVE_BENCH']}")
                builder = self.node.service_builder(service)
                builder = builder.publish_subscribe(iox2.Slice[ctypes.c_uint8])
                services.append(builder.open_or_create())
            builder = services[0].publisher_builder().initial_max_slice_len(size)
            self.out[size] = builder.create()
            self.back[size] = services[1].subscriber_builder().create()
            self.services += services

    def connect(self):
        while any(s.dynamic_config.number_of_subscribers == 0 for s in self.services):
            time.sleep(0.001)

    def array(self, payload):
        at = self.ctypes.cast(payload.as_ptr(), self.ctypes.POINTER(self.ctypes.c_uint8))
        return np.ctypeslib.as_array(at, (payload.len(),))

    def send(self, array):
        loan = self.out[SMALL].loan_slice_uninit(SMALL)
        self.array(loan.payload())[:] = array
        loan.assume_init().send()

    def frame(self, write, n):
        loan = self.out[FRAME].loan_slice_uninit(FRAME)
        write(self.array(loan.payload()), n)
        loan.assume_init().send()

    def receive(self, size):
        port = self.back[size]
        while True:
            self.sample = port.receive()
            if self.sample is not None:
                return self.array(self.sample.payload())

    def let_go(self):
        self.sample = None


class Pipe:
    """multiprocessing.Pipe; arrays are pickled."""

    name = "Pipe"

    @staticmethod
    def check():
        pass

    def __init__(self, ends, first):
        self.end = ends["pipe"][0 if first else 1]
        self.image = np.zeros(FRAME, np.uint8)

    def connect(self):
        pass

    def send(self, array):
        self.end.send(array)

    def frame(self, write, n):
        write(self.image, n)
        self.send_frame(self.image)

    def send_frame(self, image):
        self.end.send(image)

    def receive(self, _size):
        return self.end.recv()

    def let_go(self):
        pass


class Queue(Pipe):
    """multiprocessing.Queue; arrays are pickled by a thread."""

    name = "Queue"

    def __init__(self, ends, first):
        self.out, self.back = ends["queues"] if first else ends["queues"][::-1]
        self.image = np.zeros(FRAME, np.uint8)

    def send(self, array):
        self.out.put(array)

    def send_frame(self, image):
        self.out.put(image)

    def receive(self, _size):
        return self.back.get()


SUBJECTS = {subject.name: subject for subject in (Outlive, Iceoryx2, Pipe, Queue)}


def ends_of(frame, n):
    frame[0] = frame[-1] = n


def all_of(frame, n):
    frame[:] = n


# How a frame is written, and how it is read: two numbers that are n.
MANNERS = {
    "handed over": (ends_of, lambda frame: (frame[0], frame[-1])),
    "filled and read": (all_of, lambda frame: (frame.max(), frame[-1])),
}


def echo(name, ends, environment, rounds, small, frames):
    """The other process: answers every message."""
    os.environ.update(environment)
    subject = SUBJECTS[name](ends, False)
    subject.connect()
    ends["ready"].set()
    answer = np.zeros(SMALL, np.uint8)
    for _ in range(rounds):
        ends["turn"][1].recv()
        for _ in range(small):
            subject.send(subject.receive(SMALL))
        for _, read in MANNERS.values():
            for _ in range(frames):
                frame = subject.receive(FRAME)
                answer[:2] = read(frame)
                del frame
                subject.let_go()
                subject.send(answer)


def one_way_us(subject, small):
    """Times of single rounds, half of each."""
    message, times = np.arange(SMALL, dtype=np.uint8), []
    for _ in range(small):
        start = time.perf_counter_ns()
        subject.send(message)
        back = subject.receive(SMALL)
        times.append((time.perf_counter_ns() - start) / 2000)
    assert (back == message).all()
    return times


def frame_rate(subject, write, frames):
    """Frames per second."""
    start = time.perf_counter()
    for n in range(frames):
        subject.frame(write, n % 251)
        back = subject.receive(SMALL)
        assert back[0] == back[1] == n % 251
    return frames / (time.perf_counter() - start)


class Match:
    """A subject and its process."""

    def __init__(self, name, environment, rounds, small, frames):
        context = multiprocessing.get_context("spawn")
        SUBJECTS[name].check()
        self.ends = {
            "pipe": context.Pipe(),
            "queues": (context.Queue(), context.Queue()),
            "turn": context.Pipe(),
            "ready": context.Event(),
        }
        self.small, self.frames, self.results = small, frames, []
        args = (name, self.ends, environment, rounds, small, frames)
        self.other = context.Process(target=echo, args=args)
        self.other.start()
        self.subject = SUBJECTS[name](self.ends, True)
        self.subject.connect()
        self.ends["ready"].wait()

    def round(self):
        """One round: p50 and p99 one way in us, frames per second in each manner."""
        self.ends["turn"][0].send("go")
        times = sorted(one_way_us(self.subject, self.small))
        rates = [frame_rate(self.subject, write, self.frames) for write, _ in MANNERS.values()]
        self.results.append((statistics.median(times), times[len(times) * 99 // 100], *rates))

    def medians(self):
        return [statistics.median(column) for column in zip(*self.results)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the messages")
    arguments = parser.parse_args()
    rounds, small, frames = (5, 1000, 50) if arguments.quick else (7, 10_000, 500)
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="outlive-bench-") as root:
        environment = {"OUTLIVE_DIR": root, "OUTLIVE_BENCH": str(os.getpid())}
        os.environ.update(environment)
        matches = {}
        for name in SUBJECTS:
            # Slow ones get fewer messages: their rates do not depend on the number.
            share = 1 if name in ("outlive", "iceoryx2") else 10
            try:
                matches[name] = Match(name, environment, rounds, small // share, frames // share)
            except ImportError:
                print(f"{name} is not installed: pip install {name}")
        for _ in range(rounds):
            for match in matches.values():
                match.round()
        for match in matches.values():
            match.other.join()
        columns = ["p50 us", "p99 us", "1 MiB/s handed over", "1 MiB/s filled and read"]
        print(" " * 10, "  ".join(columns))
        ours = matches["outlive"].medians()
        for name, match in matches.items():
            texts = []
            for title, value, base, digits in zip(columns, match.medians(), ours, (2, 2, 0, 0)):
                ratio = "" if name == "outlive" else f" {value / base:.2f}x"
                texts.append(f"{value:.{digits}f}{ratio}".rjust(len(title)))
            print(f"{name:10}", "  ".join(texts))
        peer = matches.get("iceoryx2")
        if peer:
            pairs = list(zip(ours, peer.medians()))
            print(
                f"outlive: 64 bytes one way {pairs[0][0]:.2f} us, target 1.5; frames handed over at "
                f"{pairs[2][0] / pairs[2][1]:.2f} x the rate of iceoryx2, target 1.5; filled and read "
                f"{pairs[3][0] / pairs[3][1]:.2f} x"
            )


if __name__ == "__main__":
    main()
