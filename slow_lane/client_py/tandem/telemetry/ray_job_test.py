"""`ray_job follow` without its daemon."""

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tandem.telemetry import ray_job


def test_follow_ends_when_its_daemon_is_gone_though_ray_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next daemon of the folder starts another one."""

    def unreachable(address: str) -> None:
        raise ConnectionError(f"no Ray at {address}")

    submission = ModuleType("ray.job_submission")
    submission.JobSubmissionClient = unreachable  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ray", ModuleType("ray"))
    monkeypatch.setitem(sys.modules, "ray.job_submission", submission)
    monkeypatch.setattr(ray_job, "_ALONE_SECS", 0.2)
    monkeypatch.setattr(ray_job, "_POLL_SECS", 0.01)
    folder = tmp_path / "runs" / "run"
    folder.mkdir(parents=True)
    config = {"resources": {"cpus": 1}, "metadata": {"tandem": {"ray": {"address": "http://head:8265"}}}}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    (folder / "launch.json").write_text(json.dumps({"token": "t"}), "utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="no daemon"):
        ray_job.follow("run", "127.0.0.1:1")
