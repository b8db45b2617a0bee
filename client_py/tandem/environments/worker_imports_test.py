"""Environments in workers that import packages: what imports them, how often, and time-outs."""

import functools
import importlib
import os
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import tandem
from tandem.testing.engines import busy_processes, needs_hardware, watchdog  # noqa: F401, the fixture
from tandem.testing.sample_envs import ScriptedEnv
from tandem.workers.pickled import modules_of, pickled

_ACTIONS = np.zeros(2, np.int64)

# Each process that imports the package leaves a file with its number.
_NOTES = """
import os, threading, time
from pathlib import Path
import gymnasium
from tandem.testing.sample_envs import ScriptedEnv

Path(__file__).with_name(f"imported_by_{os.getpid()}").touch()

class Value:
    pass

class Wrapper(gymnasium.Wrapper):
    pass

def make():
    return ScriptedEnv()
"""


class _Package:
    """A package that the test has made, and imported.

    Attributes:
      module: The module.
    """

    def __init__(self, folder: Path, module: Any) -> None:
        self._folder, self.module = folder, module

    def importers(self) -> set[int]:
        """Returns the numbers of the other processes that have imported it."""
        numbers = {int(path.name.rpartition("_")[2]) for path in self._folder.glob("imported_by_*")}
        return numbers - {os.getpid()}

    def add(self, code: str) -> None:
        """Adds code that other processes execute when they import it."""
        file = self._folder / f"{self.module.__name__}.py"
        file.write_text(f"{file.read_text()}\n{textwrap.dedent(code)}")


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[_Package]:
    """Makes a package with a name of its own, and imports it."""
    monkeypatch.syspath_prepend(tmp_path)
    name = f"package_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(_NOTES)
    yield _Package(tmp_path, importlib.import_module(name))
    del sys.modules[name]


def _workers(envs: Any) -> set[int]:
    return set(envs.call("process"))


def test_a_question_about_a_wrapper_imports_nothing(package: _Package) -> None:
    """No environment has a wrapper of a module that its process has not imported."""
    with closing(tandem.make_vec(ScriptedEnv, 2, num_workers=2)) as envs:
        assert envs.is_wrapped(package.module.Wrapper) == (False, False)
        assert envs.is_wrapped((package.module.Wrapper, ScriptedEnv)) == (True, True)
        assert package.importers() == set()


def test_a_wrapper_is_known_by_its_class_and_by_the_classes_above() -> None:
    """Also one of a module that a new program cannot import, such as this one."""

    class Mine(gymnasium.wrappers.TimeLimit):
        pass

    def make() -> Any:
        return Mine(ScriptedEnv(), 10)

    with closing(tandem.make_vec(make, 2)) as envs:
        for wrapper in (Mine, gymnasium.wrappers.TimeLimit, gymnasium.Wrapper):
            assert envs.is_wrapped(wrapper) == (True, True)
        assert envs.is_wrapped(gymnasium.wrappers.OrderEnforcing) == (False, False)


def test_what_a_wrapper_names_does_not_change_whether_it_is_known(package: _Package) -> None:
    """Its methods may name modules that only the trainer has imported; what cannot be pickled is refused."""

    class Late(gymnasium.Wrapper[Any, Any, Any, Any]):
        def used(self) -> Any:
            return later

    class Locked(gymnasium.Wrapper[Any, Any, Any, Any]):
        lock = threading.Lock()

    later: Any = None
    with closing(tandem.make_vec(functools.partial(_wrapped, Late), 2, num_workers=2)) as envs:
        assert envs.is_wrapped(Late) == (True, True)
        later = package.module
        assert envs.is_wrapped(Late) == (True, True)
        assert package.importers() == set()
        with pytest.raises(tandem.InvalidArgument, match="Locked.*lock"):
            envs.is_wrapped(Locked)


@needs_hardware
def test_sixteen_workers_import_a_slow_package_beside_busy_processes(package: _Package) -> None:
    """The import alone takes longer than start_timeout."""
    package.add("end = time.monotonic() + 7\nwhile time.monotonic() < end: pass")
    with busy_processes(2):
        options = tandem.WorkerOptions(start_timeout=6, timeout=60)
        with closing(tandem.make_vec(package.module.make, 16, num_workers=16, engine=options)) as envs:
            envs.reset(seed=0)
            assert len(package.importers()) == 16


def test_a_function_that_imports_a_slow_package_itself(package: _Package) -> None:
    """Its pickle does not name the package."""
    package.add("time.sleep(5)")
    name = package.module.__name__

    def make() -> Any:
        return importlib.import_module(name).make()

    with closing(tandem.make_vec(make, 2, num_workers=2, engine=tandem.WorkerOptions(start_timeout=4))):
        assert len(package.importers()) == 2


@needs_hardware
def test_an_import_without_end_is_named(package: _Package, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of the start has the package and the time."""
    monkeypatch.setattr("tandem.workers.worker_pool._IMPORT_SECS", 1.0)
    package.add("time.sleep(1000)")
    name = package.module.__name__
    with pytest.raises(tandem.EngineStartFailed, match=rf"\), importing .*{name}.py, no other for \d+ s: "):
        tandem.make_vec(package.module.make, 2, engine=tandem.WorkerOptions(start_timeout=3))


def test_a_constructor_without_end_has_no_import(package: _Package) -> None:
    """The module that was imported before is not named, and does not extend the time-out without end."""
    package.add("def make(): time.sleep(1000)")
    with pytest.raises(tandem.EngineStartFailed, match=r"still make theirs") as caught:
        tandem.make_vec(package.module.make, 2, engine=tandem.WorkerOptions(start_timeout=3))
    assert "in make" in str(caught.value) and "importing" not in str(caught.value)


@pytest.mark.parametrize("secs", [1.9, 3.0])
def test_the_import_for_a_value_does_not_count_as_time_of_the_call(package: _Package, secs: float) -> None:
    """What follows the import has the whole time-out, also if the import takes nearly that. The next step works."""
    package.add(f"time.sleep({secs})\nclass Value:\n    __setstate__ = lambda self, state: time.sleep(0.5)")
    with closing(tandem.make_vec(ScriptedEnv, 2, num_workers=2, engine=tandem.WorkerOptions(call_timeout=2))) as envs:
        envs.reset(seed=0)
        value = package.module.Value()
        value.state = 1
        envs.set_attr("value", value)
        assert package.importers() == _workers(envs)
        envs.step(_ACTIONS)


def test_an_import_without_end_in_a_call_is_named(package: _Package, monkeypatch: pytest.MonkeyPatch) -> None:
    """So it is in the error of the step that waits for the call."""
    monkeypatch.setattr("tandem.workers.worker_pool._IMPORT_SECS", 0.0)
    package.add("time.sleep(1000)")
    options = tandem.WorkerOptions(timeout=2, call_timeout=2)
    with closing(tandem.make_vec(ScriptedEnv, 2, num_workers=2, engine=options)) as envs:
        envs.reset(seed=0)
        found = rf"\), importing .*{package.module.__name__}.py, no other for \d+ s: "
        with pytest.raises(tandem.StepTimeout, match=found):
            envs.set_attr("value", package.module.Value())
        with pytest.raises(tandem.StepTimeout, match=found):
            envs.step(_ACTIONS)


def test_packages_that_workers_may_share_are_imported_once(package: _Package, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the supervisor, before it forks the workers."""
    monkeypatch.setattr("tandem.environments.python_backend._SHARED", ("gymnasium", package.module.__name__))
    with closing(tandem.make_vec(functools.partial(_wrapped, package.module.Wrapper), 3, num_workers=3)) as envs:
        assert package.importers() == {envs._workers._process.pid}
        assert envs.is_wrapped(package.module.Wrapper) == (True,) * 3


def _wrapped(wrapper: Any) -> Any:
    return wrapper(ScriptedEnv())


def test_a_package_that_starts_a_thread_is_imported_by_each_worker(
    package: _Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The fork of a process with a second thread would not have this thread, but perhaps a lock that it held."""
    monkeypatch.setattr("tandem.environments.python_backend._SHARED", ("gymnasium", package.module.__name__))
    package.add("threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()")
    with closing(tandem.make_vec(functools.partial(_wrapped, package.module.Wrapper), 3, num_workers=3)) as envs:
        envs.reset(seed=0)
        assert package.importers() == {envs._workers._process.pid} | _workers(envs)


def test_the_modules_that_a_pickle_names(package: _Package) -> None:
    """Of functions, classes and modules, also behind 64 KiB of other values."""
    module = package.module
    used = (bytes(2**17), module.Wrapper, "os.path", [module], "textwrap")
    assert modules_of(pickled(module.make)) == {module.__name__}
    assert module.__name__ in modules_of(pickled(lambda: (used, module.make)))
    assert module.__name__ in modules_of(pickled((bytes(2**17), module)))
    assert module.__name__ in modules_of(pickled((module.__name__, module)))  # as of a function that names it so
    assert "textwrap" not in modules_of(pickled(used))
