"""torch and cupy, each to a topic and back, where they are installed: part of `make gpu-check`."""

import tempfile

import outlive


def round_trip(name, make, equal, back):
    with tempfile.TemporaryDirectory() as root:
        node = outlive.Node("gpu", root=root)
        array = make()
        kind = (node, "/tensor", "float32", (64, 1000))
        publisher, subscriber = outlive.Publisher(*kind), outlive.Subscriber(*kind)
        for _ in range(20):
            publisher.publish_cuda(array)
            sample = subscriber.receive(timeout=5)
            assert sample is not None and equal(back(sample), array), name
    print(f"gpu-check: {name}: 20 round trips equal")


def main():
    try:
        import torch
    except ImportError:
        print("gpu-check: no torch here")
    else:
        make = lambda: torch.rand((64, 1000), device="cuda")
        round_trip("torch", make, torch.equal, lambda sample: sample.to_torch())
    try:
        import cupy
    except ImportError:
        print("gpu-check: no cupy here")
    else:
        make = lambda: cupy.random.rand(64, 1000, dtype=cupy.float32)
        same = lambda a, b: bool((a == b).all())
        round_trip("cupy", make, same, lambda sample: sample.to_cupy())


if __name__ == "__main__":
    main()
