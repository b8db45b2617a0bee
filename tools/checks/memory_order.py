"""Checks the labels and the explicitness of atomic operations in C++.

Grammar of a label, in a // comment at the operation:

    // SYNC(<name>): <role>; <what is ordered, or why>
    <name>  lower case letters, digits, "_" and "."; such as ring.commit
    <role>  release | acquire | acq_rel | seq_cst | fence

1. Labels come in pairs. Each name has a publishing half (release, acq_rel, seq_cst or fence) and, at another place, an
   observing half (acquire, acq_rel, seq_cst or fence). Labels of all components are looked at together; tests don't
   count, so that no test stands in for a missing half.
2. In base/, gateway/, program/, sdk/ and transport/ every atomic operation (load, store, exchange, fetch_*,
   compare_exchange_*, test_and_set, fences) names its memory order.
3. In these folders, outside tests, every atomic operation has a label within its statement, in the three lines above
   it, or in the comment that ends there. The label's role is one of the statement's orders, or `fence` for a fence.
   Where all orders are relaxed, a comment with `relaxed: <why nothing depends on it>` does instead.

What a program that reads text can't see: operators on atomics (`++counter`), which are therefore not to be used.
"""

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.checks.source_files import NO_COMPONENTS, files_below, source_files

_SUFFIXES = (".h", ".c", ".cc")
_TEST_ENDINGS = ("_test", "_fuzz", "_benchmark")
_LINES_ABOVE = 3
_EXPLICIT = ("base", "gateway", "program", "sdk", "transport")

_PUBLISHING = {"release", "acq_rel", "seq_cst", "fence"}
_OBSERVING = {"acquire", "acq_rel", "seq_cst", "fence"}
_LABEL = re.compile(r"SYNC\(([a-z0-9_.]+)\): (release|acquire|acq_rel|seq_cst|fence);\s*\S")
_LABEL_ATTEMPT = re.compile(r"SYNC\(")

_OPERATION = re.compile(
    r"(?:(?:\.|->)\s*(?:load|store|exchange|fetch_(?:add|sub|and|or|xor)|compare_exchange_(?:weak|strong)|test_and_set)"
    r"|\batomic_(?:thread|signal)_fence)\s*\("
)
_ORDER = re.compile(r"memory_order(?:_|::)(relaxed|consume|acquire|release|acq_rel|seq_cst)\b")
_NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"([^(\s]{0,16})\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL,
)


@dataclass(frozen=True)
class Label:
    """One half of a pair."""

    name: str
    role: str
    path: Path
    line: int  # from 1


@dataclass(frozen=True)
class Operation:
    """An atomic operation with labels, as the code has it."""

    labels: tuple[str, ...]
    function: str  # around it, with its classes: "RingWriter::TryWrite"
    kind: str  # load | store | rmw | fence
    order: str  # of a compare_exchange: that of its success


def is_test(path: Path) -> bool:
    """Says whether a file is test code, by the naming rule for tests beside their source."""
    return path.stem.endswith(_TEST_ENDINGS)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match.group())


def _comments(text: str) -> list[str]:
    """Returns the comment of each line; code and strings are left out."""
    kept = [" " if character != "\n" else "\n" for character in text]
    for match in _NOT_CODE.finditer(text):
        if match.group().startswith(("//", "/*")):
            kept[match.start() : match.end()] = match.group()
    return "".join(kept).splitlines()


def find_labels(path: Path, text: str) -> tuple[list[Label], list[str]]:
    """Returns the labels of one file, and a sentence for each that does not follow the grammar."""
    labels, problems = [], []
    for number, comment in enumerate(_comments(text), 1):
        matches = list(_LABEL.finditer(comment))
        labels += [Label(match[1], match[2], path, number) for match in matches]
        if len(matches) != len(_LABEL_ATTEMPT.findall(comment)):
            problems.append(f'{path}:{number}: expected "SYNC(<name>): <role>; <why>", found "{comment.strip()}"')
    return labels, problems


def pair_problems(labels: list[Label]) -> Iterator[str]:
    """Yields a sentence for each name that lacks a half; `labels` are those of the whole tree."""
    by_name: dict[str, list[Label]] = defaultdict(list)
    for label in labels:
        by_name[label.name].append(label)
    for name, halves in sorted(by_name.items()):
        publishing = [half for half in halves if half.role in _PUBLISHING]
        observing = [half for half in halves if half.role in _OBSERVING]
        if any(one != other for one in publishing for other in observing):
            continue
        lacking = "an acquire or fence" if publishing else "a release or fence"
        places = ", ".join(f"{half.role} at {half.path}:{half.line}" for half in halves)
        yield f"SYNC({name}): expected {lacking} half elsewhere, found only {places}"


def _statement_end(code: str, opening: int) -> int:
    """Returns the offset behind the bracket that closes the one at `opening`."""
    depth = 0
    for offset in range(opening, len(code)):
        depth += {"(": 1, ")": -1}.get(code[offset], 0)
        if depth == 0:
            return offset + 1
    return len(code)


def _function(code: str, offset: int) -> str:
    """Returns the name of the function around an offset, with its classes: "RingWriter::TryWrite"."""
    opened: list[int] = []
    for brace in re.finditer(r"[{}]", code[:offset]):
        if brace.group() == "{":
            opened.append(brace.start())
        elif opened:
            opened.pop()
    names: list[str] = []
    for offset in opened:
        header = code[max(code.rfind(mark, 0, offset) for mark in ";{}") + 1 : offset]
        if scope := re.search(r"\b(?:class|struct)\s+([\w:]+)[^()]*$", header):
            names.append(scope[1])
        elif function := re.search(r"([\w:~]+)\s*\(", header):
            return "::".join((*names, function[1]))
    return "::".join(names)


def operation_problems(path: Path, text: str) -> Iterator[str]:
    """Yields a sentence for each atomic operation without an explicit order or, outside tests, without a label."""
    code = _NOT_CODE.sub(_blank, text)
    code_lines = code.splitlines()
    comments = _comments(text)
    is_comment = [not line.strip() and bool(comments[index].strip()) for index, line in enumerate(code_lines)]
    for match in _OPERATION.finditer(code):
        end = _statement_end(code, match.end() - 1)
        line = code.count("\n", 0, match.start())
        orders = _ORDER.findall(code[match.start() : end])
        if not orders:
            yield f"{path}:{line + 1}: expected an explicit memory order, found {' '.join(code_lines[line].split())}"
            continue
        if is_test(path):
            continue
        # The lines that may hold the label: the statement's, three above, and the rest of a comment that ends there.
        begin = max(code.rfind(mark, 0, match.start()) for mark in ";{}") + 1
        begin += len(code[begin:]) - len(code[begin:].lstrip())
        first = max(0, code.count("\n", 0, begin) - _LINES_ABOVE)
        while first > 0 and is_comment[first] and is_comment[first - 1]:
            first -= 1
        last = code.count("\n", 0, end)
        nearby = "\n".join(comments[first : last + 1])
        roles = {label[2] for label in _LABEL.finditer(nearby)}
        wanted = {"fence"} if "_fence" in match.group() else set(orders)
        if roles & wanted or (set(orders) == {"relaxed"} and "relaxed:" in nearby):
            continue
        expected = '"relaxed: <why>"' if wanted == {"relaxed"} else f"SYNC label of role {' or '.join(sorted(wanted))}"
        found = f"roles {', '.join(sorted(roles))}" if roles else "none"
        yield f"{path}:{line + 1}: expected a comment with {expected} at this atomic operation, found {found}"


def check_tree(root: Path) -> list[str]:
    """Checks all C++ files of the components below `root`; returns a sentence for each problem."""
    labels: list[Label] = []
    problems: list[str] = []
    for path in source_files(root, _SUFFIXES, NO_COMPONENTS):
        text = (root / path).read_text("utf-8")
        if not is_test(path):
            found, wrong = find_labels(path, text)
            labels += found
            problems += wrong
        if path.parts[0] in _EXPLICIT:
            problems += operation_problems(path, text)
    return problems + list(pair_problems(labels))


def labelled_operations(root: Path, folders: tuple[str, ...]) -> Iterator[Operation]:
    """Yields the atomic operations with labels, in the C++ files of these folders below `root`; tests don't count."""
    for path in (path for folder in folders for path in files_below(root, folder, _SUFFIXES)):
        text = "" if is_test(path) else (root / path).read_text("utf-8")
        code = _NOT_CODE.sub(_blank, text)
        labels, _ = find_labels(path, text)
        for match in _OPERATION.finditer(code):
            end = _statement_end(code, match.end() - 1)
            own = [label for label in labels if label.line <= code.count("\n", 0, end) + 1]
            labels = labels[len(own) :]
            if own and (order := _ORDER.search(code, match.start(), end)):
                word = re.sub(r"\W|atomic_(?:thread|signal)_", "", match.group())
                kind = word if word in ("load", "store", "fence") else "rmw"
                yield Operation(tuple(label.name for label in own), _function(code, match.start()), kind, order[1])


def main() -> int:
    """Checks the tree, prints the problems, and returns the exit code: 0 if there are none."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path("."), help="top of the source tree")
    problems = check_tree(parser.parse_args().root)
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
