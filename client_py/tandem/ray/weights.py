"""`packed`: weights as they go to the workers: small ones in each request, others as one object of Ray's store."""

import pickle
from typing import Any, NamedTuple

import ray

# Ray sends arguments of up to 100 KiB in the request itself. An object costs the raylets some milliseconds.
MOST_BYTES_OF_REQUEST = 64 << 10


class Packed(NamedTuple):
    """Pickled weights, and the buffers of their arrays."""

    head: bytes
    buffers: list[bytes]


def packed(weights: Any) -> Any:
    """Returns a copy of weights: a `Packed`, or Ray's reference to an object if they are large."""
    buffers: list[pickle.PickleBuffer] = []
    head = ray.cloudpickle.dumps(weights, protocol=5, buffer_callback=buffers.append)
    if len(head) + sum(buffer.raw().nbytes for buffer in buffers) > MOST_BYTES_OF_REQUEST:
        return ray.put(weights)
    return Packed(head, [bytes(buffer.raw()) for buffer in buffers])


def unpacked(weights: Any) -> Any:
    """Returns what was packed, in a worker, where Ray has replaced the reference; arrays are read-only."""
    return pickle.loads(weights.head, buffers=weights.buffers) if isinstance(weights, Packed) else weights
