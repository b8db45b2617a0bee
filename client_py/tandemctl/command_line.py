"""The command line of `tandemctl`: its commands, their options, and their --help.

Parsed by argparse, which is in the standard library, one parser for each command. argparse refuses values that begin
with a dash and takes an option's beginning for the option; neither is so here.
"""

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal
from enum import IntEnum
from typing import Any

DEFAULT_DAEMON = "127.0.0.1:50055"

# Of the daemon's states, RunStatus 1 to 7.
STATES = ("INITIALIZED", "HANDSHAKE", "READY", "EXECUTING", "PAUSED", "FAULTED", "TERMINATED")

_MOST_GPUS = 8  # of a TrainRunConfig
_LAST_COUNT = 2**63 - 1
_UNIT_SECS = {"h": Decimal(3600), "m": Decimal(60), "s": Decimal(1), "ms": Decimal("1e-3"), "us": Decimal("1e-6")}
_DURATION_PART = r"(\d{1,18}\.?\d{0,18}|\.\d{1,18})(h|ms|us|m|s)"


class ExitCode(IntEnum):
    """How `tandemctl` ends."""

    DONE = 0
    FAILED = 1
    WRONG_USAGE = 2
    NOT_WELL = 3  # the watched run failed, or the daemon is not healthy


class WrongUsage(Exception):
    """A command line that `tandemctl` does not have. The text names the --help to read."""


@dataclass
class Options:
    """What a command line asks for.

    Attributes:
      command: Name of the command; empty: only `help` is set.
      help: The text to print instead of all else.
      daemon: Address of the daemon.
      daemon_source: What gave the address, such as "--daemon".
      words: The words that are neither options nor their values: RUN_IDs.
      program: What follows "--", or None. The rest are the options of the commands.
    """

    command: str = ""
    help: str = ""
    daemon: str = ""
    daemon_source: str = "--daemon"
    token_file: str | None = None
    words: list[str] = field(default_factory=list)
    program: list[str] | None = None
    name: str = ""
    gpus: int = 0
    env: list[tuple[str, str]] = field(default_factory=list)
    max_steps: int | None = None
    max_duration: int | None = None  # seconds
    step_stride: int | None = None
    watch: bool = False
    config: str | None = None
    state: list[str] = field(default_factory=list)
    json: bool = False
    all: bool = False
    stderr: bool = False
    malformed: bool = False
    follow: bool = False
    steps: bool = False
    episodes: bool = False
    lifecycle: bool = False
    out: str | None = None


def parse(arguments: Sequence[str], daemon_variable: str) -> Options:
    """Parses a command line.

    Args:
      arguments: Its words, without the program's name.
      daemon_variable: Value of TANDEM_DAEMON; empty: it is not set.

    Returns:
      What it asks for. Nothing is checked besides `--help`.

    Raises:
      WrongUsage: An unknown command or option, a missing value, or one that the option does not take.
    """
    name = ""
    try:
        _check_utf8(arguments)
        end = arguments.index("--") if "--" in arguments else len(arguments)
        head, program = list(arguments[:end]), (list(arguments[end + 1 :]) if end < len(arguments) else None)
        at = _find_command(head)
        name = head.pop(at) if at < len(head) and head[at] in _COMMANDS else ""
        if "--help" in head or "-h" in head:
            text = _COMMANDS[name].parser(name).format_help() if name else _HELP
            return Options(help=text.replace("usage:", "Usage:", 1))
        if not name:
            _parse_options(_COMMANDS["watch"].parser("watch"), head[:at])
            found = _quoted(head[at]) if at < len(head) else "none"
            raise WrongUsage(f"expected a command ({', '.join(_COMMANDS)}), found {found}")
        command = _COMMANDS[name]
        options = _parse_options(command.parser(name), head)
        options.command, options.program = name, program
        command.check(options)
        if not options.daemon:
            options.daemon = daemon_variable or DEFAULT_DAEMON
            options.daemon_source = "TANDEM_DAEMON" if daemon_variable else "the default"
        return options
    except WrongUsage as error:
        raise WrongUsage(f"{error}\nNext: tandemctl {name}{' ' if name else ''}--help") from None


def _check_utf8(arguments: Sequence[str]) -> None:
    """Arguments are sent as text, and repeated in messages."""
    for word in arguments:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            byte = ord(word[error.start]) & 0xFF
            raise WrongUsage(
                f"expected arguments in UTF-8, found the byte 0x{byte:02x} at offset "
                f"{len(word[: error.start].encode())} of {_quoted(word)}"
            ) from None


def _find_command(words: Sequence[str]) -> int:
    """Returns where the command's name is; --daemon and --token_file may come before it."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in ("--daemon", "--token_file") else 1
    return min(at, len(words))


def _parse_options(parser: argparse.ArgumentParser, words: list[str]) -> Options:
    takes_value = {name for action in parser._actions if action.nargs != 0 for name in action.option_strings}
    joined = []
    rest = iter(words)
    for word in rest:  # a value that begins with a dash is a value
        value = next(rest, None) if word in takes_value else None
        joined.append(word if value is None else f"{word}={value}")
    namespace, others = parser.parse_known_args(joined)
    if unknown := [word for word in others if word.startswith("-") and word != "-"]:
        known = [f"{each.option_strings[0]} {each.metavar or ''}".strip() for each in parser._actions[1:]]
        raise WrongUsage(f"expected {', '.join(known)} or --help, found {_quoted(unknown[0])}")
    return Options(words=others, **vars(namespace))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise WrongUsage(message.removeprefix("argument "))


class _Once(argparse.Action):
    """Stores a value, or True for an option without one; refuses the option's second time."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        if hasattr(namespace, self.dest):
            raise argparse.ArgumentError(self, "expected once, found twice")
        setattr(namespace, self.dest, True if self.nargs == 0 else values)


@dataclass(frozen=True)
class _Command:
    summary: str
    usage: str
    text: str
    add_options: Callable[[Any], None]
    check: Callable[[Options], None]

    def parser(self, name: str) -> argparse.ArgumentParser:
        usage = "\n       ".join(f"tandemctl {name} {line}" for line in self.usage.split("\n"))
        parser = _Parser(
            prog=f"tandemctl {name}",
            usage=usage,
            description=self.text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            argument_default=argparse.SUPPRESS,
        )
        self.add_options(parser)
        add = _adder(parser)
        add("--daemon", "ADDRESS", "see tandemctl --help", _not_empty)
        add("--token_file", "FILE", "see tandemctl --help", _not_empty)
        return parser


def _adder(parser: Any) -> Callable[..., None]:
    """Returns what adds an option that may be given once; without a `metavar`, the option has no value."""

    def add(name: str, metavar: str | None, text: str, kind: Callable[[str], Any] = str) -> None:
        if metavar is None:
            parser.add_argument(name, action=_Once, nargs=0, help=text)
        else:
            parser.add_argument(name, action=_Once, metavar=metavar, type=kind, help=text)

    return add


def _not_empty(value: str) -> str:
    if not value:
        raise argparse.ArgumentTypeError("expected a value, found ''")
    return value


def _count(value: str) -> int:
    if not re.fullmatch("[0-9]{1,19}", value) or not 1 <= int(value) <= _LAST_COUNT:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, found {_quoted(value)}")
    return int(value)


def _gpus(value: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", value) or int(value) > _MOST_GPUS:
        raise argparse.ArgumentTypeError(f"expected a number from 0 to {_MOST_GPUS}, found {_quoted(value)}")
    return int(value)


def _duration(value: str) -> int:
    """Returns whole seconds, rounded up: the schedule has no others."""
    secs = Decimal(0)
    if re.fullmatch(f"(?:{_DURATION_PART})+", value):
        secs = sum((Decimal(number) * _UNIT_SECS[unit] for number, unit in re.findall(_DURATION_PART, value)), secs)
    if not 1 <= secs <= _LAST_COUNT:
        raise argparse.ArgumentTypeError(
            f"expected a time such as 90m, 2h30m or 45s, at least 1s, found {_quoted(value)}"
        )
    return int(secs.to_integral_value(ROUND_CEILING))


def _variable(value: str) -> tuple[str, str]:
    name, equals, text = value.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, found {_quoted(value)}")
    return name, text


def _states(value: str) -> list[str]:
    states = value.upper().split(",")
    if unknown := [state for state in states if state not in STATES]:
        known = ",".join(STATES).lower()
        raise argparse.ArgumentTypeError(f"expected names among {known}, found {_quoted(unknown[0].lower())}")
    return states


def _quoted(text: str) -> str:
    return repr(text) if len(text) <= 80 else f"{text[:80]!r}... of {len(text)} characters"


def _add_submit(parser: Any) -> None:
    add = _adder(parser)
    add("--name", "NAME", "the run's name for people; default: the program and its arguments")
    add("--gpus", "N", "wait until N GPUs are free; the worker sees no others; default 0", _gpus)
    parser.add_argument(
        "--env",
        action="append",
        metavar="NAME=VALUE",
        type=_variable,
        help="set an environment variable of the worker, on top of the daemon's; may be repeated",
    )
    add("--max_steps", "N", "end the run when it has printed N steps, kept or not", _count)
    add("--max_duration", "TIME", "end the run so long after its start, such as 90m; units h, m, s", _duration)
    add("--step_stride", "N", "keep each Nth step only, beginning with the first", _count)
    add("--watch", None, "continue as `tandemctl watch RUN_ID`")
    add("--config", "FILE", "read all of it as JSON, MOSAIC's TrainRunConfig; -: from standard input", _not_empty)


def _check_submit(options: Options) -> None:
    if options.words:
        raise WrongUsage(f"expected '--' before PROGRAM, found {_quoted(options.words[0])}")
    if options.config is None:
        if not options.program or not options.program[0]:
            raise WrongUsage("expected -- PROGRAM [ARG]..., or --config FILE, found neither")
        return
    beside = ("name", "gpus", "env", "max_steps", "max_duration", "step_stride")
    if given := [name for name in beside if getattr(options, name) not in ("", 0, None, [])]:
        raise WrongUsage(f"expected the whole run in --config, found --{given[0]} beside it")
    if options.program is not None:
        raise WrongUsage("expected either --config or a PROGRAM, found both")


def _add_list(parser: Any) -> None:
    add = _adder(parser)
    add("--state", "STATE,...", f"only runs in these states: {', '.join(STATES).lower()}", _states)
    add("--json", None, 'print an object; its "runs" have run_id, name, state, created_at, steps, ...')


def _add_cancel(parser: Any) -> None:
    _adder(parser)("--all", None, "end every run that has not ended")


def _add_logs(parser: Any) -> None:
    add = _adder(parser.add_mutually_exclusive_group())
    add("--stderr", None, "print its standard error instead")
    add("--malformed", None, "print its malformed events: number, offset, length, what is wrong, first bytes")
    _adder(parser)("--follow", None, "wait for more, until the run ends")


def _add_export(parser: Any) -> None:
    add = _adder(parser.add_mutually_exclusive_group())
    add("--steps", None, "the steps; the default")
    add("--episodes", None, "the episodes")
    add("--lifecycle", None, "the other events, such as run_started")
    text = "write to FILE, whole or not at all; a link is followed; default: standard output"
    _adder(parser)("--out", "FILE", text, _not_empty)


def _add_nothing(parser: Any) -> None:
    del parser


def _no_words(options: Options) -> None:
    if options.words or options.program is not None:
        raise WrongUsage(f"expected options only, found {_quoted((options.words or ['--'])[0])}")


def _run_ids(least: int, most: int | None) -> Callable[[Options], None]:
    """Returns the check of a number of RUN_IDs, which may also stand behind "--"."""

    def check(options: Options) -> None:
        options.words += options.program or []
        options.program = None
        if "" in options.words:
            raise WrongUsage("expected a RUN_ID, found ''")
        if options.all and options.words:
            raise WrongUsage("expected either --all or RUN_IDs, found both")
        if not options.all and not least <= len(options.words) <= (most or len(options.words)):
            expected = "RUN_ID..." if most is None else "one RUN_ID" if least else "at most one RUN_ID"
            or_all = ", or --all" if options.command == "cancel" else ""
            raise WrongUsage(f"expected {expected}{or_all}, found {' '.join(options.words) or 'none'}")

    return check


_COMMANDS = {
    "submit": _Command(
        "start a run: tandemctl submit -- python train.py",
        "[options] -- PROGRAM [ARG]...\n[--watch] --config FILE",
        """Starts a run and prints its run_id, alone, on standard output. The run's worker
is PROGRAM, found by your PATH. It starts in the current folder, with the
daemon's environment. Each line that it prints and that begins with '{' is an
event.

Example: run_id=$(tandemctl submit --max_duration 2h -- python train.py --seed 3)""",
        _add_submit,
        _check_submit,
    ),
    "list": _Command(
        "print a table of the runs",
        "[options]",
        """Prints a line for each run, in the order of submission. MALFORMED counts the
lines that begin with '{' and are no valid events: `tandemctl logs RUN_ID
--malformed` prints them. REMARK says what is wrong, or what a run waits for.

Example: tandemctl list --json | jq -r '.runs[] | select(.malformed > 0).run_id'""",
        _add_list,
        _no_words,
    ),
    "watch": _Command(
        "show that table live; of one run, also its last episodes",
        "[RUN_ID] [options]",
        """Shows the table of `tandemctl list` and updates it each second, the runs that
have not ended first. Of one run it shows the last episodes as well. If standard
output is no terminal, or if TERM is "dumb" or not set, it prints a line a second
for each run that has not ended. If the daemon goes away, it waits for it.

Ctrl-C ends it (exit code 0). With a RUN_ID it also ends when the run ends: exit
code 0 if the run is TERMINATED, 3 if it is FAULTED, and 1 if the daemon removed
the run before its end was seen (--keep_runs, or tandemctl delete).""",
        _add_nothing,
        _run_ids(0, 1),
    ),
    "cancel": _Command(
        "end runs with all their processes",
        "RUN_ID... [options]\n--all [options]",
        """Ends runs: SIGTERM to all their processes, SIGKILL to those that are alive after
the daemon's --kill_grace, 5 s. When it returns, no process of the runs is left,
and the events that they printed are kept. A run that has ended stays as it is.

It waits at most a minute. A daemon whose --kill_grace is above 30 s may take
longer; it ends the runs all the same.""",
        _add_cancel,
        _run_ids(1, None),
    ),
    "pause": _Command(
        "stop all processes of runs",
        "RUN_ID... [options]",
        """Stops all processes of runs that are EXECUTING, by SIGSTOP. They keep their
memory and their GPUs. `tandemctl resume` continues them.""",
        _add_nothing,
        _run_ids(1, None),
    ),
    "resume": _Command(
        "continue paused runs",
        "RUN_ID... [options]",
        "Continues runs that are PAUSED.",
        _add_nothing,
        _run_ids(1, None),
    ),
    "delete": _Command(
        "remove runs that have ended, with all their events",
        "RUN_ID... [options]",
        """Removes runs that have ended: all their events, and their folders. This cannot
be undone; `tandemctl export` before it saves the events.""",
        _add_nothing,
        _run_ids(1, None),
    ),
    "logs": _Command(
        "print what a run's worker wrote, or its malformed events",
        "RUN_ID [options]",
        """Prints the standard output of the run's worker as it is: events and other lines.
It reads the files of the run, so it works on the daemon's machine only.""",
        _add_logs,
        _run_ids(1, 1),
    ),
    "export": _Command(
        "print a run's events as CSV",
        "RUN_ID [options]",
        """Writes the run's events that are durable now, as CSV: a line of names, then a
line for each event, in order. Quoting follows RFC 4180, lines end with a
newline, numbers are exact (17 digits), times are in UTC.""",
        _add_export,
        _run_ids(1, 1),
    ),
    "health": _Command(
        "print the daemon's state",
        "[options]",
        """Prints where the daemon is, when it started, and whether it keeps events in time:
with a full disk it cannot. "queued" are the events that are not in the table yet.
Exit codes: 0 healthy, 1 no daemon, 3 not healthy.""",
        _add_nothing,
        _no_words,
    ),
}

_HELP = f"""Usage: tandemctl [--daemon ADDRESS] [--token_file FILE] COMMAND ...

Submits training runs to a tandem-daemon, and shows them.

{"".join(f"  {name:<8} {command.summary}{chr(10)}" for name, command in _COMMANDS.items())}
  --daemon ADDRESS  HOST:PORT, or unix:PATH (DATA_DIR/daemon.sock); default:
                    TANDEM_DAEMON, or else {DEFAULT_DAEMON}
  --token_file FILE a copy of the daemon's --token_file, if the daemon asks for
                    a token; default: TANDEM_TOKEN_FILE, or else no token
  --help            after a command: more about it

Exit codes: 0 done, 1 failed, 2 wrong command line, 3 the watched run failed, or
the daemon is not healthy.
"""
