"""A virtual environment with a wheel in it, outside of any build tree, and what must hold there."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

_PROGRAM = Path(__file__).with_name("first_program.py")

# Of the system; auditwheel's list is the authority, this is what is there of it.
_SYSTEM_LIBRARIES = re.compile(r"(ld-linux-.*|lib(c|m|dl|rt|util|pthread|stdc\+\+|gcc_s|z))[.-].*")


@dataclass(frozen=True)
class CleanEnvironment:
    """A virtual environment.

    Attributes:
      folder: Where it lies.
    """

    folder: Path

    @classmethod
    def create(cls, folder: Path, python: str, *, pip: bool) -> "CleanEnvironment":
        """Makes one.

        Args:
          folder: Where to; it must not be there yet.
          python: The Python that it stands on.
          pip: Whether it has a pip of its own.

        Returns:
          The environment.
        """
        subprocess.run(
            [python, "-m", "venv", *([] if pip else ["--without-pip"]), folder], check=True, env=outside_variables()
        )
        return cls(folder)

    def pip(self, *arguments: str) -> None:
        """Runs this interpreter's pip for it, without an index.

        Args:
          *arguments: Its arguments.
        """
        python = str(self.folder / "bin" / "python")
        command = [sys.executable, "-m", "pip", "--python", python, "--quiet", *arguments]
        subprocess.run(command, check=True, env={**outside_variables(), "PIP_NO_INDEX": "1"})

    def link(self, *requirements: str) -> None:
        """Links this interpreter's packages that meet requirements, and what those require.

        Args:
          *requirements: Such as "numpy>=1.23.5".
        """
        for requirement in map(Requirement, requirements):
            if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
                continue
            distribution = importlib.metadata.distribution(requirement.name)
            for top in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
                link = self.site_packages / top
                if not link.exists():
                    link.symlink_to(Path(str(distribution.locate_file(top))))
            self.link(*distribution.requires or ())

    def requirements(self) -> list[str]:
        """Reads what the wheel that is installed there requires, extras included."""
        (info,) = self.site_packages.glob("tandem_shm-*.dist-info")
        return importlib.metadata.PathDistribution(info).requires or []

    @property
    def site_packages(self) -> Path:
        """Where its packages lie."""
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    def run(self, program: str, *arguments: str) -> str:
        """Runs one of its programs, in its folder, with no variable that leads out of it.

        Args:
          program: Such as "python".
          *arguments: Its arguments.

        Returns:
          What it printed.

        Raises:
          AssertionError: It failed; the message has its output.
        """
        outcome = self._outcome(program, *arguments)
        said = f"{outcome.stdout}{outcome.stderr}"
        assert outcome.returncode == 0, f"{program} {arguments}: exit code {outcome.returncode}\n{said}"
        return outcome.stdout

    def fail(self, program: str, *arguments: str) -> str:
        """Runs a program as `run` does, that is to fail with exit code 1.

        Args:
          program: Such as "python".
          *arguments: Its arguments.

        Returns:
          What it wrote to its standard error.

        Raises:
          AssertionError: It ended otherwise; the message has its output.
        """
        outcome = self._outcome(program, *arguments)
        assert outcome.returncode == 1, f"{program} {arguments}: {outcome}"
        return outcome.stderr

    def _outcome(self, program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [self.folder / "bin" / program, *arguments],
            cwd=self.folder,
            env=outside_variables(),
            capture_output=True,
            text=True,
        )


def check_installed(environment: CleanEnvironment, version: str, *, modules: tuple[str, ...] = ()) -> float:
    """Uses an installed wheel as its user would: the command, a first program, the doctor.

    Args:
      environment: Where it is installed.
      version: What it should say that it is.
      modules: What the trainer imports besides, such as mujoco.

    Returns:
      The sum of rewards of the first program, which is the same everywhere.

    Raises:
      AssertionError: Something failed, or a library came from elsewhere than the wheel.
    """
    assert "--task" in environment.run("tandem-engine", "--help")

    program = shutil.copy(_PROGRAM, environment.folder)
    told: dict[str, Any] = json.loads(environment.run("python", str(program), *modules))
    assert told["version"] == version
    bundled = environment.site_packages / "tandem_shm.libs"
    assert [Path(file).parent for file in told["engine"] if "libmujoco" in Path(file).name] == [bundled], told["engine"]
    assert {Path(file).parent for file in told["client"] if "libabsl" in Path(file).name} == {bundled}, told["client"]
    for file in told["engine"]:
        ours = Path(file).is_relative_to(environment.folder)
        assert ours or _SYSTEM_LIBRARIES.fullmatch(Path(file).name), f"the engine has mapped {file}"
    for file in told["client"]:
        name = Path(file).name
        if name.startswith(("_native", "libabsl")):
            assert Path(file).is_relative_to(environment.folder), f"the client has mapped {file}"

    findings = json.loads(environment.run("python", "-m", "tandem.doctor", "--json"))
    (found,) = [finding["found"] for finding in findings if finding["about"] == "engine's program"]
    assert found == str(environment.site_packages / "tandem" / "engine_server")
    rewards: float = told["rewards"]
    return rewards


def outside_variables() -> dict[str, str]:
    """Copies this process's variables without what leads a Python or an engine to a build tree.

    Returns:
      The variables.
    """
    hidden = re.compile(r"PYTHON(PATH|HOME)|RUNFILES_DIR|TANDEM_.*|LD_.*|VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not hidden.fullmatch(name)}
    return {**kept, "PYTHONNOUSERSITE": "1"}


def tags(wheel: Path) -> tuple[str, str, str, str]:
    """Takes a wheel's name apart.

    Args:
      wheel: Such as tandem_shm-0.1.0-cp311-cp311-manylinux_2_34_x86_64.whl.

    Returns:
      Its version, Python, ABI and platform.
    """
    _, version, python, abi, platform = wheel.stem.split("-")
    return version, python, abi, platform


def audited_platform(wheel: Path) -> str:
    """Asks auditwheel which platform tag a wheel may have.

    Args:
      wheel: The wheel.

    Returns:
      Such as "manylinux_2_34_x86_64".
    """
    said = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", wheel], capture_output=True, text=True, check=True
    )
    found = re.search(r'platform\s+tag:\s+"(\w+)"', said.stdout)
    assert found, said.stdout
    return found[1]
