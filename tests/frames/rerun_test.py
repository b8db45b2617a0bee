"""`python -m tandem.rerun` saves a run's frames and numbers, and rerun-sdk reads them back.

tools/bazel test //tests/frames:rerun_test
It downloads rerun-sdk, 170 MB, so the target is manual.
"""

import os
import re
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import numpy as np
import pytest
import rerun_bindings  # noqa: F401, the real package

import tandem
from tandem.testing.engines import watchdog  # noqa: F401, a fixture


def _program(*words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "tandem.rerun", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _rows(file: Path) -> dict[str, int]:
    """Returns the number of rows of each entity in a recording."""
    command = [sys.executable, "-m", "rerun", "rrd", "print", str(file)]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "HOME": str(file.parent)}
    shown = subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout
    rows: dict[str, int] = {}
    for count, entity in re.findall(r"^Chunk\(\w+\) with (\d+) rows .* - /(\w+) - ", shown, re.MULTILINE):
        rows[entity] = rows.get(entity, 0) + int(count)
    return rows


@pytest.mark.parametrize("end", ["run", "SIGINT", "SIGTERM"])
def test_each_frame_is_saved_with_its_numbers(end: str, tmp_path: Path) -> None:
    """To the end of the run, or to a signal; the exit code is 0."""
    name, file = uuid.uuid4().hex, tmp_path / "run.rrd"
    config = tandem.fastlane.FastLaneConfig(width=4, height=2, capacity=4, metadata_size=64)
    with tandem.fastlane.FastLaneWriter.create(name, config) as writer:
        writer.publish(np.zeros((2, 4, 3), np.uint8), metadata='{"step": 7}')
        program = _program(name, f"--save={file}")
        until = 0
        while not (file.exists() and until > 3):
            assert program.poll() is None, program.communicate()
            frame = np.full((2, 4, 3), until % 256, np.uint8)
            writer.publish(
                frame, metrics=tandem.fastlane.FastLaneMetrics(last_reward=1.5), metadata='{"step": 8, "episodes": 2}'
            )
            until += file.exists()
            signal.sigtimedwait((), 0.05)
        if end != "run":
            program.send_signal(getattr(signal, end))
            out, errors = program.communicate()
    if end == "run":
        out, errors = program.communicate()
    assert program.returncode == 0, errors
    found = re.search(r"tandem: (\d+) frames in ", out)
    assert found and int(found[1]) > 0, out
    rows = _rows(file)
    assert rows["frame"] == rows["reward"] == rows["return"] == rows["steps_per_second"] == int(found[1])
    assert 0 < rows["episodes"] <= rows["frame"] and "episode_length" not in rows


def test_a_missing_run_and_a_folder_as_file_are_refused(tmp_path: Path) -> None:
    """With exit code 1 and what was expected; wrong flags with 2."""
    for words, code, text in ((["nothing"], 1, "nothing"), (["nothing", "--quality=0"], 2, "1 to 95")):
        program = _program(*words)
        _, errors = program.communicate()
        assert program.returncode == code and text in errors, errors
    name = uuid.uuid4().hex
    config = tandem.fastlane.FastLaneConfig(width=4, height=2, capacity=4)
    with tandem.fastlane.FastLaneWriter.create(name, config):
        program = _program(name, f"--save={tmp_path}")
        _, errors = program.communicate()
        assert program.returncode == 1 and str(tmp_path) in errors
