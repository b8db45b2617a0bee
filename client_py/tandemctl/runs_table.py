"""Runs as a table, and one run as a page: parts for `output.rendered`."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from tandem.printable import printable
from tandem.telemetry import Episode, RunDescription
from tandemctl.texts import (
    age_of,
    age_text,
    count_text,
    one_line,
    progress_text,
    rate_text,
    remark_on,
    return_text,
    state_of,
    timestamp_of,
)

_NAME_CHARACTERS = 28
_LEAST_REMARK_COLUMNS = 20
_STATE_STYLES = {"EXECUTING": "green", "FAULTED": "bold red", "PAUSED": "yellow"}


def runs_table(runs: Sequence[RunDescription], now: float) -> Table:
    """Makes a table with a row for each run.

    Args:
      runs: In the order of the rows.
      now: Seconds since 1970.

    Returns:
      The table, without columns that would be empty.
    """
    titles = (
        "RUN",
        "NAME",
        "STATE",
        ">TIME",
        ">STEPS",
        ">STEPS/S",
        ">EPISODES",
        ">RETURN",
        ">MALFORMED",
        "PROGRESS",
        "REMARK",
    )
    return _table(
        titles,
        [
            (
                printable(run.run.run_id),
                one_line(run.run_name, _NAME_CHARACTERS),
                state_of(run),
                age_of(run, now),
                count_text(run.steps),
                "" if run.run.status.final else rate_text(run.steps_per_second),
                count_text(run.episodes),
                "" if run.last_return is None else return_text(run.last_return),
                count_text(run.malformed) if run.malformed else "",
                progress_text(run, 10),
                remark_on(run, now),
            )
            for run in runs
        ],
    )


def run_page(run: RunDescription, episodes: Sequence[Episode], now: float) -> list[object]:
    """Shows one run with all that is known.

    Args:
      run: The run.
      episodes: Its last ones, the newest last.
      now: Seconds since 1970.

    Returns:
      Parts for `output.rendered`.
    """
    record, ended = run.run, run.run.status.final
    steps = count_text(run.steps)
    if run.steps_printed > run.steps:
        steps += f" kept of {count_text(run.steps_printed)} printed"
    last = "" if run.last_return is None else f", last return {return_text(run.last_return)}"
    malformed = f"{count_text(run.malformed)}; tandemctl logs {printable(record.run_id)} --malformed"
    lines = {
        "run": printable(record.run_id),
        "name": one_line(run.run_name, 120),
        "state": state_of(run) + (f" after {age_of(run, now)}" if ended else f", submitted {age_of(run, now)} ago"),
        "progress": progress_text(run, 40),
        "steps": steps if ended else f"{steps}, {rate_text(run.steps_per_second)}/s",
        "episodes": count_text(run.episodes) + last,
        "malformed": malformed if run.malformed else "",
        "GPUs": ", ".join(map(str, record.gpu_slots)),
        "worker": f"pid {run.worker_pid}" if run.worker_pid and not ended else "",
        "folder": one_line(run.folder, 4096),
        "remark": remark_on(run, now),
    }
    page: list[object] = [Text("\n".join(f"{title:<10} {text}" for title, text in lines.items() if text))]
    if episodes:
        rows = [
            (
                count_text(episode.episode_index),
                return_text(episode.total_reward),
                count_text(episode.steps),
                "terminated" if episode.terminated else "truncated" if episode.truncated else "-",
                age_text(now - timestamp_of(episode.timestamp)) if episode.timestamp else "",
                one_line(episode.agent_id, _NAME_CHARACTERS),
            )
            for episode in episodes
        ]
        page += [Text(), _table((">EPISODE", ">RETURN", ">STEPS", "END", ">AGO", "AGENT"), rows)]
    return page


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Puts titles that begin with ">", and their columns, at the right. A narrow terminal folds REMARK alone."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    kept = [number for number in range(len(titles)) if any(row[number] for row in rows)]
    for number in kept:
        title = titles[number].removeprefix(">")
        folds = title == "REMARK"
        width = max(Text(text).cell_len for text in (title, *(row[number] for row in rows)))
        table.add_column(
            title,
            justify="right" if titles[number].startswith(">") else "left",
            overflow="fold",
            no_wrap=not folds,
            min_width=min(width, _LEAST_REMARK_COLUMNS) if folds else width,
        )
    for row in rows:
        # Texts, not strings: rich would read markup in them.
        table.add_row(*(Text(row[number], style=_STATE_STYLES.get(row[number], "")) for number in kept))
    return table
