"""Reads the code blocks of Markdown pages, and runs the blocks in Python, shell, JSON and TOML as printed.

Data flow: page -> blocks -> examples -> files in a folder -> processes.

Every block is fenced and names its language. An HTML comment in the line above it has the block's needs and the way to
run it. The page's text says the same to the reader. Semicolons separate the parts of a comment:

    <!-- needs: clone, minutes -->  runs only if all of these are available (NEEDS)
    <!-- continues -->              runs after the previous block, in its folder and, for Python, its interpreter
    <!-- saved as train.py -->      is not run but saved, for the blocks that continue it
    <!-- until Ctrl-C -->           runs during the blocks that continue it, and is interrupted at their end
    <!-- not run: output -->        is not run, for this reason

As a program:

    examples.py --with NEED[,NEED ...] [PAGE ...]    # in a clone: runs the blocks with exactly these needs
"""

import argparse
import contextlib
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The needs of blocks beyond the wheel, and the environment that meets them.
NEEDS = {
    "clone": "a clone of this repository, on Debian 12",
    "daemon": "the slow lane's programs on PATH, and grpcio",
    "environments": "packages with environments, by tools/test --with environments",
    "frameworks": "torch and the frameworks, by tools/test --with frameworks",
    "minutes": "minutes of time, or of download",
    "optuna": "Optuna, which no lock file has: by hand",
    "pygame": "Gymnasium's extra classic-control",
    "queries": "the table of two runs, by tools/test --with queries",
    "ray": "Ray, by tools/test --with ray",
    "sdk": "the SDK's archive in the folder; CMake, GCC, Mono and Godot",
    "wheel": "the wheel's file in the folder, in an environment that lacks it",
}

# Blocks that are not run unless they are saved: programs' output, and excerpts of source files.
_SHOWN = ("c", "cpp", "csharp", "sql", "text")
RUN = {"bash": ".sh", "json": ".json", "python": ".py", "toml": ".toml"}
_READ = {"json": json.loads, "toml": tomllib.loads}

_COMMENT = re.compile(r"^ *<!-- (.*) -->$")
_FENCE = re.compile(r"^( *)```(\w*)$")

_WATCHDOG_SECS = 300


@dataclass(frozen=True)
class Block:
    """A code block of a page.

    Attributes:
      page: The page's file.
      line: The number of the first line of code, from 1.
      language: The language, such as "python".
      code: The lines of code.
      needs: The block's needs, out of NEEDS.
      continues: Whether the block continues the previous one.
      saved_as: The name of the file to save the block as; empty: the block is run.
      interrupted: Whether the block runs until Ctrl-C.
      not_run: Why the block is not run; empty: it is.
    """

    page: Path
    line: int
    language: str
    code: str
    needs: frozenset[str] = frozenset()
    continues: bool = False
    saved_as: str = ""
    interrupted: bool = False
    not_run: str = ""

    @property
    def place(self) -> str:
        """The page and line, such as "docs/frames.md:12"."""
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Example:
    """Blocks that run one after the other in one folder.

    Attributes:
      blocks: The first block, and those that continue it.
    """

    blocks: tuple[Block, ...]

    @property
    def place(self) -> str:
        """The first block's place."""
        return self.blocks[0].place

    @property
    def needs(self) -> frozenset[str]:
        """The needs of all blocks."""
        return frozenset().union(*(block.needs for block in self.blocks))


class BadPage(Exception):
    """A page with an unreadable block or comment."""


def all_pages() -> list[Path]:
    """Returns the pages whose blocks are run, relative to a clone's root, which is the current folder."""
    folders = (Path("docs"), Path("slow_lane/docs"))
    single = (Path("README.md"), Path("client_py/distribution/README.md"))
    return [*single, *(page for folder in folders for page in sorted(folder.glob("*.md")))]


def read_blocks(page: Path) -> list[Block]:
    """Reads the blocks of a page.

    Args:
      page: The Markdown file.

    Returns:
      The blocks, in order.

    Raises:
      BadPage: A block has no fence, no known language or an unknown comment; or a comment has no block.
    """
    blocks: list[Block] = []
    lines = page.read_text("utf-8").splitlines()
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        where = f"{page}:{number}"
        if fence := _FENCE.match(line):
            indent, language = fence.groups()
            if language not in (*_SHOWN, *RUN):
                raise BadPage(
                    f"{where}: expected a block's language to be one of {_SHOWN + tuple(RUN)}, found {language!r}"
                )
            end = lines.index(f"{indent}```", number)
            code = "".join(f"{each.removeprefix(indent)}\n" for each in lines[number:end])
            comment = _COMMENT.match(lines[number - 2]) if number > 1 else None
            blocks.append(
                Block(page, number + 1, language, code, **_read_comment(where, comment[1] if comment else ""))
            )
            number = end + 1
        elif line.startswith("    ") and not lines[number - 2]:
            raise BadPage(f"{where}: expected code in a fence that names its language, found an indented block")
        elif _COMMENT.match(line) and not (number < len(lines) and _FENCE.match(lines[number])):
            raise BadPage(f"{where}: expected a code block in the line below the comment, found none")
    return blocks


def _read_comment(where: str, comment: str) -> dict[str, Any]:
    """Reads the comment above a block into the fields of Block."""
    fields: dict[str, Any] = {}
    for part in filter(None, comment.split("; ")):
        if part == "continues":
            fields["continues"] = True
        elif part.startswith("saved as "):
            fields["saved_as"] = part.removeprefix("saved as ")
        elif part == "until Ctrl-C":
            fields["interrupted"] = True
        elif part.startswith("not run: "):
            fields["not_run"] = part.removeprefix("not run: ")
        elif (
            part.startswith("needs: ")
            and (needs := frozenset(part.removeprefix("needs: ").split(", "))) <= NEEDS.keys()
        ):
            fields["needs"] = needs
        else:
            raise BadPage(
                f"{where}: expected 'continues', 'saved as ' and a name, 'until Ctrl-C', 'not run: ' and a reason, or "
                f"'needs: ' and some of {sorted(NEEDS)}, found {part!r}"
            )
    return fields


def read_examples(page: Path) -> list[Example]:
    """Reads the examples of a page, regardless of their needs.

    Args:
      page: The Markdown file.

    Returns:
      The examples, in order.

    Raises:
      BadPage: As in read_blocks, or the first block continues another.
    """
    examples: list[list[Block]] = []
    for block in read_blocks(page):
        if block.not_run or (block.language not in RUN and not block.saved_as):
            continue
        if not block.continues:
            examples.append([block])
        elif examples:
            examples[-1].append(block)
        else:
            raise BadPage(f"{page}:{block.line}: expected a block to continue, found none above")
    return [Example(tuple(blocks)) for blocks in examples]


def run_example(example: Example, folder: Path, environment: Mapping[str, str], *, working: Path | None = None) -> None:
    """Runs an example as printed.

    Args:
      example: The example's blocks.
      folder: The folder for the blocks' files.
      environment: The environment variables; PATH finds the programs, such as python.
      working: The working folder; None: `folder`.

    Raises:
      RuntimeError: A block failed; the message has its place and its output.
    """
    with contextlib.ExitStack() as at_work:
        for (language, saved_as, interrupted), group in itertools.groupby(
            example.blocks, lambda each: (each.language, each.saved_as, each.interrupted)
        ):
            blocks = list(group)
            if saved_as:
                file = folder / saved_as
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text("".join(block.code for block in blocks), "utf-8")
                continue
            if language in _READ:
                for block in blocks:
                    _READ[language](block.code)
                continue
            process = at_work.enter_context(_started(blocks, folder, environment, working or folder))
            if interrupted:
                at_work.enter_context(_interrupted(blocks[0], process))
            else:
                _finish(blocks[0], process)


@contextlib.contextmanager
def _started(
    blocks: list[Block], folder: Path, environment: Mapping[str, str], working: Path
) -> Iterator[subprocess.Popen[str]]:
    """Starts blocks of one language as one program with the page's line numbers, so that errors name them."""
    text = ""
    for block in blocks:
        text += "\n" * (block.line - 1 - text.count("\n")) + block.code
    file = folder / f"{blocks[0].page.stem}_{blocks[0].line}{RUN[blocks[0].language]}"
    file.write_text(text, "utf-8")
    process = subprocess.Popen(
        ["bash", "-euo", "pipefail", file] if blocks[0].language == "bash" else ["python", file],
        cwd=working,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _finish(block: Block, process: subprocess.Popen[str], *codes: int) -> None:
    """Waits until a block has exited with one of the codes, by default 0."""
    try:
        output, _ = process.communicate(timeout=_WATCHDOG_SECS)
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{block.place}: expected it to end, found it at work after {_WATCHDOG_SECS} s") from None
    if process.returncode not in (codes or (0,)):
        raise RuntimeError(f"{block.place}: expected exit code 0, found {process.returncode}\n{output}")


@contextlib.contextmanager
def _interrupted(block: Block, process: subprocess.Popen[str]) -> Iterator[None]:
    """Waits until a block has printed a line; at the end of the context interrupts it."""
    assert process.stdout is not None
    if not (line := process.stdout.readline()):
        raise RuntimeError(f"{block.place}: expected it to print a line and to run until Ctrl-C, found that it ended")
    yield
    if process.poll() is not None:
        output = line + process.stdout.read()
        raise RuntimeError(
            f"{block.place}: expected it to run until Ctrl-C, found exit code {process.returncode}\n{output}"
        )
    os.killpg(process.pid, signal.SIGINT)
    _finish(block, process, 0, -signal.SIGINT)


def main() -> None:
    """Runs the examples with the given needs in this interpreter's environment."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--with", dest="needs", required=True, help=f"some of {', '.join(sorted(NEEDS))}")
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE")
    arguments = parser.parse_args()
    needs = frozenset(arguments.needs.split(","))
    if unknown := needs - NEEDS.keys():
        parser.error(f"--with: expected some of {', '.join(sorted(NEEDS))}, found {', '.join(sorted(unknown))}")
    examples = [each for page in arguments.pages or all_pages() for each in read_examples(page) if each.needs == needs]
    if not examples:
        parser.error(f"expected a block that needs {', '.join(sorted(needs))}, found none in these pages")
    # `python` is the interpreter that runs this program.
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for example in examples:
        with tempfile.TemporaryDirectory() as folder:
            run_example(example, Path(folder), environment, working=Path() if "clone" in needs else None)
        print(f"ok {example.place}", flush=True)


if __name__ == "__main__":
    main()
