"""`tandemctl watch`: the daemon's runs, read each second, as pages on a terminal or else as lines."""

import os
import signal
import time
from dataclasses import dataclass

from tandem.printable import printable
from tandem.telemetry import (
    DaemonTimeout,
    DaemonUnreachable,
    Episode,
    RunDescription,
    RunStatus,
    TrainerClient,
    UnknownRun,
)
from tandemctl.command_line import ExitCode
from tandemctl.daemon import Daemon
from tandemctl.output import STDOUT, WATCH_SIGNALS, Failed, Screen, rendered, show_lines, takes_escapes, window_size
from tandemctl.runs_text import run_line, run_page, runs_summary, runs_table, state_of

_EPISODES_SHOWN = 10
_BETWEEN_READS_SECS = 1.0


@dataclass(frozen=True)
class _State:
    runs: tuple[RunDescription, ...] = ()  # those that have not ended first
    episodes: tuple[Episode, ...] = ()  # of one run
    daemon_state: str = "ok"


def watch(daemon: Daemon, run_id: str, *, submitted: bool = False) -> int:
    """Shows the one run until it ends, or all, until Ctrl-C or until the output has no reader; returns the exit code.

    A daemon that goes away is waited for, if it was there: it answered, or accepted the run a moment ago, `submitted`.
    """
    screen = Screen()
    lines = not takes_escapes(STDOUT)
    state = _State()
    going_on: set[str] = set()
    met = submitted
    try:
        while True:
            waiting = ""
            try:
                state = _read(daemon.client, run_id)
                met = True
            except (DaemonUnreachable, DaemonTimeout):
                if not met:
                    raise
                waiting = f"waiting for the daemon at {daemon.address}"
            except UnknownRun as error:
                if not met:
                    raise
                raise Failed(_removed(run_id, daemon.address, state)) from error
            now = time.time()
            ended = bool(run_id and not waiting and state.runs[0].run.status.final)
            if ended:
                screen.leave()
            if lines:
                show_lines(f"{_clock(now)} {line}" for line in _lines(state, run_id, waiting, going_on, now))
            elif ended:  # stays below what was there before the watch
                page = _page(state, run_id, daemon.address, waiting, now)
                show_lines(rendered(*page, width=window_size().columns))
            else:
                hidden = max(0, len(state.runs) - window_size().lines)
                screen.show(_page(state, run_id, daemon.address, waiting, now, hidden), hidden)
            if ended:
                return ExitCode.NOT_WELL if state.runs[0].run.status == RunStatus.FAULT else ExitCode.DONE
            if not _wait_for_next_read(screen):
                return ExitCode.DONE
    except BrokenPipeError:
        failed = bool(run_id and state.runs and state.runs[0].run.status == RunStatus.FAULT)
        return ExitCode.NOT_WELL if failed else ExitCode.DONE
    finally:
        screen.leave()


def _read(client: TrainerClient, run_id: str) -> _State:
    described = client.describe(run_id) if run_id else client.describe()
    # The newest first: a window may be too small for all.
    runs = sorted(reversed(described.runs), key=lambda run: run.run.status.final)
    episodes = client.last_episodes(run_id, _EPISODES_SHOWN) if run_id and runs[0].episodes else ()
    return _State(tuple(runs), tuple(episodes), described.state)


def _clock(now: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(now))


def _page(state: _State, run_id: str, address: str, waiting: str, now: float, hidden: int = 0) -> list[object]:
    """For a terminal: parts for `rendered`."""
    from rich.text import Text

    head = f"{_clock(now)}  {address}" + ("" if run_id else f"  {runs_summary(state.runs)}")
    remarks = [waiting] if waiting else []
    if state.daemon_state != "ok":
        remarks.append(f"the daemon is not healthy: {printable(state.daemon_state)}")
    page: list[object] = [*map(Text, [head, *remarks, ""])]
    runs = state.runs[: len(state.runs) - hidden]
    if run_id:
        return page + (run_page(runs[0], state.episodes, now) if runs else [])
    return [*page, runs_table(runs, now) if runs else Text("no runs; tandemctl submit -- PROGRAM starts one")]


def _lines(state: _State, run_id: str, waiting: str, going_on: set[str], now: float) -> list[str]:
    """For a log: the runs that have not ended, and those that had not ended at the last state."""
    if waiting:
        return [waiting]
    shown = [run for run in state.runs if run_id or not run.run.status.final or run.run.run_id in going_on]
    going_on.clear()
    going_on.update(run.run.run_id for run in state.runs if not run.run.status.final)
    lines = [run_line(run, now) for run in shown]
    if state.daemon_state != "ok":
        lines.append(f"the daemon is not healthy: {printable(state.daemon_state)}")
    return lines or ["no run goes on"]


def _wait_for_next_read(screen: Screen) -> bool:
    """Waits a second, or for a signal; False: it is time to end."""
    taken = signal.sigtimedwait(WATCH_SIGNALS, _BETWEEN_READS_SECS)
    number = taken.si_signo if taken else None
    if number == signal.SIGTSTP:
        screen.leave()
        os.kill(os.getpid(), signal.SIGSTOP)
    return number not in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _removed(run_id: str, address: str, last: _State) -> str:
    seen = f"when it was last seen it was {state_of(last.runs[0])}" if last.runs else "it was never seen"
    return (
        f"expected to see how run {run_id} ends, found that the daemon at {address} has forgotten it (--keep_runs, or "
        f"tandemctl delete): its outcome is not known; {seen}\n"
        "Next: start the daemon with a greater --keep_runs, or without"
    )
