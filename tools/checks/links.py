"""Checks that each relative link of a page names a file and, after "#", a heading of it.

Headings have the anchors that GitHub gives them; <https://docs.github.com/en/get-started/writing-on-github>.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_FENCE = re.compile(r"^[ \t]*```.*?^[ \t]*```", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r'\]\(\s*<?(?![a-z]+:)([^)#>\s]*)(?:#([^)>\s]*))?>?(?:\s+"[^"]*")?\s*\)')
_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
_LABEL = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def anchors(text: str) -> set[str]:
    """Returns the anchors of a page's headings: lower case, "-" for a space, a number after an equal one."""
    found: dict[str, int] = {}
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        anchor = re.sub(r"[^\w\- ]", "", _LABEL.sub(r"\1", heading).lower()).replace(" ", "-")
        count = found[anchor] = found.get(anchor, -1) + 1
        if count:
            found[f"{anchor}-{count}"] = 0
    return {*found}


def link_problems(page: Path) -> Iterator[str]:
    """Yields a sentence for each link of the page to a file or heading that does not exist."""
    for target, anchor in _LINK.findall(_CODE.sub("", _FENCE.sub("", page.read_text("utf-8")))):
        file = page.parent / target if target else page
        if not file.exists():
            yield f"{page}: expected a link to a file, found {target!r}"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text("utf-8")):
            yield f"{page}: expected a link to a heading of {file}, found {anchor!r}"


def main() -> int:
    """Checks the pages named on the command line, prints the problems, and returns the exit code: 0 for none."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=Path, nargs="+", help="Markdown files, relative to the working directory")
    problems = [problem for page in parser.parse_args().pages for problem in link_problems(page)]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
