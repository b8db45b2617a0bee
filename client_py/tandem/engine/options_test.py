"""The groups of options: accepted values, and the error texts of refused ones."""

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tandem
from tandem.engine.options import frame_flags, image_flags, shown_envs

_FRAMES = tandem.FrameOptions
_IMAGES = tandem.ImageOptions
_ENGINE = tandem.EngineOptions
_WORKERS = tandem.WorkerOptions
_TASK = tandem.TaskOptions
_SIZE = r"expected \(width, height\) or a text such as '320x240', found "


@pytest.mark.parametrize("size", [(320, 240), [320, 240], "320x240", (np.int64(320), np.uint8(240))])
def test_a_size_has_several_forms(size: Any) -> None:
    """A tuple, a list, a text and NumPy integers are equal sizes."""
    assert _FRAMES(size) == _FRAMES(size=(320, 240))
    assert _IMAGES(size).size == (320, 240)


def test_values_become_builtins_and_groups_compare() -> None:
    """NumPy values are converted, so that equal groups are equal and hashable."""
    frames = _FRAMES((8, 8), envs=np.array([0, 2]), hz=np.float32(30), effects=["shadows"])  # type: ignore[arg-type]
    assert frames == _FRAMES("8x8", envs=(0, 2), hz=30, effects=("shadows",))
    assert len({frames, _FRAMES((8, 8)), _IMAGES((8, 8)), _ENGINE(), _ENGINE(restart=np.False_)}) == 4  # type: ignore[arg-type]
    assert _ENGINE(server=Path("server"), timeout=math.inf).server == Path("server")
    assert _ENGINE(flags=["--a=1", Path("b")]).flags == ("--a=1", "b")  # type: ignore[list-item]


@pytest.mark.parametrize("group", [_FRAMES((8, 8)), _IMAGES((8, 8)), _ENGINE(), _WORKERS(), _TASK()])
def test_a_group_is_frozen(group: Any) -> None:
    """`dataclasses.replace` creates another group and checks its values as well."""
    (name, *_) = group.__dataclass_fields__
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(group, name, None)
    with pytest.raises(tandem.InvalidArgument):
        dataclasses.replace(group, **{name: "nonsense"})


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: _FRAMES("320"), f"FrameOptions.size: {_SIZE}'320'"),
        (lambda: _FRAMES((320,)), rf"FrameOptions.size: {_SIZE}\(320,\)"),  # type: ignore[arg-type]
        (lambda: _FRAMES(320), f"FrameOptions.size: {_SIZE}320"),  # type: ignore[arg-type]
        (lambda: _FRAMES((0, 8)), r"FrameOptions.size\[0\]: expected an integer in 1 .. 8192, found 0"),
        (lambda: _FRAMES("8x0"), r"FrameOptions.size\[1\]: expected an integer in 1 .. 8192, found 0"),
        (lambda: _FRAMES((9000, 8)), r"FrameOptions.size\[0\]: expected an integer in 1 .. 8192, found 9000"),
        (lambda: _FRAMES((8, True)), r"FrameOptions.size\[1\]: expected an integer in 1 .. 8192, found True"),
        (lambda: _FRAMES((8, 2.5)), r"FrameOptions.size\[1\]: expected an integer .* found 2.5"),  # type: ignore[arg-type]
        (lambda: _FRAMES((8, 8), envs=1), "FrameOptions.envs: expected indices .*'all' or None, found 1"),  # type: ignore[arg-type]
        (lambda: _FRAMES((8, 8), envs=np.array(3)), "FrameOptions.envs: expected indices .* found array.*"),  # type: ignore[arg-type]
        (lambda: _FRAMES((8, 8), envs=b"x"), "FrameOptions.envs: expected indices .* found b'x'"),
        (lambda: _ENGINE(flags=np.array(3)), "EngineOptions.flags: expected texts .* found array.*"),  # type: ignore[arg-type]
        (lambda: _ENGINE(flags={"a": 1}), "EngineOptions.flags: expected texts .* found {'a': 1}"),  # type: ignore[arg-type]
        (lambda: _TASK(max_episode_steps=np.array([1, 2])), ".*steps: expected an integer in .* found array.*"),  # type: ignore[arg-type]
        (lambda: _FRAMES((8, 8), envs=[]), r"FrameOptions.envs: expected indices .* found \[\]"),
        (lambda: _FRAMES((8, 8), envs="first"), "FrameOptions.envs: expected indices .* found 'first'"),  # type: ignore[arg-type]
        (lambda: _FRAMES((8, 8), envs=[0, -1]), r"FrameOptions.envs\[1\]: expected an integer in 0 .. .* found -1"),
        (
            lambda: _FRAMES((8, 8), priority="all"),  # type: ignore[arg-type]
            "FrameOptions.priority: expected one of 'steps', 'complete', found 'all'",
        ),
        (lambda: _FRAMES((8, 8), hz=-1), "FrameOptions.hz: expected a rate of 0 to 1000 Hz, found -1"),
        (lambda: _FRAMES((8, 8), hz=math.nan), "FrameOptions.hz: expected a rate of 0 to 1000 Hz, found nan"),
        (lambda: _FRAMES((8, 8), hz=2000), "FrameOptions.hz: expected a rate of 0 to 1000 Hz, found 2000"),
        (lambda: _FRAMES((8, 8), slots=0), "FrameOptions.slots: expected an integer in 1 .. .* found 0"),
        (lambda: _FRAMES((8, 8), slots=2000), "FrameOptions.slots: expected an integer in 1 .. 1024, found 2000"),
        (lambda: _FRAMES((8, 8), effects="fog"), "FrameOptions.effects: expected a list of some of .* found 'fog'"),  # type: ignore[arg-type]
        (lambda: _FRAMES((8, 8), effects=["fog"]), "FrameOptions.effects: expected one of 'shadows', .* found 'fog'"),  # type: ignore[list-item]
        (lambda: _FRAMES((8, 8), camera=1), "FrameOptions.camera: expected a str .*, found 1"),  # type: ignore[arg-type]
        (lambda: _IMAGES("64"), f"ImageOptions.size: {_SIZE}'64'"),
        (lambda: _IMAGES("64x9000"), r"ImageOptions.size\[1\]: expected an integer in 1 .. 8192, found 9000"),
        (lambda: _IMAGES((8, 8), camera=3), "ImageOptions.camera: expected a str .* found 3"),  # type: ignore[arg-type]
        (lambda: _IMAGES((8, 8), camera="a\0b"), r"ImageOptions.camera: expected a str .* found 'a\\x00b'"),
        (lambda: _IMAGES((8, 8), camera="a,b"), "ImageOptions.camera: .* name without ',', found 'a,b'"),
        (lambda: _IMAGES((8, 8), camera=["a", "b,c"]), r"ImageOptions.camera\['b,c'\]: .* without ',', found 'b,c'"),
        (lambda: _IMAGES((8, 8), camera=["a", 3]), "ImageOptions.camera: expected a camera's name, a list .*"),  # type: ignore[list-item]
        (lambda: _IMAGES((8, 8), camera=["a", "a"]), "ImageOptions.camera: .* different names, .*"),
        (lambda: _IMAGES((8, 8), camera=[]), r"ImageOptions.camera: expected .* found \[\]"),
        (lambda: _IMAGES((8, 8), camera={"state": "a"}), "ImageOptions.camera: .* other than 'state' to names, .*"),
        (lambda: _IMAGES((8, 8), camera={"a": 3}), r"ImageOptions.camera\['a'\]: expected a str .* found 3"),  # type: ignore[dict-item]
        (lambda: _IMAGES((8, 8), in_observation=1), "ImageOptions.in_observation: expected a bool, found 1"),  # type: ignore[arg-type]
        (lambda: _IMAGES((8, 8), effects=7), "ImageOptions.effects: expected a list of some of .* found 7"),  # type: ignore[arg-type]
        (lambda: _ENGINE(restart="yes"), "EngineOptions.restart: expected a bool, found 'yes'"),  # type: ignore[arg-type]
        (lambda: _ENGINE(timeout="soon"), "EngineOptions.timeout: expected seconds, 0 or more, found 'soon'"),  # type: ignore[arg-type]
        (lambda: _ENGINE(start_timeout=-1), "EngineOptions.start_timeout: expected seconds, 0 or more, found -1"),
        (lambda: _ENGINE(wait="fast"), "EngineOptions.wait: expected one of 'adaptive', 'spin', 'block', found 'fast'"),  # type: ignore[arg-type]
        (lambda: _WORKERS(call_timeout=-1), "WorkerOptions.call_timeout: expected seconds, 0 or more, found -1"),
        (lambda: _ENGINE(server=7), "EngineOptions.server: expected a path, found 7"),  # type: ignore[arg-type]
        (lambda: _ENGINE(flags="--a=1"), r"EngineOptions.flags: expected texts such as .*, found '--a=1'"),
        (lambda: _ENGINE(flags=["--a=1", 2]), r"EngineOptions.flags: expected texts .* found \['--a=1', 2\]"),  # type: ignore[list-item]
    ],
)
def test_a_group_refuses_invalid_values(make: Any, text: str) -> None:
    """The message has the field, the expected value and the found value."""
    with pytest.raises(tandem.InvalidArgument, match=f"^{text}$"):
        make()


def test_cameras_have_keys_and_flags() -> None:
    """One is "image"; of several each has a key; None is the default camera. The group stays hashable."""
    for camera, keys, flag in (
        (None, ("image",), ""),
        ("track", ("image",), "track"),
        (["a", "b"], ("a", "b"), "a,b"),
        ({"front": "a", "side": None}, ("front", "side"), "a,"),
    ):
        options = _IMAGES((8, 6), camera=camera)
        assert options.keys == keys and isinstance(hash(options), int)
        assert image_flags(options) == ["--images=8x6", f"--image_camera={flag}", "--image_effects=all"]
        assert dataclasses.replace(options, in_observation=False).keys == keys


def test_shown_environments_are_the_variables_unless_they_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """MOSAIC_FASTLANE_* choose among the environments; "off": no frames."""
    assert list(shown_envs(_FRAMES((8, 8)), 6) or ()) == [0, 1, 2, 3]
    monkeypatch.setenv("MOSAIC_FASTLANE_GRID_LIMIT", "5")
    assert list(shown_envs(_FRAMES((8, 8)), 6) or ()) == [0, 1, 2, 3, 4]
    monkeypatch.setenv("MOSAIC_FASTLANE_VIDEO_MODE", "single")
    monkeypatch.setenv("MOSAIC_FASTLANE_SLOT", "2")
    assert "--frame_envs=2" in frame_flags(_FRAMES((8, 8)), 6)
    assert "--frame_envs=all" in frame_flags(_FRAMES((8, 8), envs="all"), 6)
    with pytest.raises(tandem.InvalidArgument, match="MOSAIC_FASTLANE_SLOT: expected one of 2 environments, found 2"):
        frame_flags(_FRAMES((8, 8)), 2)
    monkeypatch.setenv("MOSAIC_FASTLANE_VIDEO_MODE", "off")
    assert frame_flags(_FRAMES((8, 8)), 6) == []
