"""`python -m tandem.examples`: the list, copies, and refusals."""

from pathlib import Path

import pytest

from tandem.examples.__main__ import main, programs
from tandem.testing.engines import run_python

_SOURCES = Path("client_py/examples")


def test_lists_each_program_with_the_first_line_of_its_docstring(capsys: pytest.CaptureFixture[str]) -> None:
    """Of engines, trainers and frameworks; tests are no examples."""
    assert main([]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    files = {file.stem: file for file in _SOURCES.rglob("*.py") if not file.stem.endswith("_test")}
    assert lines.keys() == files.keys() >= {"pendulum_engine", "train_sb3"}
    for name, file in files.items():
        assert file.read_text("utf-8").startswith(f'"""{lines[name]}')


def test_copies_a_program_that_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The name may have its ending."""
    assert main(["pendulum_engine", str(tmp_path)]) == 0
    assert main(["train_ars.py", str(tmp_path)]) == 0
    assert capsys.readouterr().out.split() == [f"{tmp_path}/pendulum_engine.py", f"{tmp_path}/train_ars.py"]
    assert (tmp_path / "pendulum_engine.py").read_bytes() == (_SOURCES / "pendulum_engine.py").read_bytes()
    assert "--num_envs" in run_python(tmp_path / "train_ars.py", "--help")


def test_overwrites_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file stays as it is."""
    mine = tmp_path / "pendulum_engine.py"
    mine.write_text("mine")
    assert main(["pendulum_engine", str(tmp_path)]) == 1
    assert f"expected no file {mine}" in capsys.readouterr().err
    assert mine.read_text() == "mine"


def test_refuses_unknown_names_and_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the names that exist, and the folder."""
    with pytest.raises(SystemExit) as ended:
        main(["../examples", str(tmp_path)])
    assert ended.value.code == 2
    assert f"expected one of {', '.join(programs())}" in " ".join(capsys.readouterr().err.split())
    assert main(["pendulum_engine", str(tmp_path / "none")]) == 1
    assert "expected a FOLDER" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
