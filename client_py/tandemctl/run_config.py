"""The TrainRunConfig of `tandemctl submit`: made from the command line, or read from a file."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from tandem.printable import printable
from tandemctl.command_line import Options
from tandemctl.output import Failed

_LONGEST_NAME = 120  # of a TrainRunConfig, characters
_MOST_CONFIG_BYTES = 4 << 20  # as the daemon's limit

# A configuration has to ask for some; the daemon counts GPUs only.
_CPUS, _MEMORY_MB = 1, 256


def run_config(options: Options, current_folder: Callable[[], Path]) -> str:
    """Makes a configuration.

    Args:
      options: Of a command line with a program.
      current_folder: Returns the folder where the worker starts.

    Returns:
      JSON.

    Raises:
      Failed: There is no such program, or no current folder.
    """
    assert options.program
    try:
        folder = current_folder()
    except OSError as error:
        raise Failed(f"expected a current folder, found: {error.strerror}") from error
    program, *arguments = options.program
    path = find_program(program, os.environ.get("PATH", ""))
    default_name = printable(" ".join([program.rpartition("/")[2], *arguments]))[:_LONGEST_NAME] or "run"
    tandem = {"working_directory": _text(str(folder)), "step_stride": options.step_stride}
    schedule = {"max_steps": options.max_steps, "max_duration_seconds": options.max_duration}
    config = {
        "run_name": options.name or default_name,
        "entry_point": _text(path),
        "arguments": arguments,
        "environment": dict(options.env),
        "resources": {
            "cpus": _CPUS,
            "memory_mb": _MEMORY_MB,
            "gpus": {"requested": options.gpus, "mandatory": options.gpus > 0},
        },
        "artifacts": {},
        "metadata": {"tandem": {name: value for name, value in tandem.items() if value is not None}},
        "schedule": {name: value for name, value in schedule.items() if value is not None},
    }
    return json.dumps(config)


def find_program(name: str, path: str) -> str:
    """Finds a program, since the daemon's PATH may be another one: a virtual environment's python is not the system's.

    Args:
      name: Its name, or its path.
      path: Folders with colons between.

    Returns:
      A name with a slash as it is; else the absolute path of the first file of that name that may be executed.

    Raises:
      Failed: There is none.
    """
    if "/" in name:
        return name
    found = shutil.which(name, path=path)
    if found is None:
        raise Failed(
            f"PROGRAM: expected a program on PATH, found none named '{name}'; one of the current folder is ./{name}; "
            f"PATH is {path}"
        )
    return os.path.abspath(found)


def read_config(file: str) -> str:
    """Reads a configuration.

    Args:
      file: Its path; "-": standard input.

    Returns:
      JSON, perhaps.

    Raises:
      Failed: It cannot be read, is too large, or is no UTF-8: gRPC would name neither the file nor the place.
    """
    shown = "standard input" if file == "-" else file
    try:
        with open(0 if file == "-" else file, "rb", closefd=file != "-") as opened:
            content = opened.read(_MOST_CONFIG_BYTES + 1)
    except FileNotFoundError as error:
        raise Failed(f"--config: expected a file, found none at {shown}") from error
    except OSError as error:
        raise Failed(f"--config: expected a file that can be read, found: {error.strerror}: {shown}") from error
    if len(content) > _MOST_CONFIG_BYTES:
        raise Failed(f"--config: expected at most {_MOST_CONFIG_BYTES} bytes, found more in {shown}")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise Failed(
            f"--config: expected UTF-8, found the byte 0x{content[error.start]:02x} at offset {error.start} of "
            f"{shown}\nNext: save it as UTF-8; from Latin 1: iconv -f LATIN1 -t UTF-8"
        ) from error


def _text(path: str) -> str:
    """What is no UTF-8 becomes U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")
