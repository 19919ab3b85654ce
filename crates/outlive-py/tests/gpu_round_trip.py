"""torch and cupy, each to a topic and back, where they are installed, and beside a graph that torch
captures: part of `make gpu-check`."""

import tempfile

import outlive


def domain():
    """A folder in memory: of files on a disk a device may not write the pages."""
    return tempfile.TemporaryDirectory(prefix="outlive-gpu-check-", dir="/dev/shm")


def round_trip(name, make, equal, back):
    with domain() as root:
        node = outlive.Node("gpu", root=root)
        array = make()
        kind = (node, "/tensor", "float32", (64, 1000))
        publisher, subscriber = outlive.Publisher(*kind), outlive.Subscriber(*kind)
        for _ in range(20):
            publisher.publish_cuda(array)
            sample = subscriber.receive(timeout=5)
            assert sample is not None and equal(back(sample), array), name
    print(f"gpu-check: {name}: 20 round trips equal")


def beside_a_capture(torch):
    """Capturing forbids most calls of the whole process; ours leave the graph as it is."""
    with domain() as root:
        node = outlive.Node("gpu", root=root)
        kind = (node, "/tensor", "float32", (64, 1000))
        publisher, subscriber = outlive.Publisher(*kind), outlive.Subscriber(*kind)
        sent, got = torch.rand((64, 1000), device="cuda"), torch.zeros((64, 1000), device="cuda")
        x, other, graph = torch.zeros(1000, device="cuda"), torch.cuda.Stream(), torch.cuda.CUDAGraph()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            y = x + 1
            publisher.publish_cuda(sent, stream=other)
            sample = subscriber.receive(timeout=5)
            sample.copy_to_cuda(got, stream=other)
            try:
                publisher.publish_cuda(sent)
            except outlive.Unsupported as e:
                refused = str(e)
        assert "captured into a graph" in refused
        x.fill_(41)
        graph.replay()
        assert torch.equal(got, sent) and bool((y == 42).all())
        assert publisher.published == 1
    print("gpu-check: torch: a graph captured beside copies is whole")


def main():
    try:
        import torch
    except ImportError:
        print("gpu-check: no torch here")
    else:
        make = lambda: torch.rand((64, 1000), device="cuda")
        round_trip("torch", make, torch.equal, lambda sample: sample.to_torch())
        on_another = lambda sample: sample.to_torch(stream=torch.cuda.Stream())
        round_trip("torch, another stream", make, torch.equal, on_another)
        beside_a_capture(torch)
    try:
        import cupy
    except ImportError:
        print("gpu-check: no cupy here")
    else:
        make = lambda: cupy.random.rand(64, 1000, dtype=cupy.float32)
        same = lambda a, b: bool((a == b).all())
        round_trip("cupy", make, same, lambda sample: sample.to_cupy())
        on_another = lambda sample: sample.to_cupy(stream=cupy.cuda.Stream(non_blocking=True))
        round_trip("cupy, another stream", make, same, on_another)


if __name__ == "__main__":
    main()
