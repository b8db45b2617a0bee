"""Fixture: the SDK's archive, unpacked."""

import platform
from pathlib import Path

import pytest

import tandem
from tests.sdk.commands import run

_NAME = f"tandem-sdk-{tandem.__version__}-linux-{platform.machine()}"


@pytest.fixture(scope="module")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpacks the archive into a folder with a space in its name."""
    folder = tmp_path_factory.mktemp("unpacked here")
    archive = Path(f"sdk/{_NAME}.tar.gz").absolute()
    run("tar", "-xzf", archive, cwd=folder, environment={"PATH": "/usr/bin:/bin"})
    return folder / _NAME
