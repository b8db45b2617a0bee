"""The keyword options of a task, as the JSON that an engine takes."""

import json
import math
import os
from collections.abc import Mapping
from typing import NoReturn

import numpy as np

from tandem.arguments import shown
from tandem.errors import InvalidArgument


def to_json(options: Mapping[str, object]) -> str:
    """Returns options as a JSON object.

    A value is None, a bool, a number, a text, a path, a NumPy scalar or array, or a list, tuple or mapping of such.
    NumPy's values become plain, and infinities the texts "inf" and "-inf". InvalidArgument names the option that is
    refused.

    >>> to_json({"healthy_z_range": (0.2, float("inf"))})
    '{"healthy_z_range": [0.2, "inf"]}'
    """
    if not isinstance(options, Mapping):
        _refuse("task_options", "a mapping from names to values", options)
    plain = {_name(key, "task_options"): _option(key, value) for key, value in options.items()}
    return json.dumps(plain, allow_nan=False)


def _option(name: str, value: object) -> object:
    """Makes an option plain; messages name it as the engine does."""
    where = name if name.isidentifier() else f"task_options[{name!r}]"
    try:
        return _plain(value, where)
    except RecursionError:
        _refuse(where, "a value that does not contain itself", value)


def _plain(value: object, where: str) -> object:
    """Makes a value plain; messages call it `where`."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    if isinstance(value, int | np.integer):
        return _integer(int(value), where)
    if isinstance(value, float | np.floating):
        return _number(float(value), where)
    if isinstance(value, os.PathLike):
        value = os.fsdecode(value)
    if isinstance(value, str):
        return _text(value, where)
    if isinstance(value, Mapping):
        return {_name(key, where): _plain(item, f"{where}[{key!r}]") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, f"{where}[{i}]") for i, item in enumerate(value)]
    _refuse(where, "None, a bool, a number, a text, a path, an array, or a list, tuple or mapping of such", value)


def _name(key: object, where: str) -> str:
    if not isinstance(key, str):
        _refuse(where, "names that are texts", key)
    return _text(key, where)


def _integer(value: int, where: str) -> int:
    try:
        float(value)
    except OverflowError:
        _refuse(where, "a number in float64's range", value)
    return value


def _number(value: float, where: str) -> float | str:
    if math.isnan(value):
        _refuse(where, "a number", value)
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def _text(value: str, where: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        _refuse(where, "text that can be written in UTF-8", value)
    return value


def _refuse(where: str, expected: str, found: object) -> NoReturn:
    raise InvalidArgument(f"{where}: expected {expected}, found {shown(found)} ({type(found).__name__})")
