"""`record_video`: films of tasks in C++, in Python and by a VecEnv's images; what cannot be filmed."""

import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import tandem
from tandem.testing.engines import watchdog  # noqa: F401, the fixture


def _facts(film: Path) -> list[str]:
    """Returns width, height and number of the frames."""
    words = "-v error -count_frames -select_streams v -show_entries stream=width,height,nb_read_frames -of csv=p=0"
    return subprocess.check_output(["ffprobe", *words.split(), film], text=True).strip().split(",")


@pytest.mark.parametrize(
    ("task", "options", "size"),
    [
        ("HalfCheetah-v5", {"frames": (64, 48)}, ["64", "96"]),  # two environments in a frame
        ("CartPole-v1", {"backend": "python", "render_mode": "rgb_array"}, ["1200", "400"]),
    ],
)
def test_each_step_is_a_frame(task: str, options: dict[str, Any], size: list[str], tmp_path: Path) -> None:
    """The film has all steps, by the policy's actions, and is complete at once."""
    film = tmp_path / "film.mp4"
    film.write_text("an older film")
    seen: list[Any] = []
    with closing(tandem.make_vec(task, 2, **options)) as envs:
        wrapped = gymnasium.wrappers.vector.RecordEpisodeStatistics(envs)

        def policy(obs: Any) -> Any:
            seen.append(obs)
            return envs.action_space.sample()

        assert tandem.record_video(wrapped, policy, film, seconds=1, fps=12, seed=1) == 12
    assert len(seen) == 11
    assert _facts(film) == [*size, "12"]
    assert list(tmp_path.iterdir()) == [film]


def test_what_cannot_be_filmed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Environments without pictures, a machine without ffmpeg, an ffmpeg that fails: nothing is left."""

    def film(envs: Any, **options: Any) -> None:
        tandem.record_video(envs, lambda obs: np.zeros(1, np.int64), tmp_path / "film.mp4", seconds=0.1, **options)

    with closing(tandem.make_vec("CartPole-v1", 1)) as envs, pytest.raises(tandem.Unsupported, match="frames="):
        film(envs)
    with closing(tandem.make_vec("CartPole-v1", 1, frames=(64, 48))) as envs:
        with pytest.raises(tandem.InvalidArgument, match="fps"):
            film(envs, fps=-1)
        program = tmp_path.parent / "ffmpeg"
        program.write_text("#!/bin/sh\necho no such codec >&2\nexit 1\n")
        program.chmod(0o755)
        monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", str(program))
        with pytest.raises(tandem.SystemCallFailed, match="no such codec"):
            film(envs)
        monkeypatch.delenv("IMAGEIO_FFMPEG_EXE")
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(tandem.Unsupported, match="install Debian's package ffmpeg"):
            film(envs)
    assert not list(tmp_path.iterdir())
