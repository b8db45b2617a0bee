"""An event as one line of JSON, with NumPy values."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from tandem.arguments import shown
from tandem.errors import InvalidArgument

# The limits of the daemon (slow_lane/docs/slow_lane.md).
MAX_LINE_BYTES = 16 << 20

# Of an event, which is a mapping itself. Empty lists and mappings do not count.
MAX_DEPTH = 64

# A greater number has at least as many digits as this pattern. (A pattern that begins with one character class is found
# three times as fast.)
_LEAST_INTEGER, _LAST_INTEGER = -(2**63), 2**64 - 1
_LONG_NUMBER = re.compile(r"[-0-9][0-9]{19}")

_SQUARE = bytes.maketrans(b"{}", b"[]")
_ALL_BUT_BRACKETS_AND_QUOTES = bytes(set(range(256)) - set(b'[]{}"\\'))

_Fields = Mapping[str, object]


def line_of(fields: _Fields) -> bytes:
    r"""Returns an event as a JSON object with a newline at its end.

    Arrays, and what NumPy converts to an array, become nested lists. NaN and infinities, which JSON does not have,
    become null in arrays, lists and mappings. Lone surrogates become question marks. InvalidArgument names a value that
    JSON cannot hold, that is nested too deep, or that makes the line too long.

    >>> line_of({"reward": np.float64(0.5), "observation": np.array([1.0, np.nan])})
    b'{"reward":0.5,"observation":[1.0,null]}\n'
    """
    try:
        text = _encode(fields)
        if _LONG_NUMBER.search(text) or _is_deeper(text, MAX_DEPTH) or (text.find("{", 1) > 0 and _has_keys(fields)):
            text = _encode_each(fields)
    except (TypeError, ValueError, RecursionError):
        text = _encode_each(fields)
    line = text.encode("utf-8", "replace") + b"\n"
    if len(line) > MAX_LINE_BYTES:
        sizes = {name: len(_encode_each({name: value})) for name, value in fields.items()}
        largest = max(sizes, key=lambda name: sizes[name])
        raise InvalidArgument(
            f"expected an event of at most {MAX_LINE_BYTES} bytes as JSON, found {len(line)}, {sizes[largest]} of them "
            f"in {largest}; nothing was printed. Omit it, or make it smaller"
        )
    return line


def _encode_each(fields: _Fields) -> str:
    """Encodes one field at a time, to replace numbers that are not finite, or to name an invalid field."""
    finite = {}
    for name, value in fields.items():
        try:
            finite[name] = _finite(value)
            deep = _is_deeper(_encode(finite[name]), MAX_DEPTH - 1)
        except RecursionError:
            deep = True
        except (TypeError, ValueError) as error:
            raise InvalidArgument(
                f"{name}: expected values that JSON can hold, or NumPy values, found {shown(value)} ({error}); "
                "nothing was printed"
            ) from error
        if deep:
            raise InvalidArgument(
                f"{name}: expected lists and mappings at most {MAX_DEPTH - 1} deep, found more; nothing was printed. "
                "Make it flat, or print it as a string"
            )
    return _encode(finite)


def _is_deeper(text: str, depth: int) -> bool:
    """Whether more than `depth` objects and arrays are nested; for most texts two scans are enough."""
    return text.count("[") + text.count("{") > depth and (
        _may_be_deeper(text, depth) and _may_be_deeper(_without_strings_and_empty(text), depth)
    )


def _may_be_deeper(text: str, depth: int) -> bool:
    """Whether more than `depth` are or may be nested: empty ones and brackets in strings count.

    A string with neither is two quotes next to each other. An odd quote before the first bracket in a string stays.
    """
    brackets = text.encode("utf-8", "replace").translate(_SQUARE, _ALL_BUT_BRACKETS_AND_QUOTES).replace(b'""', b"")
    for _ in range(depth):
        around = brackets.replace(b"[]", b"")
        if len(around) == len(brackets):
            break
        brackets = around
    return bool(brackets)


def _without_strings_and_empty(text: str) -> str:
    between = text.replace("\\\\", "").replace('\\"', "").split('"')[::2]
    return "0".join(between).replace("[]", "").replace("{}", "")


def _has_keys(value: object) -> bool:
    """Whether a mapping in the value has keys that are no strings; two such keys may become the same text."""
    if isinstance(value, str | int | float):
        return False
    if isinstance(value, Mapping):
        return not all(isinstance(key, str) for key in value) or any(map(_has_keys, value.values()))
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "O" and _has_keys(value.tolist())
    return isinstance(value, list | tuple) and any(map(_has_keys, value))


def _check_keys(mapping: Mapping[Any, object]) -> None:
    """Raises ValueError if two keys become the same text, TypeError for a key that JSON cannot hold."""
    keys: dict[str, object] = {}
    for key in mapping:
        text = _encode({_plain_key(key): 0})[1:-3]
        other = keys.setdefault(text, key)
        if other is not key:
            raise ValueError(f"the keys {shown(other)} and {shown(key)} would both be {text}: rename one")


def _plain_key(key: object) -> object:
    return key.item() if isinstance(key, np.generic) else key


def _finite(value: object, around: tuple[int, ...] = ()) -> object:
    """Copies a value, with None for numbers that are not finite, and lists for tuples and arrays.

    `around` has the ids of the values that contain it. RecursionError: nested far too deep. TypeError, ValueError: JSON
    cannot hold it, or it contains itself.
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, int) and not _LEAST_INTEGER <= value <= _LAST_INTEGER:
        raise ValueError("integers are in -2^63 .. 2^64 - 1")
    if value is None or isinstance(value, str | int):
        return value
    if id(value) in around:
        raise ValueError("it contains itself")
    around = (*around, id(value))
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            _check_keys(value)
        return {_plain_key(key): _finite(each, around) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each, around) for each in value]
    return _finite(_plain(value), around)


def _plain(value: Any) -> object:
    """Converts NumPy's values to lists and numbers; json calls this."""
    if isinstance(value, Mapping):
        return dict(value)
    if not isinstance(value, np.ndarray | np.generic):
        if not hasattr(value, "__array__"):  # PyTorch's and JAX's arrays have it
            raise TypeError(f"no JSON for the type {type(value).__name__}")
        value = np.asarray(value)
    if value.dtype.kind == "f":
        value = value.astype(np.float64, copy=False)  # long doubles, too
    elif value.dtype.kind not in "biuUO":
        raise TypeError(f"no JSON for NumPy's {value.dtype}")
    plain: object = value.tolist()
    return plain


_encode = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=_plain).encode
