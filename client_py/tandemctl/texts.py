"""Numbers, times and runs as short texts for people; nothing here needs rich."""

import datetime
import math
from collections import Counter
from collections.abc import Sequence

from tandem.printable import printable
from tandem.telemetry import RunDescription
from tandemctl.command_line import STATES

_REMARK_CHARACTERS = 160


def count_text(count: int) -> str:
    """Returns a count such as "1,234,567"."""
    return f"{count:,}"


def rate_text(per_second: float) -> str:
    """Returns a rate such as "0", "0.25", "12.5" or "1,234"."""
    if not per_second > 0:
        return "0"
    if per_second < 9.995:
        return f"{per_second:.2f}"
    if per_second < 99.95:
        return f"{per_second:.1f}"
    return f"{math.floor(per_second + 0.5):,}" if per_second < 1e18 else f"{per_second:.3g}"


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


def return_text(value: float) -> str:
    """Returns an episode's return with six digits."""
    return f"{value:.6g}"


def state_of(run: RunDescription) -> str:
    """Returns the name of a run's state, such as "EXECUTING"."""
    return STATES[run.run.status - 1]


def timestamp_of(time: datetime.datetime | None) -> float:
    """Returns a time as seconds since 1970; 0 for None."""
    return time.timestamp() if time else 0.0


def age_of(run: RunDescription, now: float) -> str:
    """Returns how long a run that has ended took; else how long ago it was submitted."""
    end = timestamp_of(run.run.updated_at) if run.run.status.final else now
    return age_text(end - timestamp_of(run.run.created_at))


def share_of(run: RunDescription) -> float | None:
    """Returns how much of its steps a run has done; None: its schedule has no limit of steps."""
    # Where steps are sampled, more are printed than kept; a worker that publishes over gRPC prints none.
    return max(run.steps_printed, run.steps) / run.max_steps if run.max_steps else None


def progress_text(run: RunDescription, width: int) -> str:
    """Returns a bar and a percentage; empty if the run has no limit of steps."""
    share = share_of(run)
    return "" if share is None else f"{bar_text(share, width)} {100 * min(share, 1.0):3.0f} %"


def remark_on(run: RunDescription, now: float) -> str:
    """Returns what is wrong with a run, or what it waits for, on one line; empty: nothing."""
    remarks = [_reason(run.run.failure_reason or "")]
    if run.waiting_for:
        remarks.append(f"waits for {run.waiting_for}")
    if run.unreachable and run.run.last_heartbeat:
        remarks.append(f"unreachable, no heartbeat for {age_text(now - timestamp_of(run.run.last_heartbeat))}")
    elif run.unreachable:
        remarks.append("unreachable, no heartbeat yet")
    remarks.append(run.output_problem)
    if run.proxy_starts > 1:
        remarks.append(f"proxy started {run.proxy_starts} times")
    return one_line("; ".join(filter(None, remarks)), _REMARK_CHARACTERS)


def _reason(reason: str) -> str:
    """Returns the first line; where that announces what follows, the last line as well: it says most of a traceback."""
    lines = [line for line in reason.split("\n") if line.strip()]
    if len(lines) < 2 or not lines[0].endswith(":"):
        return "".join(lines[:1])
    return f"{lines[0]} {lines[-1].strip()}"


def runs_summary(runs: Sequence[RunDescription]) -> str:
    """Returns a text such as "3 runs: 2 EXECUTING, 1 FAULTED; 1,200 steps/s"."""
    states = Counter(run.run.status for run in runs)
    parts = ", ".join(f"{count} {STATES[status - 1]}" for status, count in sorted(states.items()))
    rate = sum(run.steps_per_second for run in runs)
    return (
        f"{count_text(len(runs))} run{'' if len(runs) == 1 else 's'}{': ' if parts else ''}{parts}"
        f"{f'; {rate_text(rate)} steps/s' if rate > 0 else ''}"
    )


def run_line(run: RunDescription, now: float) -> str:
    """Returns a run on one line, for an output that is no terminal."""
    line = f"{printable(run.run.run_id)} {state_of(run)} after {age_of(run, now)}, {count_text(run.steps)} steps"
    if not run.run.status.final:
        line += f" ({rate_text(run.steps_per_second)}/s)"
    if run.max_steps:
        line += f" of {count_text(run.max_steps)}"
    line += f", {count_text(run.episodes)} episodes"
    if run.last_return is not None:
        line += f", last return {return_text(run.last_return)}"
    if run.malformed:
        line += f", {count_text(run.malformed)} malformed lines"
    remark = remark_on(run, now)
    return f"{line}; {remark}" if remark else line
