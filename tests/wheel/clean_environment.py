"""A virtual environment with an installed wheel, outside of any build tree, and checks of it."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

_PROGRAM = Path(__file__).with_name("first_program.py")

# The system libraries in auditwheel's list that the wheel's files use.
_SYSTEM_LIBRARIES = re.compile(r"(ld-linux-.*|lib(c|m|dl|rt|util|pthread|stdc\+\+|gcc_s|z))[.-].*")


@dataclass(frozen=True)
class CleanEnvironment:
    """A virtual environment.

    Attributes:
      folder: The environment's folder.
    """

    folder: Path

    @classmethod
    def create(cls, folder: Path, python: str, *, pip: bool) -> "CleanEnvironment":
        """Creates an environment.

        Args:
          folder: The new folder.
          python: The base interpreter.
          pip: Whether the environment has its own pip.

        Returns:
          The environment.
        """
        subprocess.run(
            [python, "-m", "venv", *([] if pip else ["--without-pip"]), folder], check=True, env=outside_variables()
        )
        return cls(folder)

    def pip(self, *arguments: str) -> None:
        """Runs this interpreter's pip for the environment, without an index.

        Args:
          *arguments: Arguments of pip.
        """
        python = str(self.folder / "bin" / "python")
        command = [sys.executable, "-m", "pip", "--python", python, "--quiet", *arguments]
        subprocess.run(command, check=True, env={**outside_variables(), "PIP_NO_INDEX": "1"})

    def link(self, *requirements: str) -> None:
        """Links this interpreter's packages that meet requirements, and their requirements.

        Args:
          *requirements: Requirements such as "numpy>=1.23.5".
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
        """Returns the requirements of the installed wheel, extras included."""
        (info,) = self.site_packages.glob("tandem_shm-*.dist-info")
        return importlib.metadata.PathDistribution(info).requires or []

    @property
    def site_packages(self) -> Path:
        """The folder of the environment's packages."""
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    def run(self, program: str, *arguments: str) -> str:
        """Runs a program of the environment in its folder, without variables that refer to other folders.

        Args:
          program: The program's name, such as "python".
          *arguments: The program's arguments.

        Returns:
          The program's output.

        Raises:
          AssertionError: The program failed; the message has its output.
        """
        outcome = self._outcome(program, *arguments)
        completed = f"{outcome.stdout}{outcome.stderr}"
        assert outcome.returncode == 0, f"{program} {arguments}: exit code {outcome.returncode}\n{completed}"
        return outcome.stdout

    def fail(self, program: str, *arguments: str) -> str:
        """Runs a program as `run` does, and checks that it exits with code 1.

        Args:
          program: The program's name, such as "python".
          *arguments: The program's arguments.

        Returns:
          The program's text on stderr.

        Raises:
          AssertionError: The exit code is another one; the message has the output.
        """
        outcome = self._outcome(program, *arguments)
        assert outcome.returncode == 1, f"{program} {arguments}: {outcome}"
        return outcome.stderr

    def start(self, program: str, *arguments: str) -> "subprocess.Popen[str]":
        """Starts a program as `run` does.

        Args:
          program: The program's name.
          *arguments: The program's arguments.

        Returns:
          The process, with its standard output as a pipe.
        """
        words = [str(self.folder / "bin" / program), *arguments]
        return subprocess.Popen(
            words, cwd=self.folder, env=outside_variables(), stdout=subprocess.PIPE, text=True, start_new_session=True
        )

    def check_libraries(self, process: int) -> None:
        """Checks that a process uses shared libraries of the environment and of the system only.

        Args:
          process: Its process id.

        Raises:
          AssertionError: It has mapped another library.
        """
        self.check_mapped(line.split()[-1] for line in Path(f"/proc/{process}/maps").read_text().splitlines())

    def check_mapped(self, files: Iterable[str]) -> None:
        """Checks files that a process has mapped, as `check_libraries` does.

        Args:
          files: Paths; files that are no shared libraries do not count.

        Raises:
          AssertionError: One of them is neither the environment's nor the system's.
        """
        for file in files:
            ours = Path(file).is_relative_to(self.folder) or ".so" not in Path(file).name
            assert ours or _SYSTEM_LIBRARIES.fullmatch(Path(file).name), f"a program of the wheel has mapped {file}"

    def _outcome(self, program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [self.folder / "bin" / program, *arguments],
            cwd=self.folder,
            env=outside_variables(),
            capture_output=True,
            text=True,
        )


def check_installed(environment: CleanEnvironment, version: str, *, modules: tuple[str, ...] = ()) -> float:
    """Uses an installed wheel as a user does: the command, a first program, the doctor.

    Args:
      environment: The environment with the wheel.
      version: The expected version.
      modules: Additional modules that the trainer imports, such as mujoco.

    Returns:
      The first program's sum of rewards, which is equal on all machines.

    Raises:
      AssertionError: A check failed, or a library was loaded from outside the wheel.
    """
    assert "--task" in environment.run("tandem-engine", "--help")
    for command in ("tandem-daemon", "tandem-inspect", "tandem-view"):
        assert command in environment.run(command, "--help")

    program = shutil.copy(_PROGRAM, environment.folder)
    told: dict[str, Any] = json.loads(environment.run("python", str(program), *modules))
    assert told["version"] == version
    bundled = environment.site_packages / "tandem_shm.libs"
    assert [Path(file).parent for file in told["engine"] if "libmujoco" in Path(file).name] == [bundled], told["engine"]
    environment.check_mapped(told["engine"])
    for file in told["client"]:
        name = Path(file).name
        assert not name.startswith("libabsl"), f"the client has mapped {file}"
        if name.startswith("_native"):
            assert Path(file).is_relative_to(environment.folder), f"the client has mapped {file}"

    findings = json.loads(environment.run("python", "-m", "tandem.doctor", "--json"))
    (found,) = [finding["found"] for finding in findings if finding["about"] == "engine's program"]
    assert found == str(environment.site_packages / "tandem" / "engine_server")
    rewards: float = told["rewards"]
    return rewards


def outside_variables() -> dict[str, str]:
    """Returns this process's environment variables without those that refer to a build tree.

    Returns:
      The variables.
    """
    hidden = re.compile(r"PYTHON(PATH|HOME)|RUNFILES_DIR|TANDEM_.*|LD_.*|VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not hidden.fullmatch(name)}
    return {**kept, "PYTHONNOUSERSITE": "1"}


def tags(wheel: Path) -> tuple[str, str, str, str]:
    """Splits a wheel's name.

    Args:
      wheel: The wheel, such as tandem_shm-0.1.0-cp311-cp311-manylinux_2_34_x86_64.whl.

    Returns:
      The version, Python, ABI and platform.
    """
    _, version, python, abi, platform = wheel.stem.split("-")
    return version, python, abi, platform


def audited_platform(wheel: Path) -> str:
    """Returns the platform tag that auditwheel permits for a wheel.

    Args:
      wheel: The wheel.

    Returns:
      The tag, such as "manylinux_2_34_x86_64".
    """
    completed = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", wheel], capture_output=True, text=True, check=True
    )
    found = re.search(r'platform\s+tag:\s+"(\w+)"', completed.stdout)
    assert found, completed.stdout
    return found[1]
