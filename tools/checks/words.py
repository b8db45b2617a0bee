"""Checks that texts use plain words.

A text names the process, thread or user that acts, and uses the field's terms. Code in backticks and fences is not
searched: names and output of programs are not prose.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path, PurePath

SUFFIXES = (".cc", ".cs", ".fbs", ".h", ".hpp", ".js", ".md", ".proto", ".py", ".qml")

# Not searched. A decision record keeps its text: a later record supersedes it as a whole. Goldens do not change. The
# last two have the words as data.
EXEMPT = ("docs/decisions", "schema/goldens", "tools/checks/words.py", "tools/checks/words_test.py")

_ACTOR = "the actor: the caller, the client, the engine, the process, the thread, the user"
_ACTORS = "anybody anyone everybody everyone he him his somebody someone whoever whomever whosoever"
_REPLACEMENTS = {
    **dict.fromkeys(_ACTORS.split(), _ACTOR),
    **dict.fromkeys(("nobody", "no one"), f"no process, no caller, no user, or {_ACTOR}"),
    **dict.fromkeys(("lend", "lends", "lent"), "the scheduler's words: yield, preempt, migrate"),
    "afresh": "again",
    "albeit": "although",
    "anew": "again",
    "at all events": "in each case",
    "came of it": "the result",
    "forthwith": "at once",
    "hence": "so",
    "henceforth": "from then on",
    "hereby": "by this",
    "hitherto": "until then",
    "in vain": "without effect, or: a miss",
    "kept quiet": "not reported",
    "lest": "so that ... not",
    "likewise": "also, or: in the same way",
    "mend": "fix",
    "mended": "fixed",
    "mending": "fixing",
    "mends": "fixes",
    "thence": "from there",
    "thereby": "by this",
    "therein": "in it",
    "thereof": "of it",
    "thrice": "three times",
    "unasked": "without a request",
    "whence": "from where",
    "whereby": "by which",
    "wherein": "in which",
}

_WORD = re.compile(rf"\b({'|'.join(_REPLACEMENTS)})\b", re.IGNORECASE)
_FENCE = re.compile(r"^\s*```")
_CODE = re.compile(r"`[^`]*`")


def word_problems(path: PurePath, text: str) -> Iterator[str]:
    """Yields a sentence for each word that a plainer word should replace: place, word, replacement."""
    in_fence = False
    for number, line in enumerate(text.splitlines(), 1):
        if _FENCE.match(line):
            in_fence = not in_fence
        elif not in_fence:
            for found in _WORD.finditer(_CODE.sub("", line)):
                yield f'{path}:{number}: found "{found[0]}"; write {_REPLACEMENTS[found[0].lower()]}'


def is_searched(path: PurePath) -> bool:
    """Returns whether the check reads a file: a page, a source, or a command in tools, which has a help text.

    `path` is relative to the top of the source tree.
    """
    is_text = path.suffix in SUFFIXES or (path.parent == PurePath("tools") and not path.suffix)
    return is_text and not any(path.is_relative_to(exempt) for exempt in EXEMPT)


def main() -> int:
    """Checks the files named on the command line, prints the problems, and returns the exit code: 0 for none."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+", help="files, relative to the working directory")
    files = [path for path in parser.parse_args().files if is_searched(path)]
    problems = [problem for path in files for problem in word_problems(path, path.read_text("utf-8"))]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
