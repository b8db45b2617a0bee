"""TrainerClient accepts and refuses the same access tokens as the daemon."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import tandem
from tandem.telemetry.token_file import read_token

_SAMPLES = json.loads(Path("program/testdata/tokens.json").read_text("utf-8"))


@pytest.fixture(name="token_file")
def token_file_fixture(tmp_path: Path) -> Path:
    """Creates an empty file with mode 600."""
    file = tmp_path / "token"
    file.touch(0o600)
    return file


@pytest.mark.parametrize("sample", _SAMPLES, ids=lambda sample: sample["name"])
def test_every_sample_is_accepted_or_refused_as_in_the_table(token_file: Path, sample: dict[str, Any]) -> None:
    """program/token_file_test.cc reads the same samples."""
    token_file.write_bytes(sample["content"].encode() * sample["times"])
    if sample["token"] is not None:
        assert read_token(token_file) == sample["token"] * sample["times"]
        return
    with pytest.raises(tandem.InvalidArgument, match="expected a token of 16 to 512"):
        read_token(token_file)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_file_with_access_for_other_users_is_refused_with_the_chmod_command(token_file: Path, mode: int) -> None:
    """The file's content does not matter."""
    token_file.chmod(mode)
    with pytest.raises(tandem.AccessDenied, match=f"chmod 600 {token_file}"):
        read_token(token_file)


def test_paths_other_than_files_are_refused_at_once(tmp_path: Path) -> None:
    """A folder, a device, and a pipe without a writer are refused."""
    os.mkfifo(tmp_path / "pipe", 0o600)
    for path in (tmp_path, Path("/dev/null"), tmp_path / "pipe"):
        with pytest.raises(tandem.InvalidArgument, match="expected a regular file"):
            read_token(path)
    with pytest.raises(tandem.InvalidArgument, match="No such file"):
        read_token(tmp_path / "none")
