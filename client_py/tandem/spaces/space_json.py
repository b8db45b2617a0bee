"""`space_to_json`, `space_from_json`: Gymnasium's spaces in the JSON of a task's description.

docs/protocol.md ("Infos and the description") defines the JSON. Bounds keep all their digits.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from tandem._native import MAX_FIELD_PATH_BYTES, MAX_FIELD_VALUES
from tandem.arguments import shown
from tandem.errors import InvalidArgument, Unsupported
from tandem.spaces.fields import FIELD_DTYPES, field_dtype, key_path, place, refuse

Json = dict[str, Any]

_NAME = "space"  # in messages
_INT64 = FIELD_DTYPES["int64"]


def space_to_json(space: spaces.Space[Any]) -> Json:
    """Returns the JSON of a space, for `json.dumps`.

    A space whose values are pickled becomes {"type": "pickled", "class": "module.Name"}. A subclass of one of
    Gymnasium's spaces becomes this space.

    Raises:
      Unsupported: A dtype that no field has, a key that is not a text, or lone surrogates in a charset.

    >>> space_to_json(spaces.Tuple([spaces.Discrete(2), spaces.Box(-1, 1, (3,))]))["spaces"][0]
    {'type': 'Discrete', 'n': 2}
    """
    return _to_json(space, "")


def space_from_json(value: Any) -> spaces.Space[Any]:
    """Returns the space of such JSON; it is equal to the one that was written, and draws the same samples by a seed.

    `value` is from `json.loads`; unknown keys of objects are ignored. Unsupported: A part of the space is pickled; the
    message names its class. InvalidArgument: Other JSON.

    >>> space_from_json({"type": "Box", "shape": [2], "low": ["-inf"], "high": [1, 2], "dtype": "float32"})
    Box(-inf, [1. 2.], (2,), float32)
    """
    return _from_json(value, "")


def _to_json(space: spaces.Space[Any], path: str) -> Json:
    if isinstance(space, spaces.Dict):
        items = [[key, _to_json(item, key_path(path, key, _NAME))] for key, item in space.spaces.items()]
        # Without sort_keys, which Gymnasium 1.1 does not have, a batched space has the order of the sorted keys.
        unsorted = {} if getattr(space, "sort_keys", True) else {"sort_keys": False}
        return {"type": "Dict", "spaces": items, **unsorted}
    if isinstance(space, spaces.Tuple | spaces.OneOf):
        parts = [_to_json(item, f"{path}/{index}") for index, item in enumerate(space.spaces)]
        return {"type": "Tuple" if isinstance(space, spaces.Tuple) else "OneOf", "spaces": parts}
    if isinstance(space, spaces.Text):
        return _text_to_json(space, path)
    if isinstance(space, spaces.MultiBinary):
        return {"type": "MultiBinary", "n": space.n if isinstance(space.n, int) else list(space.n)}
    if isinstance(space, spaces.Discrete):
        start = {"start": int(space.start)} if space.start else {}
        return {"type": "Discrete", "n": int(space.n), **start, **_dtype_to_json(space, path)}
    if isinstance(space, spaces.MultiDiscrete):
        starts = {"start": _numbers(space.start)} if space.start.any() else {}
        sizes = {"shape": list(space.nvec.shape), "nvec": _numbers(space.nvec)}
        return {"type": "MultiDiscrete", **sizes, **starts, **_dtype_to_json(space, path)}
    if isinstance(space, spaces.Box):
        return {
            "type": "Box",
            "shape": list(space.shape),
            "low": _numbers(space.low, ~space.bounded_below, "-inf"),
            "high": _numbers(space.high, ~space.bounded_above, "inf"),
            "dtype": field_dtype(space.dtype, path, _NAME).name,
        }
    return {"type": "pickled", "class": f"{type(space).__module__}.{type(space).__qualname__}"}


def _text_to_json(space: spaces.Text, path: str) -> Json:
    charset = "".join(space.character_list)
    if any("\ud800" <= character <= "\udfff" for character in charset):
        refuse(_NAME, path, "a charset without lone surrogates, which UTF-8 does not have", "some", "remove them")
    return {"type": "Text", "min_length": space.min_length, "max_length": space.max_length, "charset": charset}


def _dtype_to_json(space: spaces.Space[Any], path: str) -> Json:
    dtype = field_dtype(space.dtype, path, _NAME)
    return {} if dtype == _INT64 else {"dtype": dtype.name}


def _numbers(array: NDArray[Any], infinite: NDArray[np.bool_] | None = None, infinity: str = "") -> list[Any]:
    """Returns numbers in C order; one, if all are equal.

    `infinite` marks those that are `infinity`, also where integers have no infinity.
    """
    flat = array.ravel()
    marks = np.zeros(flat.shape, np.bool_) if infinite is None else infinite.ravel()
    first = flat[:1].tobytes()
    if flat.size > 0 and flat.tobytes() == first * flat.size and marks.all() == marks.any():
        flat, marks = flat[:1], marks[:1]
    values = (flat.astype(np.uint8) if flat.dtype == np.bool_ else flat).tolist()
    return [infinity if mark else _finite_or_text(value) for value, mark in zip(values, marks.tolist(), strict=True)]


def _finite_or_text(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)  # JSON has no infinities


def _from_json(value: Any, path: str) -> spaces.Space[Any]:
    if len(path.encode()) > MAX_FIELD_PATH_BYTES:
        _refuse(path, f"paths of at most {MAX_FIELD_PATH_BYTES} bytes", len(path.encode()))
    kind = value.get("type") if isinstance(value, dict) else None
    if kind == "pickled":
        raise Unsupported(
            f"{_NAME}{place(path)}: expected a space that JSON describes, found {shown(value.get('class'))}, whose "
            "values are pickled; take the space of the Python environment itself"
        )
    if not isinstance(kind, str) or kind not in _READERS:
        _refuse(path, f"a space of the type {', '.join(_READERS)}", value)
    return _READERS[kind](value, path)


def _made(path: str, kind: Callable[..., spaces.Space[Any]], *arguments: Any, **options: Any) -> spaces.Space[Any]:
    """Returns a space; Gymnasium refuses arguments by various errors."""
    try:
        return kind(*arguments, **options)
    except (ValueError, TypeError, OverflowError, AssertionError) as error:
        raise InvalidArgument(
            f"{_NAME}{place(path)}: expected a valid {kind.__name__}, found one with: {error}"
        ) from error


def _read_box(value: Json, path: str) -> spaces.Space[Any]:
    shape, dtype = _shape(value, path), _dtype(value, path, None)
    low, endless_below = _bounds(value, "low", shape, dtype, path)
    high, endless_above = _bounds(value, "high", shape, dtype, path)
    box = _made(path, spaces.Box, low, high, shape, dtype.type)
    if dtype.kind == "i" and isinstance(box, spaces.Box):  # of floats, Box itself finds the infinities
        box.bounded_below, box.bounded_above = ~endless_below, ~endless_above
    return box


def _read_discrete(value: Json, path: str) -> spaces.Space[Any]:
    dtype = _dtype(value, path, "int64")
    limits = np.iinfo(dtype)
    n = _integer(value.get("n"), "n", path, 1, limits.max)
    start = _integer(value.get("start", 0), "start", path, limits.min, limits.max)
    return _made(path, spaces.Discrete, n, start=start, **_other_than_int64(dtype))


def _read_multi_discrete(value: Json, path: str) -> spaces.Space[Any]:
    shape, dtype = _shape(value, path), _dtype(value, path, "int64")
    nvec = _integers(value.get("nvec"), "nvec", shape, dtype, path)
    start = _integers(value.get("start", [0]), "start", shape, dtype, path)
    return _made(path, spaces.MultiDiscrete, nvec, dtype=dtype.type, start=start)


def _read_multi_binary(value: Json, path: str) -> spaces.Space[Any]:
    n = value.get("n")
    sizes = [_integer(each, "n", path, 1, MAX_FIELD_VALUES) for each in (n if isinstance(n, list) else [n])]
    return _made(path, spaces.MultiBinary, sizes if isinstance(n, list) else sizes[0])


def _read_text(value: Json, path: str) -> spaces.Space[Any]:
    most = _integer(value.get("max_length"), "max_length", path, 0, MAX_FIELD_VALUES)
    least = _integer(value.get("min_length"), "min_length", path, 0, most)
    charset = value.get("charset")
    if not isinstance(charset, str):
        _refuse(path, "a str as charset", charset)
    return _made(path, spaces.Text, most, min_length=least, charset=charset)


def _read_dict(value: Json, path: str) -> spaces.Space[Any]:
    items: dict[str, spaces.Space[Any]] = {}
    for pair in _list(value, path):
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str) or pair[0] in items:
            _refuse(path, "pairs of a key, each another one, and a space", pair)
        items[pair[0]] = _from_json(pair[1], key_path(path, pair[0], _NAME))
    unsorted = {"sort_keys": False} if value.get("sort_keys") is False else {}
    return _made(path, spaces.Dict, list(items.items()), **unsorted)


def _read_items(kind: Callable[..., spaces.Space[Any]], value: Json, path: str) -> spaces.Space[Any]:
    return _made(path, kind, [_from_json(item, f"{path}/{at}") for at, item in enumerate(_list(value, path))])


_READERS: dict[str, Callable[[Json, str], spaces.Space[Any]]] = {
    "Box": _read_box,
    "Discrete": _read_discrete,
    "MultiDiscrete": _read_multi_discrete,
    "MultiBinary": _read_multi_binary,
    "Text": _read_text,
    "Dict": _read_dict,
    "Tuple": functools.partial(_read_items, spaces.Tuple),
    "OneOf": functools.partial(_read_items, spaces.OneOf),
}


def _refuse(path: str, expected: str, found: object) -> NoReturn:
    raise InvalidArgument(f"{_NAME}{place(path)}: expected {expected}, found {shown(found)}")


def _list(value: Json, path: str) -> list[Any]:
    said = value.get("spaces")
    return said if isinstance(said, list) else _refuse(path, "a list of spaces", said)


def _shape(value: Json, path: str) -> tuple[int, ...]:
    said = value.get("shape")
    if not isinstance(said, list):
        _refuse(path, "a list as shape", said)
    shape = tuple(_integer(size, "shape", path, 0, MAX_FIELD_VALUES) for size in said)
    if math.prod(shape) > MAX_FIELD_VALUES:
        _refuse(path, f"at most {MAX_FIELD_VALUES} values", shape)
    return shape


def _dtype(value: Json, path: str, default: str | None) -> np.dtype[Any]:
    name = value.get("dtype", default)
    if not isinstance(name, str) or name not in FIELD_DTYPES:
        _refuse(path, f"a dtype of {', '.join(FIELD_DTYPES)}", name)
    dtype = FIELD_DTYPES[name]
    if default is not None and dtype.kind not in "iu":
        _refuse(path, "a dtype of integers", name)
    return dtype


def _other_than_int64(dtype: np.dtype[Any]) -> dict[str, Any]:
    """Returns the argument of a Discrete, which in Gymnasium 1.1 does not have it."""
    return {} if dtype == _INT64 else {"dtype": dtype.type}


def _integer(said: Any, name: str, path: str, least: int, most: int) -> int:
    if isinstance(said, float) and said.is_integer():  # an engine in C++ writes bounds as floats
        said = int(said)
    if not isinstance(said, int) or isinstance(said, bool) or not least <= said <= most:
        _refuse(path, f"as {name} integers in {least} .. {most}", said)
    return said


def _integers(said: Any, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], path: str) -> NDArray[Any]:
    """Returns integers of a dtype in a shape; one of the JSON, or as many as the shape has elements."""
    least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    values = [_integer(each, name, path, least, most) for each in _one_or_all(said, name, shape, path)]
    return _spread(np.array(values, dtype), shape)


def _bounds(
    value: Json, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], path: str
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    said = _one_or_all(value.get(name), name, shape, path)
    if dtype.kind != "f":
        infinity = {"low": "-inf", "high": "inf"}[name] if dtype.kind == "i" else None
        endless = [each == infinity for each in said]
        extreme = 0 if infinity is None else np.iinfo(dtype).min if name == "low" else np.iinfo(dtype).max
        finite = [int(extreme) if mark else each for each, mark in zip(said, endless, strict=True)]
        return _integers(finite, name, shape, dtype, path), _spread(np.array(endless, np.bool_), shape)
    floats = np.array([_float(each, name, path) for each in said])
    with np.errstate(over="ignore"):
        bounds = _spread(floats.astype(dtype), shape)
    return bounds, np.isinf(bounds)


def _float(said: Any, name: str, path: str) -> float:
    if said not in ("inf", "-inf") and (not isinstance(said, int | float) or isinstance(said, bool)):
        _refuse(path, f"as {name} numbers, 'inf' or '-inf'", said)
    try:
        return float(said)
    except OverflowError:
        _refuse(path, f"as {name} numbers in float64's range", said)


def _one_or_all(said: Any, name: str, shape: tuple[int, ...], path: str) -> list[Any]:
    size = math.prod(shape)
    if not isinstance(said, list) or len(said) not in (1, size):
        found = len(said) if isinstance(said, list) else said
        _refuse(path, f"as {name} a list of 1 number, or {size}, one for each element", found)
    return said


def _spread(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Returns one value or all as an array of a shape, which is the caller's."""
    return np.broadcast_to(values, (math.prod(shape),)).reshape(shape).copy()
