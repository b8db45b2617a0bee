"""Programs that do not answer are found out. No time is judged."""

import subprocess
import sys

import pytest

from tests.benchmark.json_program import talking_to
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


if __name__ == "__main__":
    pytest_main.run(__file__)
