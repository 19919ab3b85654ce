"""Arrays on a device, against the stub driver: a fake array whose "device memory" is NumPy's."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import outlive

STUB = Path(__file__).parents[3] / "target" / "debug" / "deps" / "liboutlive_gpu_stub.so"


class OnDevice:
    """As torch and cupy show their arrays."""

    def __init__(self, array, device=0, **more):
        self.array = array
        if device is not None:
            self.device = SimpleNamespace(id=device)
        at = (array.ctypes.data, False)
        strides = None if array.flags.c_contiguous else array.strides
        self.__cuda_array_interface__ = {
            "data": at, "shape": array.shape, "typestr": array.dtype.str,
            "strides": strides, "version": 3, **more,
        }


@pytest.fixture
def ports(node, monkeypatch):
    if not STUB.exists():
        pytest.skip("the stub driver is not built: cargo test -p outlive-gpu")
    monkeypatch.setenv("OUTLIVE_CUDA_DRIVER", str(STUB))
    kind = (node, "/tensor", "float32", (30, 1000))
    return outlive.Publisher(*kind), outlive.Subscriber(*kind)


@pytest.mark.parametrize("more", [{}, {"stream": 1}, {"stream": 2}, {"stream": None}])
def test_a_tensor_goes_there_and_back(ports, more):
    publisher, subscriber = ports
    data = np.random.default_rng(1).random((30, 1000), dtype=np.float32)
    assert publisher.publish_cuda(OnDevice(data, **more)) == 0
    sample = subscriber.receive(timeout=5)
    assert np.array_equal(sample.array, data)
    to = OnDevice(np.zeros_like(data))
    sample.copy_to_cuda(to)
    assert np.array_equal(to.array, data)
    del sample
    assert subscriber.borrowed == 0


def test_what_does_not_fit_is_refused(ports):
    publisher, subscriber = ports
    data = np.zeros((30, 1000), np.float32)
    for bad in [
        data,
        OnDevice(np.zeros((30, 999), np.float32)),
        OnDevice(np.zeros((30, 1000), np.float64)),
        OnDevice(np.zeros((30, 1000), np.int32)),
        OnDevice(np.zeros((30, 2000), np.float32)[:, ::2]),
    ]:
        with pytest.raises(outlive.Error):
            publisher.publish_cuda(bad)
    assert publisher.published == 0
    publisher.publish(data)
    sample = subscriber.receive(timeout=5)
    for bad in [
        OnDevice(np.zeros(7, np.float32)),
        OnDevice(np.zeros((30, 1000), np.int32)),
        OnDevice(np.zeros((1000, 30), np.float32)),
        OnDevice(np.zeros((30, 1000), np.float32), data=(0x1000, True)),
    ]:
        with pytest.raises(outlive.Error):
            sample.copy_to_cuda(bad)


def test_of_an_array_that_does_not_say_its_device_the_driver_is_asked(ports):
    # The stub has not made it, as a driver would not know memory of the processor's.
    with pytest.raises(outlive.InvalidArgument, match="asking on which device"):
        ports[0].publish_cuda(OnDevice(np.zeros((30, 1000), np.float32), device=None))
    with pytest.raises(outlive.NotFound, match="opening device 7 of 1"):
        ports[0].publish_cuda(OnDevice(np.zeros((30, 1000), np.float32), device=7))


def test_without_a_driver_it_says_so(ports, monkeypatch):
    monkeypatch.setenv("OUTLIVE_CUDA_DRIVER", "libcuda-that-nobody-has.so.1")
    with pytest.raises(outlive.NotFound, match="no CUDA driver"):
        ports[0].publish_cuda(OnDevice(np.zeros((30, 1000), np.float32)))


def test_who_uses_no_gpu_opens_no_driver_and_imports_no_library():
    program = (
        "import outlive, sys, tempfile\n"
        "node = outlive.Node('cpu', root=tempfile.mkdtemp())\n"
        "p, s = (port(node, '/n', 'u1', (9000,)) for port in (outlive.Publisher, outlive.Subscriber))\n"
        "p.publish(__import__('numpy').zeros(9000, 'u1')); s.receive(timeout=5).array\n"
        "assert not {'torch', 'cupy', 'numba', 'outlive._gpu'} & set(sys.modules)\n"
        "assert 'cuda' not in open('/proc/self/maps').read()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, env=dict(os.environ))
