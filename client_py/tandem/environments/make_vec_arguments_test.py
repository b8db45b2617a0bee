"""Each argument that `make_vec` refuses, and the error text: expected value, found value, next action."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tandem
from tandem.testing.engines import nothing_left_behind, watchdog  # noqa: F401, the fixtures

_UNKNOWN = "task: unknown: expected one of tandem.list_tasks.. or of gymnasium.registry, found"
_NOWHERE = "; 'module:id' imports the module that registers an id"
_OPTIONS = "expected one of ctrl_cost_weight, .*, xml_file"
_SIZED = "expected .width, height., a text such as '320x240', or tandem"

_its = tandem.TaskOptions

# The arguments, and the full text of the error as a regular expression.
_REFUSED: list[tuple[dict[str, Any], str]] = [
    # Tasks and models.
    ({"task": "HalfCheetah-v9"}, f"{_UNKNOWN} 'HalfCheetah-v9': .*`v5` .; did you mean 'HalfCheetah-v5'?"),
    ({"task": "tandem/Ant-v4"}, f"{_UNKNOWN} 'tandem/Ant-v4': .* is deprecated. Please use `tandem/Ant-v5` instead"),
    ({"task": "FrozenLake-v0"}, f"{_UNKNOWN} 'FrozenLake-v0': .* is deprecated. Please use `FrozenLake-v1` instead"),
    ({"task": "FrozenLak-v1"}, f"{_UNKNOWN} 'FrozenLak-v1'; did you mean 'FrozenLake-v1'?"),
    ({"task": "Nope-v1"}, f"{_UNKNOWN} 'Nope-v1'; did you mean 'Hopper-v5'?"),
    ({"task": "ALE/Pong-v5"}, f"{_UNKNOWN} 'ALE/Pong-v5': Namespace ALE not found. .*"),
    ({"task": "Breakout"}, f"{_UNKNOWN} 'Breakout'{_NOWHERE}"),
    ({"task": ""}, "task, model: expected one of them, found neither; .*"),
    ({"task": "--task"}, f"{_UNKNOWN} '--task'{_NOWHERE}"),
    ({"task": 7}, "task: expected a task's name, a function that makes an environment, or a sequence of .*, found 7"),
    ({"task": None}, "task, model: expected one of them, found neither; pass a task such as 'Ant-v5', or model=.*"),
    ({"model": "robot.xml"}, "task, model: expected one of them, found both; pass a task .*"),
    ({"task": None, "model": 7}, "model: expected a path, found 7"),
    (
        {"task": None, "model": "/no/such.xml"},
        "model: expected a readable model file, found: No such .* .*/no/such.xml.",
    ),
    ({"task": None, "model": "/"}, "model: expected a model file, found a folder .*; name a file in it"),
    # The task's own options.
    ({"helthy_reward": 2}, "helthy_reward: unknown option: .*, found 'helthy_reward'; did you mean 'healthy_reward'?"),
    ({"gravity": 2}, f"gravity: unknown option: {_OPTIONS}, found 'gravity'"),
    ({"task": "CartPole-v1", "g": 1}, "g: unknown option: expected one of sutton_barto_reward, found 'g'"),
    ({"healthy_reward": "much"}, 'healthy_reward: expected a finite number, found "much"'),
    ({"healthy_reward": np.nan}, "healthy_reward: expected a number, found nan .*"),
    ({"healthy_reward": 10**400}, "healthy_reward: expected a number in float64's range, found 1000+.*0 .int."),
    ({"it's": 1}, f"it's: unknown option: {_OPTIONS}, found 'it's'"),
    ({"healthy_z_range": (2, 1)}, "healthy_z_range: expected two numbers, the lower one first, found .2,1."),
    ({"reset_noise_scale": -1}, "reset_noise_scale: expected a finite number from 0, found -1"),
    ({"frame_skip": 0}, "frame_skip: expected an integer in 1 .. .*, found 0"),
    ({"terminate_when_unhealthy": 1}, "terminate_when_unhealthy: expected true or false, found 1"),
    ({"xml_file": "nope.xml"}, "xml_file: expected the model file nope.xml, found none; begin the path .*"),
    ({"xml_file": "./nope.xml"}, "xml_file: expected a readable model file, found: No such .*"),
    ({"xml_file": 7}, "xml_file: expected a text without NUL, found 7"),
    # Keywords under other names.
    ({"num_threads": 2}, "num_threads: expected an option of the task, found 2; use threads; .*"),
    ({"n_envs": 2}, "n_envs: expected an option of the task, found 2; use num_envs; .*TaskOptions.kwargs={...}."),
    ({"seed": 2}, "seed: expected an option of the task, found 2; use envs.reset.seed=....; .*"),
    ({"thread": 2}, f"thread: unknown option: {_OPTIONS}, found 'thread'; did you mean 'threads'?"),
    ({"autoreset": "SameStep"}, "autoreset: unknown option: .*; did you mean 'autoreset_mode'?"),
    ({"restart": True}, "restart: .*, found True; use engine=tandem.EngineOptions.restart=...., or .*"),
    ({"wait": "spin"}, "wait: .*, found 'spin'; use engine=tandem.EngineOptions.wait=...., or WorkerOptions for .*"),
    ({"batch_size": 2}, "batch_size: .*, found 2; use engine=tandem.WorkerOptions.batch_size=....; .*"),
    ({"copy": False}, "copy: .*, found False; use options=tandem.TaskOptions.copy=....; .*"),
    ({"frame_envs": [0]}, "frame_envs: .*, found .0.; use frames=tandem.FrameOptions.size, envs=....; .*"),
    ({"image_camera": "x"}, "image_camera: .*, found 'x'; use images=tandem.ImageOptions.size, camera=....; .*"),
    # Numbers and choices.
    ({"num_envs": 0}, "num_envs: expected an integer in 1 .. 2147483647, found 0"),
    ({"num_envs": "4"}, "num_envs: expected an integer in 1 .. 2147483647, found '4'"),
    ({"num_envs": 2.5}, "num_envs: expected an integer in 1 .. 2147483647, found 2.5"),
    ({"num_envs": 2**24 + 1}, "num_envs: expected 1 to 16777216, found 16777217"),
    ({"threads": -1}, "threads: expected an integer in 0 .. 2147483647, found -1"),
    ({"threads": 4097}, "threads: expected at most 4096, found 4097"),
    ({"autoreset_mode": "Sometimes"}, "autoreset_mode: expected one of .*'NextStep'.*, found 'Sometimes'"),
    ({"autoreset_mode": 3}, "autoreset_mode: expected one of .*'NextStep'.*, found 3"),
    ({"options": _its(dtype=np.float16)}, "dtype: expected float32 or float64, found <class 'numpy.float16'>"),
    ({"options": _its(dtype=",")}, "dtype: expected float32 or float64, found ','"),
    ({"options": _its(dtype="x" * 1000)}, "dtype: expected float32 or float64, found 'x{1,80}...x{1,80}'"),
    ({"autoreset_mode": "x" * 1000}, "autoreset_mode: expected one of .*, found 'x{1,80}...x{1,80}'"),
    ({"options": _its(dtype="nonsense")}, "dtype: expected float32 or float64, found 'nonsense'"),
    ({"options": _its(dtype=np.float64, copy=False)}, "dtype: expected float32 with copy=False, .*, found float64"),
    ({"options": {"copy": False}}, "options: expected tandem.TaskOptions, found {'copy': False}"),
    ({"engine": {"restart": True}}, "engine: expected tandem.EngineOptions for a task in C.., found {'restart': True}"),
    (
        {"engine": tandem.WorkerOptions()},
        "engine: expected tandem.EngineOptions for a task in C.., found WorkerOptions.*",
    ),
    ({"num_workers": 2}, "num_workers: expected none, found 2: .* of a task in C..; threads=... is the number .*"),
    ({"options": _its(kwargs={"gravity": 2})}, f"gravity: unknown option: {_OPTIONS}, found 'gravity'"),
    ({"task": "../x:y"}, "task: expected a module's full name before ':', found '../x'"),
    # Pictures.
    ({"frames": 320}, f"frames: {_SIZED}.FrameOptions, found 320"),
    ({"frames": tandem.ImageOptions((8, 8))}, f"frames: {_SIZED}.FrameOptions, found ImageOptions.*"),
    ({"frames": (320,)}, "frames: expected .width, height. or a text such as '320x240', found .320,."),
    ({"frames": (8, 9000)}, "frames.1.: expected an integer in 1 .. 8192, found 9000"),
    ({"frames": tandem.FrameOptions((8, 8), envs=[3])}, "FrameOptions.envs: expected indices in 0 .. 0, found 3"),
    ({"images": 64}, f"images: {_SIZED}.ImageOptions, found 64"),
    ({"images": "8"}, "images: expected .width, height. or a text such as '320x240', found '8'"),
    ({"images": (8, 9000)}, "images.1.: expected an integer in 1 .. 8192, found 9000"),
    (
        {"render_mode": "rgb_array", "frames": (8, 8)},
        "frames: expected None with a render mode, .* found .8, 8.; omit .*",
    ),
    ({"render_mode": "rgb_array", "width": 0}, "width: expected an integer in 1 .. 8192, found 0"),
    ({"render_mode": "rgb_array", "height": 9000}, "height: expected an integer in 1 .. 8192, found 9000"),
    ({"render_mode": "rgb_array", "num_envs": 2000}, "render_mode: expected 1 to 1024 environments, found 2000"),
]


@pytest.mark.parametrize(("given", "text"), _REFUSED, ids=lambda value: str(value)[:40])
def test_an_invalid_argument(given: dict[str, Any], text: str) -> None:
    """The error is InvalidArgument with one line that names keywords, not flags."""
    with pytest.raises(tandem.InvalidArgument) as caught:
        tandem.make_vec(**{"task": "Hopper-v5", **given})
    found = str(caught.value)
    assert re.fullmatch(text.replace("?", r"\?"), found), found
    assert "--" not in re.sub("--assets|--list_tasks|'--task'|`--task`", "", found)


def test_an_unsupported_render_mode() -> None:
    """The error names the supported modes; tests/frames tests the result of `render`."""
    with pytest.raises(tandem.Unsupported, match="^render_mode: expected None or 'rgb_array', found 'human'$"):
        tandem.make_vec("Hopper-v5", render_mode="human")
    with pytest.raises(tandem.Unsupported, match="^render_mode: expected None or 'rgb_array', found array"):
        tandem.make_vec("Hopper-v5", render_mode=np.zeros(2))


@pytest.mark.parametrize("server", ["/no/such/server", "x" * 5000])
def test_a_missing_server(server: str) -> None:
    """The error has the server's path and the next action."""
    with pytest.raises(tandem.EngineStartFailed, match=f"program, found none at {server}; .* omit server$"):
        tandem.make_vec("Hopper-v5", engine=tandem.EngineOptions(server=server))


@pytest.mark.parametrize("argument", ["frames", "images"])
def test_an_engine_that_cannot_draw(argument: str) -> None:
    """The reference server has images for RPCs only."""
    with pytest.raises(tandem.InvalidArgument) as caught:
        tandem.launch_engine(server="engine_adapter/conformance/reference/server", **{argument: (8, 8)})  # type: ignore[arg-type]
    text = f"{argument}: expected a task that can be drawn, found '.*', which cannot; leave it out"
    assert re.fullmatch(text, str(caught.value)), caught.value


@pytest.mark.parametrize("option", ["task", "model"])
def test_a_task_of_a_program_that_has_none(option: str) -> None:
    """The error names the argument, and not only the flag."""
    with pytest.raises(tandem.InvalidArgument, match=f"^{option}: expected none, found 'Ant-v5': .* has no flag"):
        tandem.launch_engine(server="engine_adapter/conformance/reference/server", **{option: "Ant-v5"})  # type: ignore[arg-type]


def test_user_flags_keep_their_names() -> None:
    """The error names the flag: a flag of `launch_engine(flags=...)` has no keyword."""
    with pytest.raises(tandem.InvalidArgument, match="^expected one of the flags --.*, found '--no_such=1'; --help"):
        tandem.launch_engine("Hopper-v5", flags=("--no_such=1",))
    with pytest.raises(tandem.InvalidArgument, match="^--services: expected all, none, or some of .*'radio'$"):
        tandem.launch_engine("Hopper-v5", flags=("--services=radio",))


def test_an_engine_that_cannot_start_gives_its_reason_first(tmp_path: Path) -> None:
    """The error is EngineStartFailed: first MuJoCo's reason, then the log and the command."""
    model = tmp_path / "broken.xml"
    model.write_text("<mujoco><worldbody><geom type='foo'/></worldbody></mujoco>")
    with pytest.raises(tandem.EngineStartFailed) as caught:
        tandem.make_vec(model=model)
    first, *others = str(caught.value).splitlines()
    assert re.fullmatch("the engine ended with exit code 1: model: .*invalid keyword.*", first), first
    assert others[-1].startswith("Its command: ")
    assert caught.value.exit_code == 1 and "invalid keyword" in caught.value.log_tail
