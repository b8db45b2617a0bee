"""Runs as texts for people: lines, tables, pages; and as JSON."""

import dataclasses
import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from tandem.printable import printable
from tandem.telemetry import Attempt, DaemonDescription, Episode, RegisteredWorker, RunDescription
from tandemctl.command_line import STATES

_NAME_CHARACTERS = 28
_REMARK_CHARACTERS = 160
_LEAST_REMARK_COLUMNS = 20
_STATE_STYLES = {"EXECUTING": "green", "FAULTED": "bold red", "PAUSED": "yellow"}
# Keys of the JSON that are attributes of a RunDescription.
_AS_DESCRIBED = (
    "folder steps steps_printed episodes lifecycle malformed text_lines bytes_read max_steps unreachable proxy_starts "
    "worker_pid waiting_for output_problem starved_watchers scalars mean_of episodes_per_second parameters sweep "
    "priority failure_line"
).split()


def rate_text(per_second: float) -> str:
    """Returns a rate such as "0", "0.25", "12.5" or "1,234"."""
    if not per_second > 0:
        return "0"
    digits = 2 if per_second < 9.995 else 1 if per_second < 99.95 else 0
    rounded = per_second if digits else math.floor(per_second + 0.5) if per_second < 1e18 else per_second
    return f"{rounded:,.{digits}f}" if per_second < 1e18 else f"{rounded:.3g}"


def age_text(secs: float) -> str:
    """Returns a time in its one or two largest units: "45 s", "12 min", "3 h 5 min", "2 d 4 h"."""
    whole = int(secs) if 0 < secs < 1e18 else 0
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min"
    if whole < 86400:
        return f"{whole // 3600} h {whole % 3600 // 60} min"
    return f"{whole // 86400} d {whole % 86400 // 3600} h"


def bar_text(share: float, width: int) -> str:
    """Returns a bar such as "[##--]", `width` characters between the brackets; full only when `share` is 1 or more."""
    full = int(min(share, 1.0) * width) if share > 0 else 0
    return f"[{'#' * full}{'-' * (width - full)}]"


def one_line(text: str, most: int) -> str:
    """Returns a foreign text on one line, printable, at most `most` characters; "..." stands for the rest."""
    line = printable(text)
    return line if len(line) <= most else line[: most - 3] + "..."


def state_of(run: RunDescription) -> str:
    """Returns the name of a run's state, such as "EXECUTING"."""
    return STATES[run.run.status - 1]


def _since(start: datetime | None, now: float) -> str:
    return age_text(now - (start.timestamp() if start else 0))


def age_of(run: RunDescription, now: float) -> str:
    """Returns how long a run that has ended took; else how long ago it was submitted."""
    end = run.run.updated_at if run.run.status.final else None
    return _since(run.run.created_at, end.timestamp() if end else now)


def _progress(run: RunDescription, width: int) -> str:
    if not run.max_steps:
        return ""
    printed, kept = (run.attempts[-1].steps_printed, run.attempts[-1].steps) if run.attempts else (0, 0)
    # Where steps are sampled, more are printed than kept; a worker that publishes over gRPC prints none.
    share = max(run.steps_printed - printed, run.steps - kept) / run.max_steps
    return f"{bar_text(share, width)} {100 * min(share, 1.0):3.0f} %"


def remark_on(run: RunDescription, now: float) -> str:
    """Returns what is wrong with a run, or what it waits for, on one line; empty: nothing."""
    heard = run.run.last_heartbeat
    remarks: tuple[str | bool, ...] = (
        run.failure_line or _reason(run.run.failure_reason or ""),
        len(run.attempts) > 1 and f"attempt {run.attempts[-1].number}, after: {run.attempts[-2].reason}",
        run.waiting_for and f"waits for {run.waiting_for}",
        run.unreachable and f"unreachable, no heartbeat {f'for {_since(heard, now)}' if heard else 'yet'}",
        run.output_problem,
        run.remark,
        run.starved_watchers > 0 and f"{run.starved_watchers} of its watchers STARVED, without credits",
        run.proxy_starts > 1 and f"proxy started {run.proxy_starts} times",
    )
    return one_line("; ".join(str(remark) for remark in remarks if remark), _REMARK_CHARACTERS)


def _reason(reason: str) -> str:
    """Returns the first line; where that announces what follows, the last line as well: it says most of a traceback."""
    lines = [line for line in reason.split("\n") if line.strip()]
    announces = len(lines) > 1 and lines[0].endswith(":")
    return f"{lines[0]} {lines[-1].strip()}" if announces else "".join(lines[:1])


def mean_text(run: RunDescription) -> str:
    """Returns the mean return of the last episodes, and their number; empty: there is no episode."""
    return "" if run.mean_return is None else f"{run.mean_return:.6g} of {run.mean_of}"


def sorted_by(column: str, runs: Sequence[RunDescription]) -> list[RunDescription]:
    """Returns runs in the order of one of SORTED_COLUMNS: texts from A to Z, numbers from the greatest."""
    keys: dict[str, Callable[[RunDescription], Any]] = {
        "run": lambda run: run.run.run_id,
        "name": lambda run: run.run_name,
        "state": state_of,
        "time": lambda run: run.run.created_at,
        "steps": lambda run: -run.steps,
        "rate": lambda run: -run.steps_per_second,
        "episodes": lambda run: -run.episodes,
        "return": lambda run: math.inf if run.mean_return is None or math.isnan(run.mean_return) else -run.mean_return,
        "priority": lambda run: -run.priority,
    }
    return sorted(runs, key=keys[column])


def runs_summary(runs: Sequence[RunDescription]) -> str:
    """Returns a text such as "3 runs: 2 EXECUTING, 1 FAULTED; 1,200 steps/s"."""
    states = sorted(Counter(run.run.status for run in runs).items())
    parts = ", ".join(f"{count} {STATES[status - 1]}" for status, count in states)
    rate = sum(run.steps_per_second for run in runs)
    summary = f"{len(runs):,} {'run' if len(runs) == 1 else 'runs'}{': ' if parts else ''}{parts}"
    return f"{summary}; {rate_text(rate)} steps/s" if rate > 0 else summary


def run_line(run: RunDescription, now: float) -> str:
    """Returns a run on one line, for an output that is no terminal."""
    rate = "" if run.run.status.final else f" ({rate_text(run.steps_per_second)}/s)"
    most = f" of {run.max_steps:,}" if run.max_steps else ""
    parts = [
        f"{printable(run.run.run_id)} {state_of(run)} after {age_of(run, now)}, {run.steps:,} steps{rate}{most}",
        f"{run.episodes:,} episodes",
        mean_text(run) and f"mean return {mean_text(run)}",
        f"{run.malformed:,} malformed lines" if run.malformed else "",
    ]
    return "; ".join(filter(None, (", ".join(filter(None, parts)), remark_on(run, now))))


def steps_text(run: RunDescription) -> str:
    """Returns the number of a run's events of steps; "-" of one that prints episodes or scalars alone."""
    return f"{run.steps:,}" if run.steps or not (run.episodes or run.scalars) else "-"


def runs_table(runs: Sequence[RunDescription], now: float) -> object:
    """Returns a table with a row for each run, without columns that would be empty; for `output.rendered`."""
    titles = "RUN NAME STATE >TIME >STEPS >STEPS/S >EPISODES >RETURN >MALFORMED PROGRESS REMARK".split()
    rows = [
        (
            *(printable(run.run.run_id), one_line(run.run_name, _NAME_CHARACTERS), state_of(run), age_of(run, now)),
            *(steps_text(run), "" if run.run.status.final else rate_text(run.steps_per_second), f"{run.episodes:,}"),
            *(mean_text(run), f"{run.malformed:,}" if run.malformed else ""),
            *(_progress(run, 10), remark_on(run, now)),
        )
        for run in runs
    ]
    return table(titles, rows)


def run_page(run: RunDescription, episodes: Sequence[Episode], now: float) -> list[object]:
    """Returns one run with all that is known and its last episodes, the newest last; for `output.rendered`."""
    from rich.text import Text

    record, ended = run.run, run.run.status.final
    kept = f" kept of {run.steps_printed:,} printed" if run.steps_printed > run.steps else ""
    mean = mean_text(run) and f", mean return {mean_text(run)}"
    rate = "" if ended else f", {rate_text(run.episodes_per_second)}/s"
    lines = {
        "run": printable(record.run_id),
        "name": one_line(run.run_name, 120),
        "state": f"{state_of(run)} after {age_of(run, now)}"
        if ended
        else f"{state_of(run)}, submitted {age_of(run, now)} ago",
        "progress": _progress(run, 40),
        "steps": f"{run.steps:,}{kept}" + ("" if ended else f", {rate_text(run.steps_per_second)}/s"),
        "episodes": f"{run.episodes:,}{rate}{mean}",
        "scalars": run.scalars and f"{run.scalars:,}",
        "parameters": one_line(" ".join(f"{name}={value}" for name, value in run.parameters.items()), 400),
        "malformed": run.malformed and f"{run.malformed:,}; tandemctl logs {printable(record.run_id)} --malformed",
        "GPUs": ", ".join(map(str, record.gpu_slots)),
        "worker": f"pid {run.worker_pid}" if run.worker_pid and not ended else "",
        "registered": ", ".join(map(_worker, run.workers)),
        "folder": one_line(run.folder, 4096),
        "remark": remark_on(run, now),
    }
    page: list[object] = [Text("\n".join(f"{title:<10} {text}" for title, text in lines.items() if text))]
    rows = [
        (
            *(f"{episode.episode_index:,}", f"{episode.total_reward:.6g}", f"{episode.steps:,}"),
            "terminated" if episode.terminated else "truncated" if episode.truncated else "-",
            *(
                _since(episode.timestamp, now) if episode.timestamp else "",
                one_line(episode.agent_id, _NAME_CHARACTERS),
            ),
        )
        for episode in episodes
    ]
    return [*page, Text(), table(">EPISODE >RETURN >STEPS END >AGO AGENT".split(), rows)] if rows else page


def _worker(worker: RegisteredWorker) -> str:
    """Returns a worker with its capabilities, such as "learner (MOSAIC/1.0, pause, checkpoint)"."""
    able = (
        one_line(worker.worker_kind, _NAME_CHARACTERS),
        one_line(worker.proto_version, _NAME_CHARACTERS),
        "pause" if worker.supports_pause else "",
        "checkpoint" if worker.supports_checkpoint else "",
    )
    facts = ", ".join(filter(None, able))
    return one_line(worker.worker_id, _NAME_CHARACTERS) + (f" ({facts})" if facts else "")


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> object:
    """Returns a table for `output.rendered`, without columns that would be empty.

    Puts titles that begin with ">", and their columns, at the right. A narrow terminal folds REMARK alone.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    kept = [number for number in range(len(titles)) if any(row[number] for row in rows)]
    for number in kept:
        title = titles[number].removeprefix(">")
        width = max(Text(text).cell_len for text in (title, *(row[number] for row in rows)))
        folds = title == "REMARK"
        least = min(width, _LEAST_REMARK_COLUMNS) if folds else width
        justify: Any = "right" if titles[number].startswith(">") else "left"
        # A text, not a string: rich would read markup in it.
        table.add_column(Text(title), justify=justify, overflow="fold", no_wrap=not folds, min_width=least)
    for row in rows:
        table.add_row(*(Text(row[number], _STATE_STYLES.get(row[number], "")) for number in kept))
    return table


def runs_json(described: DaemonDescription, runs: Sequence[RunDescription]) -> str:
    """Returns a JSON object with the daemon's state and these runs, keys sorted, and a newline."""
    value = {
        "daemon_state": described.state,
        "queued_bytes": described.queued_bytes,
        "oldest_queued_secs": _number(described.oldest_queued_secs),
        "watchers": described.watchers,
        "runs": [_object(run) for run in runs],
    }
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True) + "\n"


def _object(run: RunDescription) -> dict[str, Any]:
    return {name: getattr(run, name) for name in _AS_DESCRIBED} | {
        "run_id": run.run.run_id,
        "name": run.run_name,
        "state": state_of(run),
        "created_at": _iso(run.run.created_at),
        "updated_at": _iso(run.run.updated_at),
        "steps_per_second": _number(run.steps_per_second),
        "gpu_slots": run.run.gpu_slots,
        "failure_reason": run.run.failure_reason,
        "last_return": _number(run.last_return),
        "mean_return": _number(run.mean_return),
        "return_deviation": _number(run.return_deviation),
        "attempts": [_attempt(attempt) for attempt in run.attempts],
        "workers": [dataclasses.asdict(worker) for worker in run.workers],
    }


def _attempt(attempt: Attempt) -> dict[str, Any]:
    times = {"started": _iso(attempt.started), "ended": attempt.ended and _iso(attempt.ended)}
    return dataclasses.asdict(attempt) | times


def _number(value: float | None) -> float | None:
    """JSON has no NaN and no infinity."""
    return value if value is not None and math.isfinite(value) else None


def _iso(time: datetime | None) -> str:
    return f"{(time or datetime(1970, 1, 1)).replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
