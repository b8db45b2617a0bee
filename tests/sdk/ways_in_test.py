"""The table at the top of docs/engines.md says what the suite detects, for each way in."""

import functools
import os
import re
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import gymnasium
import pytest

import tandem
from tandem._native import MethodId
from tandem.services import SimulationContract
from tandem.testing import cuda_engine
from tandem.testing.standin import LIBRARY
from tests.sdk.commands import run

# The fixture `sdk`.
pytest_plugins = ["tests.sdk.unpacked_archive"]

_ROOT = Path.cwd()  # the runfiles
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LC_ALL": "C.UTF-8",
    "MONO_DISABLE_SHARED_AREA": "1",
    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    "TANDEM_CUDA_LIBRARY": str(LIBRARY),
}
# The table's rows, by the suite's names.
_ROWS = {
    "fields": "fields",
    "images beside its observations": "images",
    "frames": "frames",
    "a camera": "cameras",
    "contracts": "contracts",
    "streams of numbers": "streams of telemetry",
    "methods of its own": "methods of its own",
    "arrays on a GPU": "arrays on a GPU",
    "a live scene": "live scene",
    "states": "states",
}
_PYTHON_WITH_IMAGES = """
import numpy as np
import tandem
from gymnasium import spaces

class Seen(tandem.Engine):
    observation_space = action_space = spaces.Box(-1, 1, (1,))
    observation_image_size = (8, 8)

    def __init__(self, num_envs):
        self.num_envs = num_envs

    def reset(self, envs, seeds, arrays):
        arrays.obs[envs] = arrays.images[envs] = 0

    def step(self, envs, arrays):
        arrays.rewards[envs] = arrays.terminateds[envs] = arrays.truncateds[envs] = 0

tandem.serve_program(Seen)
"""
_Engines = list[list[str | Path]]


def _built(sdk: Path, compiler: str, *sources: Path) -> _Engines:
    flags = [
        f"-I{sdk}/include",
        f"-I{sdk}/examples",
        f"-L{sdk}/lib",
        f"-Wl,-rpath,{sdk}/lib",
        "-ltandem",
        "-ldl",
        "-lm",
    ]
    programs: _Engines = []
    for source in sources:
        program = sdk.parent / f"{source.stem} by {compiler[:3]}"
        run(*compiler.split(), "-o", program, source, *flags, environment=_ENVIRONMENT)
        programs.append([program])
    return programs


def _in_cpp(_: Path) -> _Engines:
    programs = ("conformance/fields_server", "conformance/gpu_server", "conformance/reference/server")
    return [[_ROOT / "engine_adapter" / program] for program in programs]


def _in_python(sdk: Path) -> _Engines:
    seen = sdk.parent / "seen.py"
    seen.write_text(_PYTHON_WITH_IMAGES, encoding="utf-8")
    return [[sys.executable, file] for file in (_ROOT / "client_py/examples/cart_game.py", seen, cuda_engine.__file__)]


def _in_c(sdk: Path) -> _Engines:
    return _built(sdk, "gcc", sdk / "examples/c_game/game.c", _ROOT / "sdk/testing/gpu_engine.c")


def _in_cpp_by_sdk(sdk: Path) -> _Engines:
    game, gpu = sdk / "examples/cpp_game/game.cc", _ROOT / "sdk/testing/gpu_engine.c"
    return _built(sdk, "g++ -std=c++20", game) + _built(sdk, "g++ -x c++ -std=c++20 -Wno-pedantic", gpu)


def _in_csharp(sdk: Path) -> _Engines:
    (sdk.parent / "libcuda.so.1").symlink_to(LIBRARY)
    library = f"LD_LIBRARY_PATH={sdk}/lib:{sdk.parent}"
    programs = [["CounterEngine.exe"], ["Checks.exe", "Server"], ["Checks.exe", "Gpu"]]
    return [["/usr/bin/env", library, "mono", _ROOT / "sdk/csharp" / name, *words] for name, *words in programs]


_WAYS: dict[str, Callable[[Path], _Engines]] = {
    "C++, in this project": _in_cpp,
    "Python": _in_python,
    "C, by the SDK": _in_c,
    "C++, by the SDK": _in_cpp_by_sdk,
    "C#": _in_csharp,
}


def _table() -> dict[str, dict[str, bool]]:
    """Returns the table of docs/engines.md: way -> row -> whether it says yes."""
    text = (_ROOT / "docs/engines.md").read_text(encoding="utf-8")
    lines = re.search(r"^\| an engine may have .*?(?=^$)", text, re.MULTILINE | re.DOTALL)
    assert lines is not None
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[0].strip().splitlines()]
    ways = [re.sub(r"\[(.*?)\]\(.*?\)", r"\1", cell) for cell in head]
    return {
        way: {row[0].partition(" (")[0]: row[column] == "yes" for row in rows} for column, way in enumerate(ways[1:], 1)
    }


@pytest.mark.parametrize("way", _WAYS)
def test_the_table_is_what_the_suite_detects(sdk: Path, way: str) -> None:
    """Of all engines of that way together."""
    found = dict.fromkeys(_ROWS.values(), False)
    for engine in _WAYS[way](sdk):
        report = run(sdk / "bin/tandem-conformance", "--detect", *engine, cwd=sdk, environment=_ENVIRONMENT)
        has = re.findall(r"^with +(.+?)(?: \(.*)?$", report, re.MULTILINE)
        found |= {_ROWS[name]: True for name in has if name in _ROWS}
    assert _table()[way] == found


def test_environments_in_python_have_their_part() -> None:
    """By workers, which have no program of an engine."""
    make = functools.partial(gymnasium.make, "CartPole-v1", render_mode="rgb_array")
    with closing(tandem.make_vec(make, 2, num_workers=1, frames=(64, 48))) as envs:
        obs = envs.reset(seed=0)[0].copy()
        assert (envs.load_state(envs.save_state())[0] == obs).all()
        client = envs.client
        with pytest.raises(tandem.Unsupported):
            client.agent.set_contract(SimulationContract(friction_range=(0, 1)), [0])
        services = {name for name, service in client.services().items() if service.enabled}
        assert client.drawn_frame() is not None and client.fields and client.images is None and not client.gpu_path
        assert not services & {"camera", "telemetry", "mujoco", "own"}
    with closing(tandem.make_vec(functools.partial(gymnasium.make, "HalfCheetah-v5"), 1)) as envs:
        assert MethodId.WatchScene in envs.client.services()["scene"].methods
    yes = {row for row, says in _table()["environments in Python"].items() if says}
    assert yes == {"fields", "frames", "live scene", "states"}
