"""Runs and numbers as texts, tables, pages and JSON."""

import dataclasses
import json
import math
from datetime import UTC, datetime
from typing import Any

import pytest

from tandem.printable import printable_lines
from tandem.telemetry import Attempt, DaemonDescription, Episode, RegisteredWorker, Run, RunDescription, RunStatus
from tandemctl.command_line import SORTED_COLUMNS
from tandemctl.output import rendered
from tandemctl.runs_text import (
    age_text,
    bar_text,
    one_line,
    rate_text,
    remark_on,
    run_line,
    run_page,
    runs_json,
    runs_summary,
    runs_table,
    sorted_by,
    steps_text,
)

_START = 1_700_000_000
_NOW = _START + 100


def _time(secs: float) -> datetime:
    return datetime.fromtimestamp(secs, UTC)


def _run(status: RunStatus = RunStatus.EXEC, run_id: str = "01ARZ", **record: Any) -> RunDescription:
    """Returns a description of an executing run, with changed fields of Run or RunDescription."""
    own = {name: record.pop(name) for name in tuple(record) if name in RunDescription.__slots__}
    run = Run(run_id, status, "", _time(_START), _time(_START + 7), None, None, (), 1)
    run = dataclasses.replace(run, **record)
    plain: Any = dict.fromkeys(("lifecycle", "malformed", "text_lines", "steps_printed", "bytes_read", "worker_pid"), 0)
    texts: Any = dict.fromkeys(("config_json", "folder", "waiting_for", "output_problem"), "")
    description = RunDescription(
        run=run,
        run_name="ant",
        steps=2_500,
        episodes=12,
        last_return=90.0,
        mean_return=97.5,
        mean_of=12,
        steps_per_second=250.0,
        unreachable=False,
        proxy_starts=1,
        last_event=None,
        max_steps=10_000,
        workers=(),
        **plain,
        **texts,
    )
    return dataclasses.replace(description, **own)


_FAULTED = _run(
    RunStatus.FAULT,
    "02BAD",
    failure_reason="the worker exited with code 1; the last it wrote to stderr:\n"
    "Traceback (most recent call last):\n  File x\nValueError: \x1b[1m!\n",
    max_steps=None,
    last_return=None,
    mean_return=None,
    malformed=3,
)


@pytest.mark.parametrize(
    ("function", "samples"),
    [
        (rate_text, {0.0: "0", 0.25: "0.25", 12.34: "12.3", 1234.5: "1,235", math.nan: "0", 1e20: "1e+20"}),
        (age_text, {-5: "0 s", 59.9: "59 s", 60: "1 min", 11_100: "3 h 5 min", 187_200: "2 d 4 h", math.nan: "0 s"}),
        (
            lambda share: bar_text(share, 4),
            {0: "[----]", 0.5: "[##--]", 0.999: "[###-]", 1: "[####]", 7: "[####]", math.nan: "[----]"},
        ),
        (
            lambda text: one_line(text, 6),
            {"a\n\x1b": "a\\x...", "abcdef": "abcdef", "abcdefg": "abc...", "äöüäöüä": "äöü..."},
        ),
    ],
)
def test_texts_are_short(function: Any, samples: dict[Any, str]) -> None:
    """Applies to rates, ages, bars and foreign texts."""
    assert {value: function(value) for value in samples} == samples


def test_a_run_without_events_of_steps_has_no_number_of_them() -> None:
    """Lines of frameworks print episodes and scalars; a run that has printed nothing has 0 steps."""
    runs = [_run(steps=0), _run(steps=0, episodes=0, scalars=4), _run(steps=0, episodes=0, scalars=0), _run(steps=1)]
    assert [steps_text(run) for run in runs] == ["-", "-", "0", "1"]


def test_a_table_has_a_line_for_each_run() -> None:
    """A column is as wide as its widest cell; empty columns are omitted."""
    assert rendered(runs_table([_run(), _FAULTED], _NOW)) == [
        "RUN    NAME  STATE       TIME  STEPS  STEPS/S  EPISODES      RETURN  MALFORMED  PROGRESS            REMARK",
        "01ARZ  ant   EXECUTING  1 min  2,500      250        12  97.5 of 12             [##--------]  25 %",
        "02BAD  ant   FAULTED      7 s  2,500                 12                      3                      "
        "the worker exited with code 1; the last it wrote to stderr: ValueError: \\x1b[1m!",
    ]
    assert rendered(runs_table([_run(run_name="日本")], _NOW))[0].startswith("RUN    NAME  STATE")


def test_a_remark_has_the_attempt_and_the_failures_last_line() -> None:
    """The line of the exception replaces the end of stderr."""
    first = Attempt(1, _time(_START), _time(_START + 3), "killed by signal 9", 0, 0, 0, 0, 0, 0)
    second = dataclasses.replace(first, number=2, ended=None, reason="", steps=1_500)
    again = _run(attempts=(first, second))
    assert "attempt 2, after: killed by signal 9" in run_line(again, _NOW)
    assert "] 10 %" in rendered(runs_table([again], _NOW))[1].replace("  ", " "), "the share of the attempt's steps"
    failed = dataclasses.replace(_FAULTED, failure_line="RuntimeError: diverged")
    assert run_line(failed, _NOW).endswith("; RuntimeError: diverged")


def test_runs_are_sorted_by_each_column() -> None:
    """Runs without a return come last."""
    runs = [_run(run_id="c", mean_return=math.nan), _run(run_id="b", mean_return=1.0), _FAULTED]
    runs.append(_run(run_id="a", mean_return=2.0, steps=1))
    order = {column: [run.run.run_id for run in sorted_by(column, runs)] for column in SORTED_COLUMNS}
    assert order["return"] == ["a", "b", "c", "02BAD"] and order["run"] == ["02BAD", "a", "b", "c"]
    assert order["steps"][-1] == "a"


def test_a_narrow_terminal_wraps_only_remarks() -> None:
    """Other columns are not cut, so that a run_id can be copied."""
    lines = rendered(runs_table([_FAULTED], _NOW), width=60)
    assert len(lines) > 2
    assert any("02BAD" in line and "2,500" in line for line in lines)
    assert any("\x1b[" in line for line in lines)  # colours


def test_control_characters_of_names_are_escaped() -> None:
    """Brackets in names are not read as rich's markup."""
    run = _run(run_id="01\x1b[31m", run_name="\u202egpj.exe [b]übung", folder="/data/\u2066")
    for text in ("\n".join(rendered(runs_table([run], _NOW))), "\n".join(rendered(*run_page(run, (), _NOW)))):
        assert "01\\x1b[31m" in text and "\\xe2\\x80\\xaegpj.exe [b]übung" in text
        assert text == printable_lines(text)
    assert run_line(run, _NOW) == printable_lines(run_line(run, _NOW))


@pytest.mark.parametrize(
    ("changes", "remark"),
    [
        ({}, ""),
        ({"waiting_for": "2 GPUs"}, "waits for 2 GPUs"),
        ({"output_problem": "its output was cut"}, "its output was cut"),
        ({"remark": "asks for 8 of 4 cores: it runs alone"}, "asks for 8 of 4 cores: it runs alone"),
        ({"starved_watchers": 2}, "2 of its watchers STARVED, without credits"),
        ({"unreachable": True}, "unreachable, no heartbeat yet"),
        (
            {"unreachable": True, "last_heartbeat": _time(_NOW - 300), "proxy_starts": 3},
            "unreachable, no heartbeat for 5 min; proxy started 3 times",
        ),
        ({"failure_reason": "cancelled", "proxy_starts": 2}, "cancelled; proxy started 2 times"),
        ({"failure_reason": "no disk\nmore about that"}, "no disk"),
        ({"failure_reason": "\n"}, ""),
    ],
)
def test_remarks_have_every_problem(changes: dict[str, Any], remark: str) -> None:
    """A failure reason is shortened to its first line."""
    assert remark_on(_run(**changes), _NOW) == remark


def test_a_summary_counts_states() -> None:
    """The summary also has the sum of the step rates."""
    assert runs_summary([]) == "0 runs"
    ended = dataclasses.replace(_FAULTED, steps_per_second=0.0)
    assert runs_summary([_run(), ended, _run()]) == "3 runs: 2 EXECUTING, 1 FAULTED; 500 steps/s"


def test_a_log_line_describes_a_run() -> None:
    """Describes an executing run and a faulted one."""
    assert run_line(_run(), _NOW) == (
        "01ARZ EXECUTING after 1 min, 2,500 steps (250/s) of 10,000, 12 episodes, mean return 97.5 of 12"
    )
    assert run_line(_FAULTED, _NOW).startswith(
        "02BAD FAULTED after 7 s, 2,500 steps, 12 episodes, 3 malformed lines; the"
    )


def test_a_page_has_a_runs_facts_and_last_episodes() -> None:
    """The run stores only a sample of its steps."""
    run = _run(steps_printed=25_000, max_steps=100_000, malformed=2, gpu_slots=(0, 3), worker_pid=7, folder="/runs/1")
    learner = RegisteredWorker("learner", "ppo\n", "MOSAIC/1.0", "tandem.telemetry", 1, True, False)
    run = dataclasses.replace(run, workers=(learner, RegisteredWorker("own", "", "", "", 0, False, True)))
    episode = Episode(episode_index=11, total_reward=97.5, steps=200, truncated=True, timestamp=_time(_NOW - 61))
    assert rendered(*run_page(run, [episode], _NOW)) == [
        "run        01ARZ",
        "name       ant",
        "state      EXECUTING, submitted 1 min ago",
        f"progress   [{10 * '#'}{30 * '-'}]  25 %",
        "steps      2,500 kept of 25,000 printed, 250/s",
        "episodes   12, 0/s, mean return 97.5 of 12",
        "malformed  2; tandemctl logs 01ARZ --malformed",
        "GPUs       0, 3",
        "worker     pid 7",
        r"registered learner (ppo\x0a, MOSAIC/1.0, pause), own (checkpoint)",
        "folder     /runs/1",
        "",
        "EPISODE  RETURN  STEPS  END          AGO",
        "     11    97.5    200  truncated  1 min",
    ]


def test_json_has_sorted_keys_numbers_and_nulls() -> None:
    """Texts are not escaped beyond JSON's rules; NaN becomes null."""
    runs = [_run(last_return=math.nan, run_name='ü"\x1f\u2066', gpu_slots=(0, 1)), _FAULTED]
    text = runs_json(DaemonDescription("ok", 0, 0.25, 1, ()), runs)
    assert text.startswith(
        '{\n  "daemon_state": "ok",\n  "oldest_queued_secs": 0.25,\n  "queued_bytes": 0,\n  "runs": [\n'
    )
    assert text.endswith('\n  ],\n  "watchers": 1\n}\n')
    assert '"name": "ü\\"\\u001f\u2066"' in text and '"gpu_slots": [\n        0,\n        1\n      ]' in text
    first, second = json.loads(text)["runs"]
    assert list(first) == sorted(first) and len(first) == 35
    assert (first["run_id"], first["state"], first["steps"]) == ("01ARZ", "EXECUTING", 2_500)
    assert (first["created_at"], first["failure_reason"]) == ("2023-11-14T22:13:20.000Z", None)
    assert first["last_return"] is None and second["last_return"] is None and second["max_steps"] is None
    assert "\nTraceback" in second["failure_reason"]
