"""Tests of the module compile_commands."""

from tools.checks.compile_commands import compile_commands


def test_lists_own_sources_once_and_finds_external_headers() -> None:
    """Flags that clang does not know are removed."""
    arguments = ["gcc", "-fno-canonical-system-headers", "-isystem", "external/gtest/include", "-c", "a/b.cc"]
    other = ["gcc", "-c", "external/x/y.cc"]
    graph = {"actions": [{"arguments": arguments}, {"arguments": arguments}, {"arguments": other}, {}]}
    (entry,) = compile_commands(graph, "/workspace", "/base")
    assert entry["file"] == "a/b.cc"
    assert entry["directory"] == "/workspace"
    assert entry["arguments"] == ["gcc", "-isystem", "/base/external/gtest/include", "-c", "a/b.cc"]
