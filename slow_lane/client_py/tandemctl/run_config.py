"""The TrainRunConfig of `tandemctl submit`: made from the command line, or read from a file."""

import argparse
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

from tandem.printable import printable
from tandemctl.output import Failed
from tandemctl.sweeps import Parameters, filled, label

_LONGEST_NAME = 120  # of a TrainRunConfig, characters
_MOST_CONFIG_BYTES = 4 << 20  # as the daemon's limit

# A configuration has to ask for some.
_CPUS, _MEMORY_MB = 1, 256


def run_config(
    options: argparse.Namespace, current_folder: Callable[[], Path], parameters: Parameters, sweep: str = ""
) -> str:
    """Returns the configuration of a command line with a program, as JSON; the worker starts in the current folder.

    `parameters` are those of one run of a sweep; `sweep` names it.
    """
    try:
        folder = current_folder()
    except OSError as error:
        raise Failed(f"expected a current folder, found: {error.strerror}") from error
    program, *arguments = filled(options.program, parameters)
    default_name = printable(" ".join([program.rpartition("/")[2], *arguments]))[:_LONGEST_NAME] or "run"
    tandem = {
        "working_directory": _text(str(folder)),
        "step_stride": options.step_stride,
        "priority": options.priority,
        "restart": None if options.restart is None else {"max": options.restart},
        "fast_lane": {"video_mode": "grid"} if options.frames else None,
        "parameters": parameters or None,
        "sweep": sweep or None,
    }
    schedule = {"max_steps": options.max_steps, "max_duration_seconds": options.max_duration}
    names, values = [name for name, _ in options.env], [value for _, value in options.env]
    gpus = {"requested": options.gpus or 0, "mandatory": bool(options.gpus)}
    config = {
        "run_name": f"{options.name} {label(parameters)}".strip()[:_LONGEST_NAME] if options.name else default_name,
        "entry_point": _text(find_program(program, os.environ.get("PATH", ""))),
        "arguments": arguments,
        "environment": dict(zip(names, filled(values, parameters), strict=True)),
        "resources": {"cpus": options.cpus or _CPUS, "memory_mb": _MEMORY_MB, "gpus": gpus},
        "artifacts": {},
        "metadata": {"tandem": {name: value for name, value in tandem.items() if value is not None}},
        "schedule": {name: value for name, value in schedule.items() if value is not None},
    }
    return json.dumps(config)


def find_program(name: str, path: str) -> str:
    """Returns a name with a slash as it is, else the absolute path of the first such program in the folders of `path`.

    The daemon's PATH may be another one, and a virtual environment's python is not the system's.
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
    """Reads a configuration from a file, or "-": from standard input. Not as UTF-8, gRPC could not send it."""
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
        found = f"the byte 0x{content[error.start]:02x} at offset {error.start} of {shown}"
        next_step = "save it as UTF-8; from Latin 1: iconv -f LATIN1 -t UTF-8"
        raise Failed(f"--config: expected UTF-8, found {found}\nNext: {next_step}") from error


def _text(path: str) -> str:
    """What is no UTF-8 becomes U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")
