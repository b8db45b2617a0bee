"""`record_video`: a film of a policy, with every frame, by the program ffmpeg."""

import contextlib
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from tandem import arguments
from tandem.arguments import rate, shown
from tandem.errors import InvalidArgument, SystemCallFailed, Unsupported

_DEFAULT_FPS = 30.0


def record_video(
    envs: Any,
    policy: Callable[[Any], Any],
    path: str | os.PathLike[str],
    *,
    seconds: float = 10.0,
    fps: float | None = None,
    seed: int | None = None,
) -> int:
    """Resets the environments, steps them by a policy, and draws each step, whatever it costs.

    Args:
      envs: What `make_vec` returned, also wrapped, or a VecEnv such as `make_vec(...).as_sb3()`. With frames
        (`make_vec(..., frames=...)`) the film has what viewers see; otherwise what `render` returns, which needs
        `render_mode="rgb_array"`, side by side.
      policy: Returns the actions for a batch of observations, such as `lambda obs: model.predict(obs)[0]`.
      path: The film's file, such as "walk.mp4"; replaced.
      seconds: Length of the film, of simulated time.
      fps: Steps in a second of the film; None: metadata["render_fps"] of the environments, or 30.
      seed: As for `reset`.

    Returns:
      The number of frames.

    Raises:
      Unsupported: There is no ffmpeg, or the environments cannot be drawn.
      SystemCallFailed: ffmpeg has failed; the text has its last line. Nothing is at `path` then.
      TandemError: As `reset` and `step`.
    """
    target = arguments.file_path("path", path)
    length = arguments.seconds("seconds", seconds)
    found = envs.metadata.get("render_fps") if fps is None else fps
    speed = rate("fps", _DEFAULT_FPS if found is None else found, most=1000)
    is_vec_env = not isinstance(envs, VectorEnv)
    if is_vec_env and seed is not None:
        envs.seed(seed)
    obs = envs.reset() if is_vec_env else envs.reset(seed=seed)[0]
    count = max(1, math.ceil(length * speed))
    with tempfile.TemporaryDirectory(dir=os.path.dirname(target) or ".", prefix=".tandem-film-") as folder:
        film = os.path.join(folder, f"film{os.path.splitext(target)[1] or '.mp4'}")
        picture = _picture(envs)
        with _Film(film, speed, picture.shape) as add:
            add(picture)
            for _ in range(count - 1):
                obs = envs.step(policy(obs))[0]
                add(_picture(envs))
        os.replace(film, target)
    return count


def _picture(envs: Any) -> NDArray[np.uint8]:
    """Returns uint8[height, width, 3] of the current state."""
    if isinstance(envs, VectorEnv):
        client = getattr(envs.unwrapped, "client", None)
        if client is not None and client.has_frames:
            drawn: NDArray[np.uint8] = client.drawn_frame()[0]
            return drawn
        images = envs.render()
    else:
        images = envs.get_images()
    if not images or any(image is None for image in images):
        raise Unsupported(
            'record_video: expected environments with frames, or with render_mode="rgb_array", found neither; next: '
            "make_vec(..., frames=(480, 480))"
        )
    return np.concatenate([np.asarray(image, np.uint8) for image in images], axis=1)


class _Film:
    """A process of ffmpeg that gets frames of one size."""

    def __init__(self, path: str, fps: float, shape: tuple[int, ...]) -> None:
        program = os.environ.get("IMAGEIO_FFMPEG_EXE") or shutil.which("ffmpeg")
        if program is None:
            raise Unsupported(
                "record_video: expected the program ffmpeg, found neither the variable IMAGEIO_FFMPEG_EXE nor ffmpeg "
                "in PATH; install Debian's package ffmpeg, or pip's imageio-ffmpeg"
            )
        self._shape = shape
        height, width = shape[:2]
        # Both sides of the common pixel format are even.
        words = f"-y -loglevel error -f rawvideo -pix_fmt rgb24 -s {width}x{height} -r {fps} -i - -pix_fmt yuv420p"
        evened = ["-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", path]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # until __exit__
        self._process = subprocess.Popen([program, *words.split(), *evened], stdin=subprocess.PIPE, stderr=self._errors)

    def __enter__(self) -> Callable[[NDArray[np.uint8]], None]:
        return self._add

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self._process.kill()
        assert self._process.stdin is not None
        with self._errors:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            if self._process.wait() != 0 and kind is None:
                raise self._failed()

    def _add(self, picture: NDArray[np.uint8]) -> None:
        if picture.shape != self._shape:
            raise InvalidArgument(f"record_video: expected images of {self._shape}, found {shown(picture.shape)}")
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(picture.tobytes())
        except BrokenPipeError:
            raise self._failed() from None

    def _failed(self) -> SystemCallFailed:
        self._process.wait()
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip().splitlines()
        return SystemCallFailed(f"record_video: ffmpeg failed: {said[-1] if said else 'without a text'}")
