"""Installs wheels from a package index into new virtual environments, and uses them; tools/test --with wheel runs it.

For each Python: without the mujoco package; with the pages' examples; beside the newest mujoco and an older one; and,
for the oldest Python, with the lowest versions that the wheel permits.
"""

import argparse
import os
import tempfile
import zipfile
from dataclasses import replace
from email.parser import BytesParser
from pathlib import Path

import mujoco
from packaging.requirements import Requirement

from tests.docs.examples import read_examples, run_example
from tests.parity import random_robots
from tests.wheel.clean_environment import CleanEnvironment, audited_platform, check_installed, outside_variables, tags

_OLDER_MUJOCO = "mujoco==3.3.*"
_OLDEST_PYTHON = "cp311"

# A new user's first pages. They name the wheel of the oldest Python.
_PAGES = ("README.md", "docs/gymnasium.md", "docs/install.md")


def lowest_requirements(wheel: Path) -> list[str]:
    """Reads the lowest versions that a wheel requires.

    Args:
      wheel: The wheel.

    Returns:
      Requirements such as ["numpy==1.23.5"].
    """
    with zipfile.ZipFile(wheel) as archive:
        (path,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = BytesParser().parsebytes(archive.read(path))
    requirements = [Requirement(line) for line in metadata.get_all("Requires-Dist", [])]
    return [
        f"{requirement.name}=={bound.version}"
        for requirement in requirements
        if requirement.marker is None
        for bound in requirement.specifier
        if bound.operator == ">="
    ]


def try_pages(python: str, wheel: Path, environment: CleanEnvironment, scratch: Path) -> None:
    """Runs the examples that need only the wheel.

    Args:
      python: The wheel's interpreter.
      wheel: The wheel.
      environment: The environment with the wheel. An example that installs it has its own environment.
      scratch: An empty folder.
    """
    for number, example in enumerate(each for page in _PAGES for each in read_examples(Path(page))):
        if not example.needs <= {"wheel"}:
            continue
        folder = scratch / str(number)
        folder.mkdir(parents=True)
        (folder / wheel.name).symlink_to(wheel)
        used = CleanEnvironment.create(folder / "venv", python, pip=True) if "wheel" in example.needs else environment
        path = os.pathsep.join((f"{used.folder}/bin", os.environ.get("PATH", os.defpath)))
        version = tags(wheel)[1]
        blocks = (replace(block, code=block.code.replace(_OLDEST_PYTHON, version)) for block in example.blocks)
        run_example(replace(example, blocks=tuple(blocks)), folder, {**outside_variables(), "PATH": path})
        print(f"ok {wheel.name}: {example.place}", flush=True)


def try_wheel(python: str, wheel: Path, scratch: Path, robots: Path, *, lowest: bool) -> None:
    """Installs and uses a wheel.

    Args:
      python: The wheel's interpreter.
      wheel: The wheel.
      scratch: An empty folder.
      robots: Accelerations that `random_robots.save` computed with the MuJoCo of the wheel.
      lowest: Whether to use the lowest permitted versions of its requirements as well.
    """
    version, _, _, platform = tags(wheel)
    assert platform == audited_platform(wheel), wheel
    environment = CleanEnvironment.create(scratch / "newest", python, pip=True)
    environment.run("python", "-m", "pip", "install", "--quiet", str(wheel))
    environment.run("python", "-m", "pip", "check")
    alone = check_installed(environment, version)
    print(f"ok {wheel.name}: without the mujoco package", flush=True)
    try_pages(python, wheel, environment, scratch / "pages")
    for package in ("mujoco", _OLDER_MUJOCO):
        environment.run("python", "-m", "pip", "install", "--quiet", package)
        found = environment.run("python", "-c", "import mujoco; print(mujoco.__version__)").strip()
        assert check_installed(environment, version, modules=("mujoco",)) == alone
        print(f"ok {wheel.name}: beside mujoco {found}", flush=True)
        # MuJoCo 4.0.0 computes wrong accelerations with sparse matrices.
        command = "compare_dense" if found == "4.0.0" else "compare"
        states, in_contact, worst = environment.run(
            "python", str(Path(random_robots.__file__).absolute()), command, str(robots)
        ).split()
        assert int(in_contact) >= 50 and float(worst) < 1e-4, (states, in_contact, worst)
        print(
            f"ok MuJoCo {mujoco.__version__} in {states} states ({in_contact} in contact): {worst} from {found}",
            flush=True,
        )
    if lowest:
        requirements = lowest_requirements(wheel)
        environment = CleanEnvironment.create(scratch / "lowest", python, pip=True)
        environment.run("python", "-m", "pip", "install", "--quiet", str(wheel), *requirements)
        assert check_installed(environment, version) == alone
        print(f"ok {wheel.name}: with {', '.join(requirements)}", flush=True)


def main() -> None:
    """Parses the command line, and tries each wheel."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", nargs="+", metavar="PYTHON=WHEEL", help="a Python, and the wheel for it")
    for pair in parser.parse_args().wheels:
        python, _, wheel = pair.partition("=")
        with tempfile.TemporaryDirectory() as scratch, tempfile.NamedTemporaryFile(suffix=".npz") as robots:
            random_robots.save(robots.name)
            # No wheels of the lowest versions exist for newer Pythons.
            lowest = f"-{_OLDEST_PYTHON}-" in wheel
            try_wheel(python, Path(wheel), Path(scratch), Path(robots.name), lowest=lowest)


if __name__ == "__main__":
    main()
