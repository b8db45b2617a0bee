"""Pickles of functions and values for workers: what they contain, and the modules that they name.

data = pickled(env_fn)
modules_of(data)  # {"gymnasium.envs.registration", "torch"}: reading it imports these
"""

import io
import os
import pickletools
import sys
import types
from typing import Any

import cloudpickle


def pickled(value: object) -> bytes:
    """Returns a pickle of a value; raises what the value's `__reduce__` raises.

    What belongs to modules that a new program cannot import, such as test modules of pytest, is pickled by value.
    """
    file = io.BytesIO()
    pickler = _Pickler(file)
    try:
        pickler.dump(value)
    finally:
        for module in filter(None, pickler.by_value.values()):
            cloudpickle.unregister_pickle_by_value(module)
    return file.getvalue()


def modules_of(data: bytes) -> set[str]:
    """Returns the names of the modules that reading a pickle imports."""
    names: set[str] = set()
    pushed: list[Any] = [None, None]  # texts, and functions by their names; None: other objects
    memo: list[Any] = []
    argument: Any
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name == "MEMOIZE":
            memo.append(pushed[-1])
        if opcode.name in ("MEMOIZE", "FRAME"):
            continue
        found: Any = argument if isinstance(argument, str) else None
        if opcode.name in ("BINGET", "LONG_BINGET"):
            found = memo[argument]
        if opcode.name == "STACK_GLOBAL":
            names.add(pushed[-2])
            found = (pushed[-1],)
        elif pushed[-1] == ("subimport",) and isinstance(found, str):  # cloudpickle's function for a module
            names.add(found)
        pushed = [pushed[-1], found]
    return names


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.by_value: dict[str, types.ModuleType | None] = {}

    def reducer_override(self, value: Any) -> Any:
        """As cloudpickle's, which is called for each function, class and module of a value."""
        if isinstance(value, types.ModuleType):
            self._look_at(value.__name__)
        elif isinstance(value, types.FunctionType | type):
            self._look_at(value.__module__)
        return super().reducer_override(value)

    def _look_at(self, name: object) -> None:
        if not isinstance(name, str) or name in self.by_value:
            return
        module = None if name in cloudpickle.list_registry_pickle_by_value() else _lost_module(name)
        self.by_value[name] = module
        if module is not None:
            cloudpickle.register_pickle_by_value(module)


def _lost_module(name: str) -> types.ModuleType | None:
    """Returns a module that is loaded, but that a new program would not find; None: there is none of this name."""
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if name == "__main__" or name.split(".")[0] in sys.stdlib_module_names or file is None:
        return None
    try:
        found = _file_of(name)
    except (ImportError, ValueError, KeyError):
        found = None
    return None if found is not None and os.path.realpath(found) == os.path.realpath(file) else module


def _file_of(name: str) -> str | None:
    """Returns the file that a new program would load as this module; None: it would find none.

    `importlib.util.find_spec` asks the modules that are loaded, which may have been loaded from anywhere.
    """
    path: list[str] | None = None
    file: str | None = None
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        its_name = ".".join(parts[:count])
        specs = (finder.find_spec(its_name, path) for finder in sys.meta_path)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is None:
            return None
        path, file = list(spec.submodule_search_locations or ()), spec.origin
    return file
