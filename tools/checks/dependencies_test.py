"""Tests of the module dependencies."""

import pytest

from tools.checks.dependencies import find_circles, find_problems, read_graph
from tools.testing import pytest_main


def _graph(label: str, used: str, *, attribute: str = "deps", kind: str = "cc_library", used_kind: str = "") -> str:
    """Returns a graph in which one rule depends on another."""
    return f"""<query>
      <rule class="{kind}" name="{label}">
        <list name="{attribute}"><label value="{used}"/></list>
        <rule-input name="{used}"/>
      </rule>
      <rule class="{used_kind or "cc_library"}" name="{used}"/>
    </query>"""


@pytest.mark.parametrize(
    ("label", "used"),
    [
        ("//schema/layout:a", "//base:b"),
        ("//base:a", "//transport/memory:b"),
        ("//transport/wait:a", "//transport/memory:b"),
        ("//transport/ring:a", "//transport/session:b"),
        ("//transport/session:a", "//program:b"),
        ("//program:a", "//transport/session:b"),
        ("//transport/session:a", "//engine_adapter/core:b"),
        ("//client_py/tandem:a", "//engine_adapter/core:b"),
        ("//client_py/tandem:_engine.so", "//engine_adapter/core:b"),
        ("//client_py/tandem:_native.so", "//client_py/engine_bindings:b"),
        ("//client_py/engine_bindings:a", "//sdk:b"),
        ("//engine_adapter/core:a", "//client_py/bindings:b"),
        ("//viz/viewer:a", "//slow_lane/store:b"),
        ("//gateway:a", "//engine_adapter/core:b"),
        ("//client_py/tandem:a", "//tests/faults:b"),
        ("//slow_lane/daemon:a", "//slow_lane/testing:b"),
        ("//slow_lane/daemon:a", "//slow_lane/client_py/tandemctl:b"),
        ("//schema/layout:a", "//tools/testing:b"),
        ("//novelty:a", "//schema/layout:b"),
    ],
)
def test_refuses_a_dependency_that_points_up_or_across(label: str, used: str) -> None:
    """The message begins with the dependent rule."""
    (problem,) = [line for line in find_problems(read_graph(_graph(label, used))) if line.startswith(label)]
    assert problem


@pytest.mark.parametrize(
    ("label", "used"),
    [
        ("//base:a", "//schema/layout:b"),
        ("//transport/session:a", "//transport/ring:b"),
        ("//transport/session:a", "//base:b"),
        ("//transport/ring:a", "//transport/memory:b"),
        ("//program:a", "//base:b"),
        ("//viz/inspect:a", "//program:b"),
        ("//client_py/tandem:a", "//transport/session:b"),
        ("//client_py/tandem:_engine.so", "//client_py/engine_bindings:b"),
        ("//client_py/engine_bindings:a", "//client_py/bindings:b"),
        ("//client_py/engine_bindings:a", "//engine_adapter/host:b"),
        ("//tests/faults:a", "//client_py/tandem:b"),
        ("//slow_lane/testing:a", "//engine_adapter/core:b"),
        ("//client_py:wheel", "//slow_lane/client_py/tandemctl:b"),
        ("//slow_lane/client_py/tandemctl:a", "//client_py/tandem:b"),
        ("//tools:a", "//engine_adapter/core:b"),
        ("//base:a", "@com_google_absl//:absl"),
        ("//client_py:a", "//:LICENSE"),
    ],
)
def test_accepts_a_dependency_that_points_down(label: str, used: str) -> None:
    """External libraries and the root folder's files are below all components."""
    assert not list(find_problems(read_graph(_graph(label, used))))


def test_accepts_the_binary_of_another_component_as_data_only() -> None:
    """The library as data, and the binary as a source, are refused."""
    label, used = "//client_py/tandem:a", "//engine_adapter/server:server"
    assert not list(find_problems(read_graph(_graph(label, used, attribute="data", used_kind="cc_binary"))))
    assert list(find_problems(read_graph(_graph(label, used, attribute="data", used_kind="cc_library"))))
    assert list(find_problems(read_graph(_graph(label, used, attribute="srcs", used_kind="cc_binary"))))


def test_accepts_a_second_name_for_the_binary_of_another_component() -> None:
    """An alias of the binary is accepted; an alias of the library is refused."""
    label, used = "//slow_lane:a", "//client_py/tool:b"
    for used_kind, refused in (("py_binary", False), ("py_library", True)):
        graph = _graph(label, used, attribute="actual", kind="alias", used_kind=used_kind)
        assert bool(list(find_problems(read_graph(graph)))) == refused


def test_visibility_is_no_dependency() -> None:
    """A visibility list has labels as well."""
    label, seen_by = "//schema/layout:a", "//client_py:__subpackages__"
    graph = _graph(label, "//schema/layout:b").replace(
        "<rule-input", f'<list name="visibility"><label value="{seen_by}"/></list><rule-input'
    )
    assert not list(find_problems(read_graph(graph)))


def test_accepts_the_testing_library_in_tests_only() -> None:
    """Shipped targets must not depend on tools."""
    label, used = "//client_py/tandem:a", "//tools/testing:pytest_main"
    assert not list(find_problems(read_graph(_graph(label, used, kind="py_test"))))
    assert list(find_problems(read_graph(_graph(label, used, kind="py_library"))))


def test_refuses_folders_in_a_circle_unless_a_test_closes_it() -> None:
    """Rules without a cycle may still have a cycle of folders."""
    closing = (
        '<rule class="cc_library" name="//schema/layout:c"><rule-input name="//schema/messages:a"/>{}</rule></query>'
    )
    graph = _graph("//schema/messages:a", "//schema/layout:b")
    assert not list(find_circles(read_graph(graph)))
    (problem,) = find_circles(read_graph(graph.replace("</query>", closing.format(""))))
    assert "schema/layout" in problem and "schema/messages" in problem
    for_tests = '<boolean name="testonly" value="true"/>'
    assert not list(find_circles(read_graph(graph.replace("</query>", closing.format(for_tests)))))


if __name__ == "__main__":
    pytest_main.run(__file__)
