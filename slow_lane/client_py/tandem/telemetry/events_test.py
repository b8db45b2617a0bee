"""`EventWriter` prints an event as one line, or refuses it."""

import enum
import io
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

import tandem
from tandem.arguments import shown
from tandem.telemetry import EventWriter
from tandem.telemetry.json_lines import MAX_LINE_BYTES
from tandem.testing.engines import watchdog  # noqa: F401, a fixture

_STEP: dict[str, Any] = {"episode": 0, "step_index": 0, "reward": 0.0}


@pytest.fixture
def out() -> io.StringIO:
    """Makes the stream for the printed lines."""
    return io.StringIO()


@pytest.fixture
def events(out: io.StringIO) -> EventWriter:
    """Makes a writer that prints to `out`."""
    return EventWriter(out, timestamps=False)


def _only(out: io.StringIO) -> dict[str, Any]:
    assert out.getvalue().count("\n") == 1 and out.getvalue().endswith("\n")
    event: dict[str, Any] = json.loads(out.getvalue())
    return event


def test_step_has_all_given_fields(out: io.StringIO) -> None:
    """The writer's own run_id and worker_id are printed as well."""
    events = EventWriter(out, run_id="01ARZ3", worker_id="worker-001", timestamps=False)
    events.step(
        episode=3,
        step_index=42,
        action=1,
        observation=[0.02, -0.01],
        reward=1.0,
        terminated=True,
        agent_id="left",
        episode_seed=2**64 - 1,
        policy_label="ppo",
        backend="mujoco",
        frame_ref="frames/3.png",
        render_payload={"grid": [[0, 1]]},
    )
    assert _only(out) == {
        "event_type": "step",
        "run_id": "01ARZ3",
        "worker_id": "worker-001",
        "episode": 3,
        "step_index": 42,
        "action": 1,
        "observation": [0.02, -0.01],
        "reward": 1.0,
        "terminated": True,
        "truncated": False,
        "agent_id": "left",
        "episode_seed": 2**64 - 1,
        "policy_label": "ppo",
        "backend": "mujoco",
        "frame_ref": "frames/3.png",
        "render_payload": {"grid": [[0, 1]]},
    }


def test_episode_and_lifecycle_have_all_given_fields(out: io.StringIO, events: EventWriter) -> None:
    """Absent and empty fields are not printed."""
    events.episode(episode=0, total_reward=195, steps=195, truncated=True, metadata={"loss": np.float32(0.5)})
    events.lifecycle("checkpoint", {"path": "policy.npz"})
    events.lifecycle("run_paused")
    assert [json.loads(line) for line in out.getvalue().splitlines()] == [
        {
            "event_type": "episode",
            "episode": 0,
            "total_reward": 195.0,
            "steps": 195,
            "terminated": False,
            "truncated": True,
            "metadata": {"loss": 0.5},
        },
        {"event": "checkpoint", "payload": {"path": "policy.npz"}},
        {"event": "run_paused"},
    ]


@pytest.mark.parametrize(
    ("number", "text"), [(np.nan, "NaN"), (np.float32("inf"), "Infinity"), (-math.inf, "-Infinity")]
)
def test_rewards_keep_what_json_has_not(number: float, text: str, out: io.StringIO, events: EventWriter) -> None:
    """A training whose reward or return is not finite goes on."""
    events.step(**{**_STEP, "reward": number})
    events.episode(episode=0, total_reward=number, steps=1)
    step, episode = map(json.loads, out.getvalue().splitlines())
    assert (step["reward"], episode["total_reward"]) == (text, text)


def test_scalars_keep_what_json_has_not(out: io.StringIO, events: EventWriter) -> None:
    """NaN and infinities are texts; NumPy's and torch's kinds of numbers are numbers; no values, no event."""
    events.scalars(np.int64(7), {"a": np.float32(0.5), "b": np.nan, "c": np.array(np.inf), "d": -np.inf, "e/1": True})
    events.scalars(8, {})
    assert _only(out) == {
        **{"event_type": "scalars", "step": 7},
        "scalars": {"a": 0.5, "b": "NaN", "c": "Infinity", "d": "-Infinity", "e/1": 1.0},
    }


@pytest.mark.parametrize(
    ("step", "values", "fact"),
    [
        (-1, {"a": 1}, "step"),
        (1, {"": 1}, "values"),
        (1, {3: 1}, "values"),
        (1, {"a": "0.5"}, r"values\['a'\]: expected a number, found '0.5'"),
        (1, {"a": [1, 2]}, r"values\['a'\]"),
    ],
)
def test_invalid_scalars_are_refused(step: int, values: Any, fact: str, out: io.StringIO, events: EventWriter) -> None:
    """The text names the value; nothing is printed."""
    with pytest.raises(tandem.InvalidArgument, match=fact):
        events.scalars(step, values)
    assert not out.getvalue()


def test_run_id_is_taken_from_the_daemons_variable(out: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program's own run_id has precedence; an empty variable counts as absent."""
    monkeypatch.setenv("TANDEM_RUN_ID", "of-the-daemon")
    EventWriter(out).lifecycle("a")
    EventWriter(out, run_id="own").lifecycle("b")
    monkeypatch.setenv("TANDEM_RUN_ID", "")
    EventWriter(out).lifecycle("c")
    assert [json.loads(line).get("run_id") for line in out.getvalue().splitlines()] == ["of-the-daemon", "own", None]


def test_steps_are_not_printed_if_viewers_show_frames_instead(
    out: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With MOSAIC_FASTLANE_ONLY=1; an invalid step is an error all the same."""
    monkeypatch.setenv("MOSAIC_FASTLANE_ONLY", "1")
    events = EventWriter(out)
    events.step(**_STEP)
    with pytest.raises(tandem.InvalidArgument, match="reward"):
        events.step(**{**_STEP, "reward": "nan"})
    assert not events.prints_steps and out.getvalue() == ""
    events.episode(episode=0, total_reward=1.0, steps=1)
    events.lifecycle("ended")
    assert len(out.getvalue().splitlines()) == 2


def test_events_have_timestamps(out: io.StringIO) -> None:
    """The timestamp is in nanoseconds since the Unix epoch."""
    before = time.time_ns()
    EventWriter(out).step(**_STEP)
    assert before <= _only(out)["ts_unix_ns"] <= time.time_ns()


class _LikeATensor:
    """Converts to a NumPy array, as PyTorch's and JAX's arrays do."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array([1.5, 2.5], dtype)


class _Move(enum.IntEnum):
    LEFT = 3


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        (np.float32(0.5), 0.5),
        (np.int64(-7), -7),
        (np.bool_(True), True),
        (np.uint64(2**64 - 1), 2**64 - 1),
        (np.longdouble(0.25), 0.25),
        (np.array([[1, 2], [3, 4]], np.uint8), [[1, 2], [3, 4]]),
        (np.array(2.5), 2.5),
        (np.zeros((0, 3)), []),
        (np.arange(6.0).reshape(2, 3)[:, ::2], [[0.0, 2.0], [3.0, 5.0]]),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array([1.5, None], object), [1.5, None]),
        ((np.float64(1), [np.int8(2)]), [1.0, [2]]),
        ({"camera": np.ones(2), "text": "x"}, {"camera": [1.0, 1.0], "text": "x"}),
        ({np.int64(1): 2}, {"1": 2}),
        ({1: 2, "2": 3, True + 2: 4, None: 5, 0.5: 6}, {"1": 2, "2": 3, "3": 4, "null": 5, "0.5": 6}),
        (np.array([1.0, np.nan, np.inf, -np.inf]), [1.0, None, None, None]),
        (float("nan"), None),
        ({"deep": (1.0, [np.float32("inf")])}, {"deep": [1.0, [None]]}),
        (_LikeATensor(), [1.5, 2.5]),
        (_Move.LEFT, 3),
        ("line\nbreak \x00 \u2028 \ud800 ä", "line\nbreak \x00 \u2028 ? ä"),
        ("12345678901234567890123", "12345678901234567890123"),
        (-(2**63), -(2**63)),
    ],
    ids=repr,
)
def test_value_is_printed_as_json(value: object, printed: object, out: io.StringIO, events: EventWriter) -> None:
    """The value is converted as action, as observation, and inside a mapping."""
    events.step(**_STEP, action=value, observation=value, render_payload={"inside": value})
    event = _only(out)
    assert event["observation"] == event["action"] == event["render_payload"]["inside"] == printed


def _circle() -> list[object]:
    circle: list[object] = []
    circle.append(circle)
    return circle


def _array_in_itself() -> np.ndarray[Any, Any]:
    circle = np.empty(1, object)
    circle[0] = {"again": circle}
    return circle


def _nested(depth: int, inside: object = 1) -> object:
    """Returns a value inside alternating lists and mappings."""
    for level in range(depth):
        inside = [inside] if level % 2 else {"in": inside}
    return inside


def _between(before: str, depth: int, after: str) -> object:
    """Returns a number inside nested lists, with a string before and after each inner list."""
    inside: object = 1
    for _ in range(depth):
        inside = [before, inside, after]
    return inside


_STRINGS_WITH_BRACKETS = [("]", "["), ("]\\", "\\["), ('"]"', '"["'), ('\\"]', '[\\"'), ("]\n", "\u00e4[")]


@pytest.mark.parametrize(
    ("value", "fact"),
    [
        (1j, "complex"),
        (np.array([1j]), "complex128"),
        (b"bytes", "bytes"),
        (np.array([b"bytes"]), r"\|S5"),
        (np.datetime64("2026-01-01"), "datetime64"),
        ({1, 2}, "set"),
        (object(), "object"),
        ({(1, 2): 3}, "keys"),
        ({1: "a", "1": "b"}, "keys 1 and '1' would both be \"1\": rename one"),
        ({"in": [{"true": 1, True: 2}]}, "keys 'true' and True "),
        (({None: 1, "null": float("nan")},), "keys None and 'null' "),
        ({np.int64(7): 1, "7": 2}, "keys .*7.* and '7' "),
        (np.array([{0.5: 1, "0.5": 2}], object), "keys 0.5 and '0.5' "),
        (MappingProxyType({1: 2, "1": 3}), "keys 1 and '1' "),
        (np.array([object()], object), "object"),
        (2**64, "2\\^64"),
        ([-(2**63) - 1], "2\\^63"),
        (_circle(), "contains itself"),
        ([float("nan"), _circle()], "contains itself"),
        (_array_in_itself(), "contains itself"),
        (_nested(64), "at most 63 deep, found more"),
        (_nested(100_000), "at most 63 deep, found more"),
        ([float("nan"), _nested(63)], "at most 63 deep, found more"),
        (_nested(32, np.zeros((1,) * 32)), "at most 63 deep, found more"),
        ([_nested(63, "]"), "[" * 70], "at most 63 deep, found more"),
        *((_between(before, 64, after), "at most 63 deep, found more") for before, after in _STRINGS_WITH_BRACKETS),
    ],
    ids=shown,
)
def test_value_that_json_cannot_hold_is_refused(
    value: object, fact: str, out: io.StringIO, events: EventWriter
) -> None:
    """The error names the field; nothing is printed."""
    with pytest.raises(tandem.InvalidArgument, match=f"observation: .*{fact}.*nothing was printed"):
        events.step(**_STEP, action=1, observation=value)
    assert out.getvalue() == ""


@pytest.mark.parametrize(
    "value",
    [
        _nested(63),
        _nested(63, []),
        _nested(62, [float("nan")]),
        _nested(31, np.zeros((1,) * 32)),
        [[1]] * 100,
        _nested(62, ["]" * 70 + '"\\{"', "[" * 70]),
        *(_between(before, 63, after) for before, after in _STRINGS_WITH_BRACKETS),
        *(_between(before, 63, after) for after, before in _STRINGS_WITH_BRACKETS),
    ],
    ids=shown,
)
def test_value_at_the_depth_limit_is_printed(value: object, out: io.StringIO, events: EventWriter) -> None:
    """The limit is 64 levels with the event itself; adjacent lists count once, and brackets in strings do not count."""
    events.step(**_STEP, observation=value)
    assert _only(out)["observation"] is not None


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        ({"reward": "1.5"}, "reward: expected a number, found '1.5'"),
        ({"reward": None}, "reward: .*None"),
        ({"reward": np.zeros(1)}, "reward: .*array"),
        ({"reward": 10**400}, "reward: "),
        ({"reward": [[1], [2, 3]]}, r"reward: .*\[\[1\], \[2, 3\]\]"),
        ({"episode": -1}, "episode: expected an integer in 0 .. 18446744073709551615, found -1"),
        ({"episode": 1.0}, "episode: .*1.0"),
        ({"step_index": 2**64}, "step_index: "),
        ({"terminated": 1}, "terminated: expected a bool, found 1"),
        ({"truncated": "no"}, "truncated: "),
        ({"agent_id": 7}, "agent_id: expected a string"),
        ({"episode_seed": -1}, "episode_seed: "),
    ],
)
def test_invalid_field_is_refused(change: dict[str, Any], fact: str, out: io.StringIO, events: EventWriter) -> None:
    """The error has the field's name and the found value, and is also a ValueError."""
    with pytest.raises(tandem.InvalidArgument, match=fact):
        events.step(**_STEP | change)
    assert out.getvalue() == ""


def test_other_invalid_arguments_are_refused(out: io.StringIO, events: EventWriter) -> None:
    """Arguments of episodes, of lifecycle events and of the writer."""
    refused: list[tuple[Callable[[], object], str]] = [
        (lambda: events.episode(episode=0, total_reward="1", steps=1), "total_reward: "),  # type: ignore[arg-type]
        (lambda: events.episode(episode=0, total_reward=0, steps=-1), "steps: "),
        (lambda: events.episode(episode=0, total_reward=0, steps=1, metadata=[1]), "metadata: .*mapping"),  # type: ignore[arg-type]
        (lambda: events.episode(episode=0, total_reward=0, steps=1, metadata={"episode_index": "3"}), "'3'"),
        (lambda: events.episode(episode=0, total_reward=0, steps=1, metadata={"episode_index": -1}), "index.*-1"),
        (lambda: events.lifecycle(""), "event: "),
        (lambda: events.lifecycle("a", "b"), "payload: "),  # type: ignore[arg-type]
        (lambda: EventWriter(out, run_id=7), "run_id: "),  # type: ignore[arg-type]
        (lambda: EventWriter("file.jsonl"), "stream: "),  # type: ignore[arg-type]
    ]
    for call, fact in refused:
        with pytest.raises(tandem.InvalidArgument, match=fact):
            call()
    assert out.getvalue() == ""


def test_line_above_the_daemons_limit_is_refused(out: io.StringIO, events: EventWriter) -> None:
    """The error names the longest field; a line of exactly the limit is printed."""
    with pytest.raises(tandem.InvalidArgument, match=f"{MAX_LINE_BYTES}.*observation"):
        events.step(**_STEP, action=1, observation="x" * MAX_LINE_BYTES)
    assert out.getvalue() == ""
    events.step(**_STEP)
    rest = MAX_LINE_BYTES - len(out.getvalue()) - len(',"observation":""')
    out.truncate(out.seek(0))
    events.step(**_STEP, observation="x" * rest)
    assert len(out.getvalue()) == MAX_LINE_BYTES


def test_run_is_started_and_completed(out: io.StringIO, events: EventWriter) -> None:
    """The context manager returns the writer."""
    with events.run(env_id="CartPole-v1") as inside:
        assert inside is events
        events.lifecycle("inside")
    assert [json.loads(line) for line in out.getvalue().splitlines()] == [
        {"event": "run_started", "payload": {"env_id": "CartPole-v1"}},
        {"event": "inside"},
        {"event": "run_completed"},
    ]


@pytest.mark.parametrize(
    ("error", "last"),
    [
        (ValueError("of no value"), ("run_failed", "ValueError: of no value")),
        (KeyboardInterrupt(), ("run_failed", "KeyboardInterrupt")),
        (SystemExit(3), ("run_failed", "SystemExit: 3")),
        (SystemExit("out of memory"), ("run_failed", "SystemExit: out of memory")),
        (SystemExit(), ("run_completed", None)),
        (SystemExit(0), ("run_completed", None)),
    ],
    ids=repr,
)
def test_exception_is_printed_and_raised_again(
    error: BaseException, last: tuple[str, str | None], out: io.StringIO, events: EventWriter
) -> None:
    """`run_failed` has the error's text; an exit with code 0 is no failure."""
    with pytest.raises(type(error)) as caught, events.run():
        raise error
    assert caught.value is error
    printed = json.loads(out.getvalue().splitlines()[-1])
    assert (printed["event"], printed.get("payload", {}).get("error")) == last


def test_printing_imports_neither_grpc_nor_protobuf(out: io.StringIO) -> None:
    """A worker needs only the packages that tandem needs."""
    program = (
        "import sys, tandem.telemetry\ntandem.telemetry.EventWriter().lifecycle('a')\nsys.exit('grpc' in sys.modules)"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        ).returncode
        == 0
    )
