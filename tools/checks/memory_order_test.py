"""Tests of the module memory_order."""

from pathlib import Path

import pytest

from tools.checks.memory_order import (
    Operation,
    check_tree,
    find_labels,
    labelled_operations,
    operation_problems,
    pair_problems,
)

_SOURCE = Path("transport/ring/a.h")
_RELEASE = "// SYNC(ring.commit): release; payload before index\nindex.store(1, std::memory_order_release);\n"
_ACQUIRE = "// SYNC(ring.commit): acquire; index before payload\nindex.load(std::memory_order_acquire);\n"


def _pairs(*texts: str) -> list[str]:
    labels = [label for text in texts for label in find_labels(_SOURCE, text)[0]]
    return list(pair_problems(labels))


def test_accepts_a_release_with_its_acquire() -> None:
    """The two halves may be in different files."""
    assert not _pairs(_RELEASE + _ACQUIRE)


@pytest.mark.parametrize(("half", "lacking"), [(_RELEASE, "acquire"), (_ACQUIRE, "release")])
def test_refuses_a_label_that_lacks_its_other_half(half: str, lacking: str) -> None:
    """The message names the missing half, also if the present half occurs twice."""
    for text in (half, half + half):
        (problem,) = _pairs(text)
        assert f"{lacking} or fence" in problem


def test_two_fences_pair_and_one_alone_does_not() -> None:
    """A fence is either half, but not its own partner."""
    fence = "// SYNC(bell.sleep): fence; sleeper flag before the re-check\n"
    assert not _pairs(fence + fence)
    assert _pairs(fence)


@pytest.mark.parametrize(
    "comment",
    [
        "// SYNC(ring.commit) release",
        "// SYNC(ring.commit): publish; x",
        "// SYNC(Ring): release; x",
        "// SYNC(a): release",
    ],
)
def test_refuses_a_label_outside_the_grammar(comment: str) -> None:
    """Otherwise a typing error could hide a half."""
    labels, problems = find_labels(_SOURCE, comment)
    assert not labels
    assert len(problems) == 1


def test_labels_in_strings_are_ignored() -> None:
    """Only comments have labels."""
    assert find_labels(_SOURCE, 'const char* text = "// SYNC(a): release; x";') == ([], [])


@pytest.mark.parametrize(
    "code",
    [
        "index.load();",
        "header->index.store(1);",
        "index.fetch_add(\n    1);",
        "index.compare_exchange_weak(expected, 1);",
        "std::atomic_ref(word).exchange(3);",
        "flag.test_and_set();",
    ],
)
def test_refuses_an_operation_without_an_explicit_order(code: str) -> None:
    """Tests need an explicit order as well."""
    for path in (_SOURCE, Path("transport/ring/a_test.cc")):
        (problem,) = operation_problems(path, f"// relaxed: x\n{code}\n")
        assert "explicit memory order" in problem


@pytest.mark.parametrize(
    "code",
    [
        "index.load(std::memory_order_acquire);",
        "std::atomic_thread_fence(std::memory_order_seq_cst);",
        "index.load(std::memory_order_relaxed);",
        "// SYNC(a): release; the wrong role\nindex.load(std::memory_order_acquire);",
        "// SYNC(a): acquire; too far up\n;\n;\n;\nindex.load(std::memory_order_acquire);",
        "// relaxed: not for this order\nindex.load(std::memory_order_acquire);",
    ],
)
def test_refuses_an_operation_without_its_label(code: str) -> None:
    """Tests need no labels."""
    assert len(list(operation_problems(_SOURCE, code))) == 1
    assert not list(operation_problems(Path("transport/ring/a_test.cc"), code))


@pytest.mark.parametrize(
    "code",
    [
        _RELEASE,
        _ACQUIRE,
        "index.load(std::memory_order::acquire);  // SYNC(a): acquire; same line",
        "// SYNC(a): fence; x\nstd::atomic_thread_fence(std::memory_order_seq_cst);",
        "// relaxed: only this side writes it\nindex.load(std::memory_order_relaxed);",
        "// SYNC(a): acq_rel; x\nindex.compare_exchange_strong(\n    e, 1, std::memory_order_acq_rel,\n"
        "    std::memory_order_relaxed);",
        "// SYNC(a): acquire; a comment\n// of\n// five\n// lines\n// in all\nindex.load(std::memory_order_acquire);",
        "// index.load() in a comment\nconst int separated = 1'000'000;",
    ],
)
def test_accepts_an_operation_with_order_and_label(code: str) -> None:
    """All places and forms of the grammar are accepted."""
    assert not list(operation_problems(_SOURCE, code))


def test_a_label_in_a_test_is_no_other_half(tmp_path: Path) -> None:
    """The check of the tree fails until the other half is in the code."""
    folder = tmp_path / "transport" / "ring"
    folder.mkdir(parents=True)
    (folder / "a.h").write_text(_RELEASE)
    (folder / "a_test.cc").write_text(_ACQUIRE)
    assert check_tree(tmp_path)
    (folder / "b.h").write_text(_ACQUIRE)
    assert not check_tree(tmp_path)


def test_finds_each_operation_with_its_labels_and_its_function(tmp_path: Path) -> None:
    """A function of a class has the class's name; the order is that of the statement, not of the comment."""
    (tmp_path / "a.h").write_text(
        """namespace tandem {
class Ring {
 public:
  bool Full() {
    if (empty) { return false; }
    return Until([&] {
      // SYNC(a): acquire; two labels
      // SYNC(b): acquire; of one load
      return word.load(std::memory_order_acquire) == 1;
    });
  }
};
Ring::Ring(int size) : size_(size) {
  // SYNC(a): fence; x
  std::atomic_thread_fence(std::memory_order_release);
  // relaxed: x
  word.store(1, std::memory_order_relaxed);
  // SYNC(a): release; x
  word.compare_exchange_weak(e, 1, std::memory_order_release,
                             std::memory_order_relaxed);
}
"""
    )
    (tmp_path / "a_test.cc").write_text(_RELEASE)
    (tmp_path / "b.cc").write_text(_RELEASE)
    assert list(labelled_operations(tmp_path, (".",))) == [
        Operation(("a", "b"), "Ring::Full", "load", "acquire"),
        Operation(("a",), "Ring::Ring", "fence", "release"),
        Operation(("a",), "Ring::Ring", "rmw", "release"),
        Operation(("ring.commit",), "", "store", "release"),
    ]
