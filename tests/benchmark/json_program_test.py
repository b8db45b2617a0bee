"""Programs that do not answer are found out. No time is judged."""

import subprocess
import sys

import pytest

from tests.benchmark.json_program import answer_of, talking_to
from tools.testing import pytest_main

# Both end as their input does.
ECHO = [sys.executable, "-c", "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"]
SILENT = [sys.executable, "-c", "import sys\nsys.stdin.read()"]


def test_each_question_is_answered() -> None:
    """In order."""
    with talking_to(ECHO) as program:
        assert [program.ask(f'{{"n": {n}}}') for n in range(3)] == [{"n": 0}, {"n": 1}, {"n": 2}]


def test_no_answer_is_not_waited_for_without_end() -> None:
    """The text has the question and the program."""
    with talking_to(SILENT) as program:
        with pytest.raises(
            subprocess.SubprocessError, match=r"expected an answer to 'hello' within 0.01 s.*stdin.read"
        ):
            program.ask("hello", timeout_secs=0.01)


def test_a_program_that_ended_is_told_from_one_that_is_slow() -> None:
    """However the question was lost."""
    with talking_to(["true"]) as program:
        for _ in range(2):
            with pytest.raises(subprocess.SubprocessError, match="found that it ended"):
                program.ask("hello")


def test_the_answer_of_a_program_that_ends(capfd: pytest.CaptureFixture[str]) -> None:
    """What it writes to stderr is shown when it fails, although warnings are not wanted."""
    program = "import sys\nprint('warned', file=sys.stderr)\nprint(sys.argv[1])\nsys.exit(sys.argv[1] != '[1]')"
    command = [sys.executable, "-c", program]
    assert answer_of([*command, "[1]"], shows_warnings=False) == [1]
    assert capfd.readouterr().err == ""
    with pytest.raises(subprocess.CalledProcessError):
        answer_of([*command, "[2]"], shows_warnings=False)
    assert capfd.readouterr().err == "warned\n"


def test_a_program_that_does_not_end_is_not_waited_for_without_end() -> None:
    """It is killed."""
    with pytest.raises(subprocess.TimeoutExpired):
        answer_of(["sleep", "1000"], timeout_secs=0.01)


if __name__ == "__main__":
    pytest_main.run(__file__)
