"""Ids of Gymnasium's registry in `make_vec`: modules, versions, and what Gymnasium says of unknown ones."""

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import pytest

import tandem
from tandem.environments.make_vec import cores_argument
from tandem.testing.engines import watchdog  # noqa: F401, the fixture


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Writes a module that registers the id "Made-v3", and returns its name."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "registers_made.py").write_text(
        "import gymnasium\n"
        "gymnasium.register('Made-v3', 'gymnasium.envs.classic_control:MountainCarEnv', max_episode_steps=2)\n"
        "gymnasium.register('Made-v4', 'gymnasium.envs.classic_control:MountainCarEnv', max_episode_steps=4)\n"
    )
    yield "registers_made"
    sys.modules.pop("registers_made", None)
    for version in (3, 4):
        gymnasium.registry.pop(f"Made-v{version}", None)


def _steps_of(envs: Any) -> int:
    """Returns the steps of an episode."""
    with closing(envs):
        envs.reset(seed=0)
        count = 1
        while not envs.step(envs.action_space.sample())[3].any():
            count += 1
        return count


@pytest.mark.filterwarnings("ignore:.*out of date")
@pytest.mark.parametrize("backend", [None, "python"])
def test_an_id_with_a_module_imports_it(module: str, backend: Any) -> None:
    """As in gymnasium.make."""
    assert "Made-v3" not in gymnasium.registry
    assert _steps_of(tandem.make_vec(f"{module}:Made-v3", 2, backend=backend)) == 2
    assert module in sys.modules
    assert cores_argument(f"{module}:Made-v3", None, 2, 2) == {"num_workers": 2}


def test_a_task_in_cpp_with_a_module() -> None:
    """docs/gymnasium.md recommends this id for gymnasium.make."""
    for task in ("tandem:tandem/CartPole-v1", "gymnasium:CartPole-v1"):
        with closing(tandem.make_vec(task, 2)) as envs:
            assert isinstance(envs, tandem.SharedMemoryVectorEnv)
    assert cores_argument("tandem:tandem/CartPole-v1", None, 2, 2) == {"threads": 2}


def test_an_id_without_a_version_is_the_latest(module: str) -> None:
    """With Gymnasium's warning; of a task in C++, too."""
    with pytest.warns(UserWarning, match="Using the latest versioned environment `Made-v4`"):
        assert _steps_of(tandem.make_vec(f"{module}:Made", 2)) == 4
    with pytest.warns(UserWarning, match="Using the latest versioned environment `CartPole-v1`"):
        with closing(tandem.make_vec("CartPole", 2)) as envs:
            assert isinstance(envs, tandem.SharedMemoryVectorEnv)


@pytest.mark.parametrize("backend", [None, "native", "python"])
def test_the_error_of_a_module_is_its_own(backend: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing module, one whose import fails, and one that does not register the id."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "broken_package.py").write_text("raise ImportError('libfoo.so is missing')\n")
    with pytest.raises(ModuleNotFoundError, match="No module named 'no_such_package'"):
        tandem.make_vec("no_such_package:Made-v3", 2, backend=backend)
    with pytest.raises(ImportError, match="libfoo.so is missing"):
        tandem.make_vec("broken_package:Made-v3", 2, backend=backend)
    with pytest.raises(tandem.InvalidArgument, match="'Made-v3'"):
        tandem.make_vec("json:Made-v3", 2, backend=backend)


def test_the_nearest_id_is_one_of_both(module: str) -> None:
    """Of the registry, if its ids resemble more."""
    __import__(module)
    with pytest.raises(tandem.InvalidArgument, match="[Dd]id you mean.*Made"):
        tandem.make_vec("Mde-v3", 2)
    with pytest.raises(tandem.InvalidArgument, match=r"`v3`, `v4` \]; did you mean 'Made-v4'\?$|use `Made-v4`"):
        tandem.make_vec("Made-v5", 2)
