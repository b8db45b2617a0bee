"""The command line of `tandemctl`: its commands, their options, and their --help.

argparse, of the standard library, parses; each command has its own parser. By default argparse refuses values that
begin with a dash, and accepts the beginning of an option's name. This module accepts such values, and refuses such
beginnings.

Length: one table of commands, and a short check for each kind of value.
"""

import argparse
import re
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, Decimal
from enum import IntEnum
from typing import Any, NoReturn

from tandemctl.sweeps import grid_values

DEFAULT_DAEMON = "127.0.0.1:50055"

# Of the daemon's states, RunStatus 1 to 7.
STATES = ("INITIALIZED", "HANDSHAKE", "READY", "EXECUTING", "PAUSED", "FAULTED", "TERMINATED")

FORMATS = ("csv", "parquet", "tensorboard")  # of `tandemctl export`
# Of `tandemctl list --sort`.
SORTED_COLUMNS = ("run", "name", "state", "time", "steps", "rate", "episodes", "return", "priority")

_MOST_GPUS = 8  # of a TrainRunConfig
_LAST_COUNT = 2**63 - 1
_UNIT_SECS = {"h": Decimal(3600), "m": Decimal(60), "s": Decimal(1), "ms": Decimal("1e-3"), "us": Decimal("1e-6")}
_DURATION_PART = r"(\d{1,18}\.?\d{0,18}|\.\d{1,18})(h|ms|us|m|s)"


class ExitCode(IntEnum):
    """How `tandemctl` ends."""

    DONE = 0
    FAILED = 1
    WRONG_USAGE = 2
    NOT_WELL = 3  # watch: the run is FAULTED; health: the daemon is not healthy


class WrongUsage(Exception):
    """A command line that `tandemctl` does not have. The text names the --help to read."""


def parse(arguments: Sequence[str], daemon_variable: str) -> argparse.Namespace:
    """Parses the words of a command line; WrongUsage if it is invalid. `daemon_variable`: TANDEM_DAEMON's value, or "".

    With --help, the result has only `help`: the text to print. Otherwise `help` is empty, and there are `command`,
    `daemon`, `daemon_source`, `words` (neither options nor values of options), `program` (the words after "--"), and an
    attribute for each option of the command.
    """
    name = ""
    try:
        _check_utf8(arguments)
        head, dashes, program = list(arguments), "--" in arguments, []
        if dashes:
            at = head.index("--")
            head, program = head[:at], head[at + 1 :]
        at = _find_command(head)
        name = head.pop(at) if at < len(head) and head[at] in _COMMANDS else ""
        parser = _parser(name or "watch")
        if "--help" in head or "-h" in head:
            text = parser.format_help().replace("usage:", "Usage:", 1) if name else _HELP
            return argparse.Namespace(help=text)
        options = _parse_options(parser, head if name else head[:at])
        if not name:
            found = _quoted(head[at]) if at < len(head) else "none"
            raise WrongUsage(f"expected a command ({', '.join(_COMMANDS)}), found {found}")
        options.help, options.command, options.program = "", name, program if dashes else None
        _CHECKS[name](options)
        options.daemon_source = "--daemon" if options.daemon else "TANDEM_DAEMON" if daemon_variable else "the default"
        options.daemon = options.daemon or daemon_variable or DEFAULT_DAEMON
        if 0 < sum(map(bool, (options.tls_ca, options.tls_cert, options.tls_key))) < 3:
            raise WrongUsage("expected --tls_ca, --tls_cert and --tls_key, found some of them")
        return options
    except WrongUsage as error:
        raise WrongUsage(f"{error}\nNext: tandemctl {f'{name} ' if name else ''}--help") from None


def _check_utf8(arguments: Sequence[str]) -> None:
    """Arguments are sent as text, and repeated in messages."""
    for word in arguments:
        try:
            word.encode()
        except UnicodeEncodeError as error:
            byte, offset = ord(word[error.start]) & 0xFF, len(word[: error.start].encode())
            raise WrongUsage(
                f"expected arguments in UTF-8, found the byte 0x{byte:02x} at offset {offset} of {_quoted(word)}"
            ) from None


def _find_command(words: Sequence[str]) -> int:
    """Returns where the command's name is; the options of _EVERYWHERE may come before it."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in {option for option, *_ in _EVERYWHERE} else 1
    return min(at, len(words))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise WrongUsage(message.removeprefix("argument "))


class _Once(argparse.Action):
    """Stores a value, or True for an option without one; refuses the option's second time."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        if getattr(namespace, self.dest) not in (None, False):
            raise argparse.ArgumentError(self, "expected once, found twice")
        setattr(namespace, self.dest, True if self.nargs == 0 else values)


def _parser(name: str) -> argparse.ArgumentParser:
    usages, _, text = _COMMANDS[name]
    usage = "\n       ".join(f"tandemctl {name} {each}" for each in usages.split("\n"))
    formatter = argparse.RawDescriptionHelpFormatter
    parser = _Parser(usage=usage, description=text, formatter_class=formatter, allow_abbrev=False)
    either = parser.add_mutually_exclusive_group()
    for option, metavar, kind, help_text in (*_OPTIONS.get(name, ()), *_EVERYWHERE):
        if kind in (_variable, _axis):
            parser.add_argument(option, metavar=metavar, type=kind, action="append", default=[], help=help_text)
        elif metavar:
            parser.add_argument(option, metavar=metavar, type=kind, action=_Once, help=help_text)
        else:
            group = either if kind is _either else parser
            group.add_argument(option, action=_Once, nargs=0, default=False, help=help_text)
    return parser


def _parse_options(parser: argparse.ArgumentParser, words: list[str]) -> argparse.Namespace:
    actions = parser._actions[1:]  # without --help
    takes_value = {action.option_strings[0] for action in actions if action.nargs != 0}
    joined = []
    rest = iter(words)
    for word in rest:  # a value that begins with a dash is a value
        value = next(rest, None) if word in takes_value else None
        joined.append(word if value is None else f"{word}={value}")
    options, options_words = parser.parse_known_args(joined)
    if unknown := [word for word in options_words if word.startswith("-") and word != "-"]:
        known = ", ".join(f"{action.option_strings[0]} {action.metavar or ''}".strip() for action in actions)
        raise WrongUsage(f"expected {known} or --help, found {_quoted(unknown[0])}")
    options.words = options_words
    return options


def _refuse(expected: str, found: str) -> NoReturn:
    raise argparse.ArgumentTypeError(f"expected {expected}, found {_quoted(found)}")


def _quoted(text: str) -> str:
    return repr(text) if len(text) <= 80 else f"{text[:80]!r}... of {len(text)} characters"


def _text(value: str) -> str:
    return value or _refuse("a value", value)


def _count(value: str) -> int:
    good = re.fullmatch("[0-9]{1,19}", value) and 1 <= int(value) <= _LAST_COUNT
    return int(value) if good else _refuse("a whole number above 0", value)


def _gpus(value: str) -> int:
    good = re.fullmatch("[0-9]{1,9}", value) and int(value) <= _MOST_GPUS
    return int(value) if good else _refuse(f"a number from 0 to {_MOST_GPUS}", value)


def _duration(value: str) -> int:
    """Returns whole seconds, rounded up: the schedule has no others."""
    parts = re.findall(_DURATION_PART, value) if re.fullmatch(f"(?:{_DURATION_PART})+", value) else []
    secs = sum((Decimal(number) * _UNIT_SECS[unit] for number, unit in parts), Decimal(0))
    good = 1 <= secs <= _LAST_COUNT
    return int(secs.to_integral_value(ROUND_CEILING)) if good else _refuse("a time such as 90m, at least 1s", value)


def _variable(value: str) -> tuple[str, str]:
    name, equals, text = value.partition("=")
    return (name, text) if name and equals else _refuse("NAME=VALUE", value)


def _priority(value: str) -> int:
    good = re.fullmatch("-?[0-9]{1,6}", value)
    return int(value) if good else _refuse("a whole number from -999999 to 999999", value)


def _one_of(*values: str) -> Callable[[str], str]:
    return lambda value: value if value in values else _refuse(f"one of {', '.join(values)}", value)


_format, _column = _one_of(*FORMATS), _one_of(*SORTED_COLUMNS)


def _axis(value: str) -> tuple[str, list[Any]]:
    try:
        return grid_values(value)
    except ValueError as error:
        _refuse(str(error), value)


def _states(value: str) -> list[str]:
    states = value.upper().split(",")
    unknown = [state for state in states if state not in STATES]
    return _refuse(f"names among {','.join(STATES).lower()}", unknown[0].lower()) if unknown else states


def _either(value: str) -> NoReturn:
    """Marks options without a value of which one at most may be given."""
    raise AssertionError(value)


def _check_submit(options: argparse.Namespace) -> None:
    if options.words:
        raise WrongUsage(f"expected '--' before PROGRAM, found {_quoted(options.words[0])}")
    if options.config is None:
        if not options.program or not options.program[0]:
            raise WrongUsage("expected -- PROGRAM [ARG]..., or --config FILE, found neither")
        if options.grid and options.watch:
            raise WrongUsage("expected --watch of one run, found --grid beside it; tandemctl watch shows all")
        return
    beside = "name gpus env max_steps max_duration step_stride cpus priority restart frames grid".split()
    if given := [name for name in beside if getattr(options, name) not in (None, [], False)]:
        raise WrongUsage(f"expected the whole run in --config, found --{given[0]} beside it")
    if options.program is not None:
        raise WrongUsage("expected either --config or a PROGRAM, found both")


def _no_words(options: argparse.Namespace) -> None:
    if options.words or options.program is not None:
        raise WrongUsage(f"expected options only, found {_quoted((options.words or ['--'])[0])}")


def _run_ids(expected: str, least: int, most: float) -> Callable[[argparse.Namespace], None]:
    """Returns the check of a number of RUN_IDs, which may also follow "--"."""

    def check(options: argparse.Namespace) -> None:
        options.words += options.program or []
        every = getattr(options, "all", False)
        if "" in options.words:
            raise WrongUsage("expected a RUN_ID, found ''")
        if every and options.words:
            raise WrongUsage("expected either --all or RUN_IDs, found both")
        if not every and not least <= len(options.words) <= most:
            raise WrongUsage(f"expected {expected}, found {' '.join(options.words) or 'none'}")

    return check


def _check_export(options: argparse.Namespace) -> None:
    _run_ids("one RUN_ID", 1, 1)(options)
    options.format = options.format or "csv"
    if options.format != "csv" and not options.out:
        raise WrongUsage(f"expected --out FILE with --format {options.format}, found none")
    if options.format == "tensorboard" and (options.steps or options.episodes or options.lifecycle):
        raise WrongUsage("expected scalars and returns alone with --format tensorboard, found another kind of events")


_CHECKS: dict[str, Callable[[argparse.Namespace], None]] = {
    "submit": _check_submit,
    "sweep": _run_ids("one FILE", 1, 1),
    "best": _no_words,
    "compare": _run_ids("RUN_IDs, or --sweep", 0, float("inf")),
    "list": _no_words,
    "watch": _run_ids("at most one RUN_ID", 0, 1),
    "cancel": _run_ids("RUN_ID..., or --all", 1, float("inf")),
    **dict.fromkeys(("pause", "resume", "delete"), _run_ids("RUN_ID...", 1, float("inf"))),
    "logs": _run_ids("one RUN_ID", 1, 1),
    "export": _check_export,
    "health": _no_words,
}

_EVERYWHERE: list[tuple[str, str, Callable[[str], Any], str]] = [
    ("--daemon", "ADDRESS", _text, "see tandemctl --help"),
    *((f"--{file}", "FILE", _text, "see tandemctl --help") for file in ("token_file", "tls_ca", "tls_cert", "tls_key")),
]

_BY: list[tuple[str, str, Callable[[str], Any], str]] = [
    ("--by", "NAME", _text, "the number to compare: return, the default, or the last value of a scalar of this name"),
    ("--lowest", "", bool, "the lowest number is the best, as of a loss"),
]

# Command -> its own options: name, what its value is, the value's type, help.
_OPTIONS: dict[str, list[tuple[str, str, Callable[[str], Any], str]]] = {
    "submit": [
        ("--name", "NAME", str, "the run's name in tables; default: the program and its arguments"),
        ("--gpus", "N", _gpus, "the run waits until N GPUs are free; the worker sees only these; default 0"),
        (
            "--env",
            "NAME=VALUE",
            _variable,
            "set an environment variable of the worker, in addition to the daemon's; may be repeated",
        ),
        (
            "--max_steps",
            "N",
            _count,
            "end the run after N steps, printed or published; skipped steps (--step_stride) count",
        ),
        (
            "--max_duration",
            "TIME",
            _duration,
            "end the run after TIME since its start, such as 90m or 1h30m; units h, m, s, ms, us",
        ),
        ("--step_stride", "N", _count, "store only each Nth printed step, beginning with the first"),
        ("--cpus", "N", _count, "the run waits until N cores of the daemon are free; default 1"),
        ("--priority", "N", _priority, "runs of a higher priority start first; default 0"),
        (
            "--restart",
            "N",
            _count,
            "start the worker again, up to N times, if it fails, is killed, or is lost with its machine",
        ),
        ("--frames", "", bool, "viewer and page show the frames that the run publishes"),
        (
            "--grid",
            "NAME=VALUES",
            _axis,
            "submit a run for each value, with {NAME} in ARGs and in --env replaced; VALUES are A,B,... or "
            "FIRST..LAST; repeated: a run for each combination",
        ),
        ("--watch", "", bool, "after printing the run_id, continue as `tandemctl watch RUN_ID`"),
        (
            "--config",
            "FILE",
            _text,
            "read the run's whole configuration, in JSON, from FILE, or from standard input if FILE is `-`; "
            'slow_lane/docs/slow_lane.md, "Reference: a run", has the keys',
        ),
    ],
    "best": [("--sweep", "SWEEP", _text, "only runs of this sweep"), *_BY],
    "compare": [
        ("--sweep", "SWEEP", _text, "the runs of this sweep"),
        *_BY,
        ("--json", "", bool, "print a JSON array, the best run first"),
    ],
    "list": [
        ("--sort", "COLUMN", _column, f"order by a column: {', '.join(SORTED_COLUMNS)}; the greatest first"),
        ("--state", "STATE,...", _states, f"only runs in these states: {', '.join(STATES).lower()}"),
        ("--json", "", bool, 'print a JSON object; each of its "runs" has run_id, name, state, created_at, steps, ...'),
    ],
    "cancel": [("--all", "", bool, "end every run that has not ended")],
    "logs": [
        ("--stderr", "", _either, "print the worker's standard error instead"),
        (
            "--malformed",
            "",
            _either,
            "print the run's malformed lines instead: number, offset, length, problem and first bytes of each",
        ),
        ("--follow", "", bool, "wait for more output, until the run ends"),
    ],
    "export": [
        ("--scalars", "", _either, "write the run's scalars, a row for each number"),
        (
            "--format",
            "FORMAT",
            _format,
            "csv, the default; parquet; or tensorboard: --out is then a folder of event files with scalars and returns",
        ),
        ("--steps", "", _either, "write the run's steps; the default"),
        ("--episodes", "", _either, "write the run's episodes"),
        ("--lifecycle", "", _either, "write the run's lifecycle events, such as run_started"),
        (
            "--out",
            "FILE",
            _text,
            "write to FILE, or to its target if FILE is a link; after success the file is complete, after a failure "
            "unchanged; default: standard output",
        ),
    ],
}

# Command -> usage, summary, description.
_COMMANDS = {
    "submit": (
        "[options] -- PROGRAM [ARG]...\n[--watch] --config FILE",
        "submit a run: tandemctl submit -- python train.py",
        """Submits a run to the daemon, and prints the run_id, alone, on standard output.
The daemon starts PROGRAM as the run's worker, in your current folder, with the
daemon's environment. If PROGRAM has no slash, tandemctl searches your PATH.

The worker prints lines. A line is an event line if its first non-blank
character is '{'. A valid event line is an event; any other event line is a
malformed line. The daemon stores each event. For a malformed line it stores the
offset, the length, the problem and the first bytes. All other lines are counted,
and not stored.

Example: run_id=$(tandemctl submit --max_duration 2h -- python train.py --seed 3)""",
    ),
    "sweep": (
        "FILE [options]",
        "submit the runs of a file: combinations and random samples",
        """Submits the runs of a TOML file, and prints the run_ids. The file has the program,
in which {NAME} stands for a parameter, and the parameters' values:

  program = ["python", "train.py", "--lr={lr}", "--algo={algo}", "--seed={seed}"]
  name = "first"            # and other options of submit: cpus, frames, restart, ...
  samples = 20              # of what is drawn, for each combination of the others
  seed = 1                  # of the draws; without it each call draws others

  [parameters]
  algo = ["ppo", "sac"]                     # every combination
  lr = {log_uniform = [1e-5, 1e-2]}         # or uniform, range, choice: drawn
  seed = {range = [0, 999]}""",
    ),
    "best": (
        "[options]",
        "print the run_id of the best run",
        """Prints the run_id of the run with the highest mean return of its last 100 episodes,
alone, on standard output; on standard error the number and the run's parameters.

Example: tandemctl logs $(tandemctl best --sweep 3f9a01bc)""",
    ),
    "compare": (
        "RUN_ID... [options]\n--sweep SWEEP [options]\n[options]",
        "print a table of runs with their parameters, the best first",
        """Prints a table of the runs, the best first: parameters in which they differ, mean
return of the last 100 episodes with its standard error and the number of episodes,
steps, time. With --by NAME the number is the last value of this scalar.""",
    ),
    "list": (
        "[options]",
        "print a table of the runs",
        """Prints a table with a line for each run, in the order of submission. MALFORMED is
the number of malformed lines: `tandemctl logs RUN_ID --malformed` prints these
lines. REMARK says what is wrong with a run, or what the run waits for.

If the daemon is not healthy, tandemctl also prints this on standard error, and
still exits with 0.

Example: tandemctl list --json | jq -r '.runs[] | select(.malformed > 0).run_id'""",
    ),
    "watch": (
        "[RUN_ID] [options]",
        "show the runs live; with a RUN_ID, one run and its last episodes",
        """Without RUN_ID: shows the table of `tandemctl list`, and updates the table each
second. Runs that have not ended come first, newer before older ones. With a RUN_ID:
shows this run and its last 10 episodes.

If standard output is no terminal, or if TERM is "dumb" or not set, tandemctl
prints lines instead: each second, a line for each run that has not ended, and one
last line for each run that ended in this second.

If the daemon stops answering, tandemctl waits until a daemon answers again. If no
daemon answers at the start, tandemctl exits with 1.

Ctrl-C ends tandemctl with exit code 0; runs continue. With a RUN_ID, tandemctl
also ends when the run ends. The exit code then is:
  0  the run is TERMINATED
  1  unknown: the run was removed before tandemctl saw its end (by the
     daemon's --keep_runs, or by `tandemctl delete`)
  3  the run is FAULTED""",
    ),
    "cancel": (
        "RUN_ID... [options]\n--all [options]",
        "end runs with all their processes",
        """Ends runs. The daemon sends SIGTERM to all processes of a run. After 5 s, or the
time of the daemon's flag --kill_grace, it sends SIGKILL to the processes that are
still alive. The daemon stores the events that the worker printed. A run that has
already ended does not change. Exit code 0: no process of the runs is left.

After a minute tandemctl stops waiting, and exits with 1. The daemon continues to
end the runs. This may happen if --kill_grace is more than 30 s.""",
    ),
    "pause": (
        "RUN_ID... [options]",
        "stop all processes of runs",
        """Stops all processes of runs that are EXECUTING, by SIGSTOP. The stopped processes
keep their memory and their GPUs. `tandemctl resume` continues them.""",
    ),
    "resume": ("RUN_ID... [options]", "continue paused runs", "Continues runs that are PAUSED."),
    "delete": (
        "RUN_ID... [options]",
        "remove runs that have ended, with all their events",
        """Removes runs that have ended, with all their events and their folders. A removed
run cannot be restored. To keep the events, run `tandemctl export` first.""",
    ),
    "logs": (
        "RUN_ID [options]",
        "print what a run's worker wrote, or its malformed lines",
        """Prints the standard output of the run's worker unchanged: event lines and all other
lines. tandemctl reads the run's files: run it on the daemon's machine, as a user
with access to these files. With --malformed, tandemctl asks the daemon instead, on
any machine that can connect to the daemon.""",
    ),
    "export": (
        "RUN_ID [options]",
        "write a run's events as CSV, as Parquet, or for TensorBoard",
        """Writes the events of one kind that are stored now, as CSV: a line of column
names, then a line for each event, in order. Quoting follows RFC 4180, lines end
with a newline, numbers are exact (17 digits), times are in UTC. The column attempt
numbers the starts of the run's worker, whose steps may repeat.

Parquet needs the package pyarrow; it has the same columns, as texts and numbers.
TensorBoard's event files need the package tensorboard; they have the run's scalars
under their names, and episode/return and episode/length by the number of steps. Of
a run with several attempts, --out has a folder for each.""",
    ),
    "health": (
        "[options]",
        "print the daemon's state",
        """Prints five lines about the daemon:
  daemon    its address, its pid, and for how long it has run ("up for")
  state     ok, or a problem, such as a full disk: events are not stored, or are
            stored more than 5 s late
  runs      the number of runs in each state, and their steps a second
  watchers  the number of open gRPC calls that stream new events or states
  queued    the bytes of events that are not stored yet, and the age of the
            oldest

Exit codes: 0: the daemon is healthy (state ok). 1: no daemon answers. 3: the
daemon is not healthy.""",
    ),
}

_HELP = f"""Usage: tandemctl [--daemon ADDRESS] [--token_file FILE] COMMAND ...

Submits training runs to a tandem-daemon, and shows them.

{"".join(f"  {name:<8} {summary}{chr(10)}" for name, (_, summary, _) in _COMMANDS.items())}
  --daemon ADDRESS  the daemon's HOST:PORT, or unix:PATH with the PATH of its
                    socket (DATA_DIR/daemon.sock); default: the variable
                    TANDEM_DAEMON, or {DEFAULT_DAEMON} if it is not set
  --token_file FILE the file with the daemon's access token, if the daemon
                    requires one; default: the variable TANDEM_TOKEN_FILE, or
                    no token if it is not set
  --tls_ca FILE     the PEM files for a daemon on another machine: the authority
  --tls_cert FILE   of its certificate, your certificate, and its key; default:
  --tls_key FILE    the variables TANDEM_TLS_CA, TANDEM_TLS_CERT and
                    TANDEM_TLS_KEY, or no TLS if they are not set
  --help            after a command: the help of this command

Exit codes:
  0  success
  1  failure
  2  invalid command line
  3  watch, submit --watch: the run is FAULTED; health: the daemon is not healthy
"""
