"""The configuration of a run, from a command line or from a file."""

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tandemctl.command_line import parse
from tandemctl.output import Failed
from tandemctl.run_config import find_program, read_config, run_config


def _config(*words: str, folder: str = "/home/me", parameters: Any = None, sweep: str = "") -> Any:
    return json.loads(run_config(parse(["submit", *words], ""), lambda: Path(folder), parameters or {}, sweep))


def test_config_has_each_given_option() -> None:
    """Absent options are left to the daemon's defaults, which slow_lane/testing/tandemctl_test.py checks."""
    flags = "--name ant --gpus 2 --env A=1 --env B= --env A=2 --max_steps 9 --max_duration 90m --step_stride 3"
    assert _config(*flags.split(), "--", "/bin/python", "train.py", "--seed", "3") == {
        "run_name": "ant",
        "entry_point": "/bin/python",
        "arguments": ["train.py", "--seed", "3"],
        "environment": {"A": "2", "B": ""},
        "resources": {"cpus": 1, "memory_mb": 256, "gpus": {"requested": 2, "mandatory": True}},
        "artifacts": {},
        "metadata": {"tandem": {"working_directory": "/home/me", "step_stride": 3}},
        "schedule": {"max_steps": 9, "max_duration_seconds": 5400},
    }
    job = _config(*"--cpus 3 --priority -1 --restart 2 --frames -- ./p".split())
    assert job["resources"]["cpus"] == 3
    assert job["metadata"]["tandem"] == {
        "working_directory": "/home/me",
        "priority": -1,
        "restart": {"max": 2},
        "fast_lane": {"video_mode": "grid"},
    }
    least = _config("--", "./p", folder="/home/\udcff")
    assert least["resources"]["gpus"] == {"requested": 0, "mandatory": False}
    assert (least["schedule"], least["metadata"]) == ({}, {"tandem": {"working_directory": "/home/\ufffd"}})


def test_a_run_of_a_sweep_has_its_parameters() -> None:
    """In its words and variables, its name, and its metadata."""
    words = ["--name", "ant", "--env", "SEED={seed}", "--", "/bin/python", "train.py", "--lr={lr}", "{other}"]
    config = _config(*words, parameters={"lr": 3e-4, "seed": 7}, sweep="5f")
    assert config["run_name"] == "ant lr=0.0003 seed=7"
    assert config["arguments"] == ["train.py", "--lr=0.0003", "{other}"]
    assert config["environment"] == {"SEED": "7"}
    tandem = config["metadata"]["tandem"]
    assert (tandem["parameters"], tandem["sweep"]) == ({"lr": 3e-4, "seed": 7}, "5f")


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["/usr/bin/python", "train.py"], "python train.py"),
        (["./sh", "-c", "a\nb"], "sh -c a\\x0ab"),
        (["./p", "x" * 500], "p " + "x" * 118),
    ],
)
def test_a_run_is_named_after_its_program(words: list[str], name: str) -> None:
    """The name has no folder, is printable, and is cut to the longest permitted length."""
    assert _config("--", *words)["run_name"] == name


def test_a_program_is_the_first_executable_on_the_path(tmp_path: Path) -> None:
    """The result is an absolute path; a name with a slash is kept."""
    for name in "abc":
        (tmp_path / name).mkdir()
        (tmp_path / name / "train").touch(0o600 if name == "a" else 0o700)
    path = os.pathsep.join(str(tmp_path / name) for name in "abc")
    assert find_program("train", path) == str(tmp_path / "b" / "train")
    assert find_program("./train", "") == "./train"
    for name, folders in (("nonesuch", path), ("b", str(tmp_path))):
        with pytest.raises(Failed, match=f"none named '{name}'"):
            find_program(name, folders)


def test_a_file_is_read_or_refused_with_the_position(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuses invalid UTF-8, a file that is too large, and a missing file."""
    file = tmp_path / "run.json"
    file.write_text('{"caf\u00e9": 1}', "utf-8")
    assert read_config(str(file)) == '{"caf\u00e9": 1}'
    file.write_bytes(b'{"caf\xc3\xa9": "caf\xe9"}')
    with pytest.raises(Failed, match=r"0xe9 at offset 14 of .*run\.json\nNext: "):
        read_config(str(file))
    file.write_bytes(b" " * ((4 << 20) + 1))
    with pytest.raises(Failed, match="at most 4194304 bytes"):
        read_config(str(file))
    for path, reason in ((tmp_path / "none", "found none at"), (tmp_path, "Is a directory")):
        with pytest.raises(Failed, match=reason):
            read_config(str(path))
    monkeypatch.setattr("builtins.open", lambda *_, **__: io.BytesIO(b"\xff"))
    with pytest.raises(Failed, match="offset 0 of standard input"):
        read_config("-")
