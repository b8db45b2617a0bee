"""The environment variables by which a launcher, such as the daemon, tells a worker what to publish."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tandem.arguments import integer
from tandem.errors import InvalidArgument

_MODES = ("single", "grid", "off")
_PREFIX = "MOSAIC_FASTLANE_"
# MOSAIC's own program uses this prefix.
_OTHER_PREFIX = "GYM_GUI_FASTLANE_"
# The daemon sets them to the worker's run and to the folder of its files.
RUN_ID_VARIABLE = "TANDEM_RUN_ID"
RUN_DIR_VARIABLE = "TANDEM_RUN_DIR"


def apply_fastlane_environment(
    env: dict[str, Any], *, fastlane_only: bool, fastlane_slot: int, video_mode: str = "SINGLE", grid_limit: int = 4
) -> dict[str, Any]:
    """Writes the variables into the environment of a worker that is about to be launched, and returns it.

    Args:
      env: The environment, such as a copy of os.environ; changed.
      fastlane_only: Whether the worker prints no steps.
      fastlane_slot: The environment of a vector that is shown, from 0.
      video_mode: "single", "grid" or "off", in upper or lower case.
      grid_limit: The most environments that a grid shows.

    Raises:
      InvalidArgument: An invalid mode or number (also a ValueError).

    >>> apply_fastlane_environment({}, fastlane_only=True, fastlane_slot=2)["MOSAIC_FASTLANE_VIDEO_MODE"]
    'single'
    """
    variables = {
        "ONLY": "1" if fastlane_only else "0",
        "SLOT": str(integer("fastlane_slot", fastlane_slot, 0)),
        "VIDEO_MODE": _mode(video_mode),
        "GRID_LIMIT": str(integer("grid_limit", grid_limit, 1)),
    }
    env.update((_PREFIX + name, value) for name, value in variables.items())
    return env


@dataclass(frozen=True)
class WorkerSettings:
    """The settings that a worker reads from the variables.

    `fastlane_only`: the worker prints no steps, as viewers show frames instead. `slot` is the environment of a vector
    that is shown in mode "single". `video_mode` is "single", "grid" or "off"; None: not set. `grid_limit` is the most
    environments that a grid shows.
    """

    fastlane_only: bool = False
    slot: int = 0
    video_mode: str | None = None
    grid_limit: int = 4

    @staticmethod
    def read(env: Mapping[str, str] = os.environ) -> "WorkerSettings":
        """Reads the variables, MOSAIC_FASTLANE_* before GYM_GUI_FASTLANE_*; a variable that is not set has its default.

        Raises:
          InvalidArgument: An invalid value (also a ValueError).
        """

        def value(name: str) -> str:
            return (env.get(_PREFIX + name) or env.get(_OTHER_PREFIX + name) or "").strip()

        def number(name: str, least: int, default: int) -> int:
            text = value(name)
            if not text:
                return default
            if not text.isdecimal() or int(text) < least:
                raise InvalidArgument(f"{_PREFIX}{name}: expected a number from {least}, found {text!r}")
            return int(text)

        mode = value("VIDEO_MODE")
        return WorkerSettings(
            fastlane_only=value("ONLY").lower() in ("1", "true", "yes", "on"),
            slot=number("SLOT", 0, 0),
            video_mode=_mode(mode) if mode else None,
            grid_limit=number("GRID_LIMIT", 1, 4),
        )

    def shown(self, num_envs: int) -> range:
        """Returns the indices of the environments of a vector that are shown; empty: mode "off".

        Raises:
          InvalidArgument: There is no environment `slot`.
        """
        if self.video_mode == "off":
            return range(0)
        if self.video_mode != "single":
            return range(min(self.grid_limit, num_envs))
        if self.slot >= num_envs:
            raise InvalidArgument(f"{_PREFIX}SLOT: expected one of {num_envs} environments, found {self.slot}")
        return range(self.slot, self.slot + 1)


def _mode(text: str) -> str:
    if text.lower() not in _MODES:
        raise InvalidArgument(f"video_mode: expected one of {', '.join(_MODES)}, found {text!r}")
    return text.lower()
