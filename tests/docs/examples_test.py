"""The code blocks of README and docs run as printed, in new folders, with only the wheel installed.

Blocks with further needs name them: tests/docs/examples.py, NEEDS. This test meets some of them (_HERE).
"""

import contextlib
import fcntl
import itertools
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Set
from pathlib import Path

import pytest

from tests.docs.examples import RUN, BadPage, Example, all_pages, read_blocks, read_examples, run_example
from tests.web.page_fixture import Page
from tests.wheel.clean_environment import CleanEnvironment, outside_variables
from tools.testing import pytest_main

_PAGES = all_pages()
_EXAMPLES = [example for page in _PAGES for example in read_examples(page)]
_DAEMON = Path("slow_lane/daemon/tandem-daemon")

# The needs that this test meets, and the packages that each requires.
_HERE = {"daemon": ("grpcio", "protobuf", "rich"), "pygame": ("pygame-ce",), "sdk": (), "wheel": ()}

# The tutorials: the pages of the part Start, and several machines.
_START = next(line for line in Path("docs/README.md").read_text("utf-8").splitlines() if line.startswith("| Start |"))
_TUTORIALS = [*(Path("docs", name) for name in re.findall(r"\(([\w.]+)\)", _START)), Path("docs/ray.md")]

# Names after "tandem." that are no Python names, of `tandem.db`, of SQL and of a protobuf package; and modules that
# need other packages, or that `import tandem` does not import.
_NOT_PYTHON = (
    "db",
    "episodes",
    "h",
    "hpp",
    "ray",
    "rerun",
    "sb3",
    "scene",
    "sharding",
    "slow_lane",
    "steps",
    "tianshou",
    "torch",
    "xuance",
)

_NEED_PACKAGES = re.compile(r"telemetry\.(rllib|sb3|tianshou|torchrl|xuance)\b")

# A private /dev/shm and private ports: the pages' names and ports may be in use on this machine.
_ALONE = (
    "unshare",
    "--mount",
    "--net",
    "--map-root-user",
    "sh",
    "-c",
    'mount -t tmpfs none /dev/shm && exec "$@"',
    "sh",
)
_IS_ALONE = "TANDEM_DOCS_TEST_IS_ALONE"


@pytest.fixture(scope="session")
def wheel() -> Path:
    """Returns the path of the built wheel."""
    (found,) = Path("client_py/wheel").glob("*.whl")
    return found.absolute()


def _environment(folder: Path, wheel: Path, needs: Set[str]) -> CleanEnvironment:
    """Creates an environment with the wheel and its requirements; without the wheel if the example installs it."""
    made = CleanEnvironment.create(folder, sys.executable, pip=False)
    pip = folder / "bin" / "pip"
    pip.write_text(f'#!/bin/sh\nPIP_NO_INDEX=1 exec {sys.executable} -m pip --python {folder}/bin/python "$@"\n')
    pip.chmod(0o755)
    made.pip("install", "--no-deps", str(wheel))
    made.link(*made.requirements(), *itertools.chain.from_iterable(_HERE[need] for need in needs))
    if "wheel" in needs:
        made.pip("uninstall", "--yes", "tandem-shm")
    return made


@pytest.fixture(scope="session")
def environments(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Callable[[Set[str]], CleanEnvironment]:
    """Returns the function that gives an environment; examples share it unless they change it."""
    made: dict[frozenset[str], CleanEnvironment] = {}

    def give(needs: Set[str]) -> CleanEnvironment:
        key = frozenset(needs)
        if key not in made or "wheel" in key:
            made[key] = _environment(tmp_path_factory.mktemp("environment") / "venv", wheel, needs)
        return made[key]

    return give


@pytest.mark.parametrize(
    "example", [each for each in _EXAMPLES if each.needs <= _HERE.keys()], ids=lambda each: each.place
)
def test_example_runs_as_printed(
    example: Example, tmp_path: Path, wheel: Path, environments: Callable[[Set[str]], CleanEnvironment]
) -> None:
    """The example runs in its own folder, which is also HOME."""
    variables = outside_variables()
    folders = [environments(example.needs).folder / "bin"]
    if "daemon" in example.needs:
        folders.append(_DAEMON.absolute().parent)
    if "wheel" in example.needs:
        (tmp_path / wheel.name).symlink_to(wheel)
    if "sdk" in example.needs:
        (archive,) = Path("sdk").glob("*.tar.gz")
        (tmp_path / archive.name).symlink_to(archive.absolute())
    path = os.pathsep.join((*map(str, folders), variables.get("PATH", os.defpath)))
    with tempfile.TemporaryDirectory(dir="/tmp") as run:  # a socket's path is short
        run_example(example, tmp_path, {**variables, "HOME": str(tmp_path), "PATH": path, "XDG_RUNTIME_DIR": run})


@pytest.mark.parametrize("page", _TUTORIALS, ids=str)
def test_each_block_of_a_tutorial_runs_or_says_why_not(page: Path) -> None:
    """A command in a block of text would run nowhere."""
    silent = [each for each in read_blocks(page) if not (each.language in RUN or each.saved_as or each.not_run)]
    assert [block.place for block in silent] == []


def test_chromium_shows_a_training_at_the_printed_address(
    environments: Callable[[Set[str]], CleanEnvironment],
) -> None:
    """The page's second way to start: both programs are the wheel's."""
    clean = environments(frozenset())
    training = "import tandem, time; envs = tandem.make_vec('CartPole-v1', 4); print(envs.client.name, flush=True)"
    with (
        clean.start("python", "-c", f"{training}; time.sleep(600)") as trainer,
        clean.start("tandem-view", "--listen=127.0.0.1:0") as view,
    ):
        try:
            assert trainer.stdout is not None and view.stdout is not None
            with contextlib.closing(Page()) as page:
                page.open(view.stdout.readline().strip())
                page.run_button(trainer.stdout.readline().strip())
        finally:
            trainer.kill()
            view.terminate()


@pytest.mark.parametrize("page", _PAGES, ids=str)
def test_named_commands_of_tools_exist(page: Path) -> None:
    """Checks the page's text and all blocks."""
    named = set(re.findall(r"(?<![\w/.])tools/(\w+)(?![\w/]|\.\w)", page.read_text("utf-8")))
    assert {name for name in named if not Path("tools", name).is_file()} == set()


def test_names_of_the_package_exist(environments: Callable[[Set[str]], CleanEnvironment]) -> None:
    """Checks names in the text, such as `tandem.make_vec`."""
    text = "".join(page.read_text("utf-8") for page in _PAGES)
    named = re.findall(r"(?<![\w./-])tandem\.((?:\w+\.)*[A-Za-z_]\w*)", text)
    python = {name for name in named if not _NEED_PACKAGES.match(name) and name.split(".")[0] not in _NOT_PYTHON}
    assert "make_vec" in python
    program = "import operator, sys, tandem\nfor name in sys.argv[1:]: operator.attrgetter(name)(tandem)"
    environments(frozenset()).run("python", "-c", program, *python)


def test_every_page_is_read() -> None:
    """The examples include each kind of need that this test meets."""
    assert {Path("README.md"), Path("docs/gymnasium.md"), Path("slow_lane/docs/slow_lane.md")} <= {*_PAGES}
    assert {frozenset(), *(frozenset({need}) for need in _HERE)} <= {each.needs for each in _EXAMPLES}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("text\n\n    make()\n", "in a fence"),
        ("```\nmake()\n```\n", "language"),
        ("```ruby\nmake()\n```\n", "language"),
        ("<!-- needs: luck -->\n```bash\nmake\n```\n", "'needs: luck'"),
        ("<!-- needs: clone -->\n\n```bash\nmake\n```\n", "in the line below"),
        ("<!-- continues -->\n```bash\nmake\n```\n", "to continue"),
    ],
)
def test_page_with_an_unreadable_block_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    """No block is skipped because of its syntax."""
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(BadPage, match=reason):
        read_examples(page)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("```python\nmake()\n```\n", "page.md:2.*NameError"),
        ("```bash\nfalse\ntrue\n```\n", "page.md:2: expected exit code 0, found 1"),
        ("```bash\nfalse | true\n```\n", "found 1"),
        ("```json\n{]\n```\n", "property name"),
        ("<!-- until Ctrl-C -->\n```bash\necho up\n```\n<!-- continues -->\n```bash\nsleep 1\n```\n", "until Ctrl-C"),
        ("```python\none = 1\n```\n```python\none\n```\n", "page.md:5.*'one' is not defined"),
    ],
)
def test_broken_block_is_reported(text: str, reason: str, tmp_path: Path) -> None:
    """The error has the block's place in the page."""
    page = tmp_path / "page.md"
    page.write_text(text)
    variables = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.defpath}"}
    with pytest.raises((RuntimeError, ValueError), match=f"(?s){reason}"):
        for number, example in enumerate(read_examples(page)):
            (tmp_path / str(number)).mkdir()
            run_example(example, tmp_path / str(number), variables)


def test_blocks_that_continue_share_interpreter_and_folder(tmp_path: Path) -> None:
    """The first block still runs meanwhile."""
    page = tmp_path / "page.md"
    page.write_text(
        "<!-- until Ctrl-C -->\n```bash\ntouch up; echo up; trap 'exit 0' INT; sleep 1000\n```\n"
        "<!-- continues -->\n```python\none = 1\n```\n<!-- continues -->\n```python\nopen('up'), one\n```\n"
    )
    (example,) = read_examples(page)
    run_example(example, tmp_path, {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.defpath}"})
    assert [block.line for block in read_blocks(page)] == [3, 7, 11]


def _be_alone() -> None:
    """Starts this test again in its own namespaces, if the machine permits that."""
    if _IS_ALONE in os.environ:
        with socket.socket() as any_socket:  # SIOCSIFFLAGS with IFF_UP brings the loopback interface up
            fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", 1))
    elif shutil.which("unshare") and not subprocess.run([*_ALONE, "true"], capture_output=True).returncode:
        os.environ[_IS_ALONE] = "1"
        os.execvp(_ALONE[0], [*_ALONE, sys.executable, *sys.argv])


if __name__ == "__main__":
    _be_alone()
    pytest_main.run(__file__)
