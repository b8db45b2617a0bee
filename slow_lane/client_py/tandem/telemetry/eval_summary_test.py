"""`EvalSummaryWriter`: its file's content, its place, and what a failure leaves."""

import json
import math
from pathlib import Path

import pytest

from tandem.telemetry import EvalSummaryWriter


def test_the_file_is_of_all_batches(tmp_path: Path) -> None:
    """Nothing else remains in its folder."""
    summary = EvalSummaryWriter(tmp_path / "eval.json")
    summary.add_batch([1, 2.5])
    summary.add_batch(iter([-3.0]))
    assert json.loads((tmp_path / "eval.json").read_text()) == {
        "batch_index": 2,
        "episodes": 3,
        "avg_return": pytest.approx(1 / 6),
        "min_return": -3.0,
        "max_return": 2.5,
    }
    assert [file.name for file in tmp_path.iterdir()] == ["eval.json"]


def test_an_evaluation_that_is_not_finite_goes_on(tmp_path: Path) -> None:
    """Its numbers are null, and the file is JSON."""
    summary = EvalSummaryWriter(tmp_path / "eval.json")
    summary.add_batch([1, math.inf])
    written = json.loads((tmp_path / "eval.json").read_text(), parse_constant=pytest.fail)
    assert [written[name] for name in ("avg_return", "min_return", "max_return")] == [None, 1, None]
    summary.add_batch([math.nan])
    assert json.loads((tmp_path / "eval.json").read_text())["episodes"] == 3


def test_the_default_is_the_folder_of_the_daemons_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a run a path is required."""
    monkeypatch.delenv("TANDEM_RUN_DIR", raising=False)
    with pytest.raises(ValueError, match="TANDEM_RUN_DIR"):
        EvalSummaryWriter()
    monkeypatch.setenv("TANDEM_RUN_DIR", str(tmp_path))
    assert EvalSummaryWriter().path == tmp_path / "eval_summary.json"


def test_refused_and_failed_writes_leave_the_file(tmp_path: Path) -> None:
    """No returns, and a folder that does not exist."""
    summary = EvalSummaryWriter(tmp_path / "eval.json")
    summary.add_batch([1])
    before = (tmp_path / "eval.json").read_text()
    with pytest.raises(ValueError, match="returns: expected numbers"):
        summary.add_batch([])
    assert (tmp_path / "eval.json").read_text() == before
    with pytest.raises(FileNotFoundError):
        EvalSummaryWriter(tmp_path / "none" / "eval.json").add_batch([1])
