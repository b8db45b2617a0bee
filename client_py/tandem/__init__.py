"""Simulation engines in processes of their own, stepped through shared memory.

make_vec            any of Gymnasium's environments, in processes of their own; list_tasks: those that run in C++
EngineOptions       options of make_vec in groups, beside WorkerOptions, TaskOptions, FrameOptions, ImageOptions
Attendant           calls an engine's services in addition to its client, from another process
Engine, serve       an engine in Python, and the function that serves it; serve_program: by a command line
launch_engine       an engine alone (EngineProcess), for a SharedMemoryClient or a SharedMemoryVectorEnv
publish_frames      shows what any Gymnasium environment renders to viewers; FastLaneReader reads it
TandemError         the base of all errors, such as InvalidArgument, PeerGone and StepTimeout: tandem.errors
tandem.services     RPCs to an engine; tandem.telemetry: jobs and their events, with tandem-daemon
tandem.torch        results as tensors, also on a GPU; tandem.ray: rollouts on the nodes of a Ray cluster
tandem.vector       AsyncVectorEnv; tandem.sb3, .tianshou, .xuance, .pettingzoo: the same for these packages
tandem.fastlane     frames: readers and writers; .rerun: for Rerun's viewer; .sdk: flags for C
tandem.checkpoint   one file with the states of environments and of a training, from which it resumes
tandem.doctor       checks this machine: `python -m tandem.doctor`
tandem.examples     programs to copy: `python -m tandem.examples`; .conformance: checks an engine's program
"""

import importlib
import importlib.abc
import importlib.util
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tandem import errors as errors
from tandem._version import __version__ as __version__

if TYPE_CHECKING:
    from tandem import doctor as doctor
    from tandem import fastlane as fastlane
    from tandem import pettingzoo as pettingzoo
    from tandem import sdk as sdk
    from tandem import services as services
    from tandem import telemetry as telemetry
    from tandem import vector as vector
    from tandem.attendant import Attendant as Attendant
    from tandem.client import AutoresetMode as AutoresetMode
    from tandem.client import SharedMemoryClient as SharedMemoryClient
    from tandem.engine.options import EngineOptions as EngineOptions
    from tandem.engine.options import FrameOptions as FrameOptions
    from tandem.engine.options import ImageOptions as ImageOptions
    from tandem.engine.options import TaskOptions as TaskOptions
    from tandem.engine.options import WorkerOptions as WorkerOptions
    from tandem.engine.process import EngineProcess as EngineProcess
    from tandem.engine.process import launch_engine as launch_engine
    from tandem.environments.client_vector import EnvironmentClosed as EnvironmentClosed
    from tandem.environments.client_vector import ResetNeeded as ResetNeeded
    from tandem.environments.make_vec import list_tasks as list_tasks
    from tandem.environments.make_vec import make_vec as make_vec
    from tandem.environments.vector import SharedMemoryVectorEnv as SharedMemoryVectorEnv
    from tandem.errors import *  # noqa: F403, the classes of the table
    from tandem.fastlane.publishing import publish_frames as publish_frames
    from tandem.fastlane.reader import FastLaneReader as FastLaneReader
    from tandem.serving.command_line import serve_program as serve_program
    from tandem.serving.engine import Engine as Engine
    from tandem.serving.serve import serve as serve
    from tandem.video import record_video as record_video

# Submodule -> names of the front that are imported from it when they are used: the doctor needs none of them, and must
# start where NumPy or the extension module is broken.
_FROM = {
    "attendant": "Attendant",
    "client": "AutoresetMode SharedMemoryClient",
    "engine.options": "EngineOptions FrameOptions ImageOptions TaskOptions WorkerOptions",
    "engine.process": "EngineProcess launch_engine",
    "environments.client_vector": "EnvironmentClosed ResetNeeded",
    "environments.make_vec": "list_tasks make_vec",
    "environments.vector": "SharedMemoryVectorEnv",
    "fastlane.publishing": "publish_frames",
    "fastlane.reader": "FastLaneReader",
    "serving.command_line": "serve_program",
    "serving.engine": "Engine",
    "serving.serve": "serve",
    "video": "record_video",
}
_REGISTRATION = "tandem.environments.registration"  # whose import registers the tasks
_SUBMODULES = (
    "checkpoint", "conformance", "doctor", "examples", "fastlane", "pettingzoo", "sdk", "services", "telemetry",
    "vector",
)  # fmt: skip
__all__ = [
    "Attendant",
    "AutoresetMode",
    "Engine",
    "EngineOptions",
    "EngineProcess",
    "EnvironmentClosed",
    "FastLaneReader",
    "FrameOptions",
    "ImageOptions",
    "ResetNeeded",
    "SharedMemoryClient",
    "SharedMemoryVectorEnv",
    "TaskOptions",
    "WorkerOptions",
    "launch_engine",
    "list_tasks",
    "make_vec",
    "publish_frames",
    "record_video",
    "serve",
    "serve_program",
]
__all__ += errors.__all__


def __dir__() -> list[str]:
    """Lists the front, and the submodules of this wheel."""
    return [*__all__, *(name for name in _SUBMODULES if importlib.util.find_spec(f"tandem.{name}"))]


def _attribute(name: str) -> Any:
    """Imports a submodule, or a name of the front, when it is first used."""
    if name in _SUBMODULES:
        try:
            return importlib.import_module(f"tandem.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"tandem.{name}":
                raise
    if name in errors.__all__:
        return getattr(errors, name)
    for module, names in _FROM.items():
        if name in names.split():
            return globals().setdefault(name, getattr(importlib.import_module(f"tandem.{module}"), name))
    raise AttributeError(f"module 'tandem' has no attribute {name!r}")


if not TYPE_CHECKING:  # checkers read the imports above, and find wrong names
    __getattr__ = _attribute


class _RegistersTasks(importlib.abc.MetaPathFinder):
    """Registers the tasks after the import of Gymnasium, if that comes after the import of this package."""

    _asks = False  # the finders behind this one

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> Any:
        """Returns the spec of Gymnasium, whose loader also registers the tasks; None: of another module."""
        if fullname != "gymnasium" or self._asks:
            return None
        self._asks = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._asks = False
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)  # a failed import may be tried again
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                importlib.import_module(_REGISTRATION)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


if sys.modules.get("gymnasium") is not None:
    importlib.import_module(_REGISTRATION)
else:
    sys.meta_path.insert(0, _RegistersTasks())
