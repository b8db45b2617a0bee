"""The stand-in driver for tests: writes and reads the memory of its device, and consumes DLPack capsules as torch does.

After `monkeypatch.setenv("TANDEM_CUDA_LIBRARY", str(LIBRARY))`: `StandIn().consume(client.obs_cuda)`.
"""

import contextlib
import ctypes
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

LIBRARY = Path(__file__).parents[3] / "transport" / "gpu" / "standin_cuda.so"

_CODES = {0: "i", 1: "u", 2: "f", 6: "b"}


class _Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("id", ctypes.c_int32))


class _Type(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("type", _Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)))


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.restype, _rename.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)


class Tensor:
    """A consumer's tensor: keeps what the capsule keeps until `free`."""

    def __init__(self, gpu: "StandIn", capsule: Any) -> None:
        """Takes a capsule over."""
        self._gpu = gpu
        self._managed = _Managed.from_address(_pointer_of(capsule, b"dltensor"))
        _rename(capsule, b"used_dltensor")
        tensor = self._managed.tensor
        assert tensor.device.type == 2 and tensor.type.lanes == 1 and not tensor.strides
        self.pointer = int(tensor.data) + tensor.byte_offset
        self.shape = tuple(tensor.shape[axis] for axis in range(tensor.ndim))
        self.dtype = np.dtype(f"{_CODES[tensor.type.code]}{tensor.type.bits // 8}")

    def values(self, stream: int = 1) -> NDArray[Any]:
        """Returns a copy of the values, after the work on the stream."""
        nbytes = int(np.prod(self.shape)) * self.dtype.itemsize
        return self._gpu.read(self.pointer, nbytes, stream).view(self.dtype).reshape(self.shape)

    def free(self) -> None:
        """Calls the deleter."""
        self._managed.deleter(ctypes.addressof(self._managed))


class StandIn:
    """The driver that TANDEM_CUDA_LIBRARY names, as a framework uses it: by the primary context of device 0."""

    def __init__(self) -> None:
        """Loads it, and retains the context."""
        self._library = ctypes.CDLL(os.environ["TANDEM_CUDA_LIBRARY"])
        self._context = ctypes.c_void_p()
        self._call("cuInit", ctypes.c_uint(0))
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), ctypes.c_int(0))

    def _call(self, function: str, *arguments: Any) -> None:
        result = getattr(self._library, function)(*arguments)
        assert result == 0, f"{function}: {result}"

    @contextlib.contextmanager
    def _current(self) -> Iterator[None]:
        self._call("cuCtxPushCurrent_v2", self._context)
        yield
        self._call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def stream(self, *, blocking: bool = True) -> int:
        """Returns a new stream."""
        stream = ctypes.c_void_p()
        with self._current():
            self._call("cuStreamCreate", ctypes.byref(stream), ctypes.c_uint(0 if blocking else 1))
        assert stream.value is not None
        return stream.value

    def destroy(self, stream: int) -> None:
        """Ends a stream."""
        with self._current():
            self._call("cuStreamDestroy_v2", ctypes.c_void_p(stream))

    def synchronize(self, stream: int) -> None:
        """Waits for the work on a stream."""
        with self._current():
            self._call("cuStreamSynchronize", ctypes.c_void_p(stream))

    def pinned(self, shape: tuple[int, ...], dtype: type[np.generic]) -> NDArray[Any]:
        """Returns a new array of zeros in registered memory, so that copies are asynchronous."""
        nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        array = np.frombuffer(mmap.mmap(-1, nbytes), dtype).reshape(shape)  # no page may be registered twice
        with self._current():
            self._call(
                "cuMemHostRegister_v2", ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(nbytes), ctypes.c_uint(1)
            )
        return array

    def write(self, pointer: int, values: NDArray[Any], stream: int = 0) -> None:
        """Copies values to the device; asynchronously if they are pinned."""
        assert values.flags.c_contiguous
        with self._current():
            self._call(
                "cuMemcpyHtoDAsync_v2",
                ctypes.c_uint64(pointer),
                ctypes.c_void_p(values.ctypes.data),
                ctypes.c_size_t(values.nbytes),
                ctypes.c_void_p(stream),
            )

    def read(self, pointer: int, nbytes: int, stream: int = 1) -> NDArray[np.uint8]:
        """Returns bytes of the device, after the work on the stream."""
        values = np.empty(nbytes, np.uint8)
        with self._current():
            self._call(
                "cuMemcpyDtoHAsync_v2",
                ctypes.c_void_p(values.ctypes.data),
                ctypes.c_uint64(pointer),
                ctypes.c_size_t(nbytes),
                ctypes.c_void_p(stream),
            )
        return values

    def copy(self, to: int, source: int, nbytes: int, stream: int) -> None:
        """Copies on the device, asynchronously."""
        with self._current():
            self._call(
                "cuMemcpyDtoDAsync_v2",
                ctypes.c_uint64(to),
                ctypes.c_uint64(source),
                ctypes.c_size_t(nbytes),
                ctypes.c_void_p(stream),
            )

    def allocate(self, nbytes: int) -> int:
        """Returns memory of the device, as a framework's pool would have it."""
        pointer = ctypes.c_uint64()
        with self._current():
            self._call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(nbytes))
        return pointer.value

    def free(self, pointer: int) -> None:
        """Frees such memory."""
        with self._current():
            self._call("cuMemFree_v2", ctypes.c_uint64(pointer))

    def enter_another_context(self) -> None:
        """Makes a second context of the device current in this thread, for good."""
        self._call("cuCtxCreate_v2", ctypes.byref(ctypes.c_void_p()), ctypes.c_uint(0), ctypes.c_int(0))

    def take(self, array: Any, stream: int | None = 1) -> Tensor:
        """Consumes an array by DLPack, without a copy."""
        return Tensor(self, array.__dlpack__(stream=stream))

    def consume(self, array: Any, stream: int = 1) -> NDArray[Any]:
        """Returns a copy of an array's values."""
        tensor = self.take(array, stream)
        values = tensor.values(stream)
        tensor.free()
        return values

    def fail(self, function: str, result: int, after: int = 0) -> None:
        """Makes a function return a result, from the call after `after` more on; 0: no longer."""
        self._library.standin_fail(function.encode(), result, after)

    def count(self, kind: str) -> int:
        """Returns the number of this process's objects of a kind; the stand-in names the kinds."""
        found: int = self._library.standin_count(kind.encode())
        assert found >= 0, kind
        return found

    def calls(self) -> int:
        """Returns the number of calls of the driver so far."""
        found: int = self._library.standin_calls()
        return found


def memories_in_use(tag: str) -> list[str]:
    """Returns the descriptors of all processes that are memory of the stand-in, made with this TANDEM_STANDIN_TAG."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found += [
                str(link) for link in (process / "fd").iterdir() if f"memfd:tandem-standin{tag} " in _target(link)
            ]
    return found


def _target(link: Path) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""
