"""The command line of tandemctl: accepted and refused words, and --help."""

import subprocess
import sys
from typing import Any

import pytest

from tandem.telemetry.connection import DEFAULT_TARGET
from tandemctl.command_line import STATES, WrongUsage, parse

_COMMANDS = ("submit", "list", "watch", "cancel", "pause", "resume", "delete", "logs", "export", "health")


def _parsed(line: str, **expected: Any) -> None:
    options = parse(line.split(), "")
    assert {name: getattr(options, name) for name in expected} == expected, line


def _refusal(*words: str, variable: str = "") -> str:
    with pytest.raises(WrongUsage, match=r"\nNext: tandemctl .*--help$") as refused:
        parse(words, variable)
    return str(refused.value)


@pytest.mark.parametrize(
    ("line", "variable", "address", "source"),
    [
        ("list", "", DEFAULT_TARGET, "the default"),
        ("list", "unix:/x", "unix:/x", "TANDEM_DAEMON"),
        ("list --daemon h:1", "unix:/x", "h:1", "--daemon"),
        ("--daemon=h:1 list", "", "h:1", "--daemon"),
        ("--daemon list list", "", "list", "--daemon"),
    ],
)
def test_daemon_address_is_from_the_option_the_variable_or_the_default(
    line: str, variable: str, address: str, source: str
) -> None:
    """The precedence is in this order; --daemon may precede the command."""
    options = parse(line.split(), variable)
    assert (options.command, options.daemon, options.daemon_source) == ("list", address, source)


def test_every_option_is_taken() -> None:
    """Both forms work; a value may begin with a dash; the words after "--" belong to the program."""
    line = (
        "submit --name ant --gpus=2 --env A=b=c --env=D= --max_steps 1000 --max_duration 90m --step_stride 10 --watch"
    )
    _parsed(
        f"{line} --token_file t -- python train.py --name x --help --",
        name="ant",
        gpus=2,
        env=[("A", "b=c"), ("D", "")],
        max_steps=1000,
        max_duration=5400,
        step_stride=10,
        watch=True,
        token_file="t",
        program=["python", "train.py", "--name", "x", "--help", "--"],
        help="",
    )
    _parsed("--tls_ca a --tls_cert c --tls_key=k list", tls_ca="a", tls_cert="c", tls_key="k")
    _parsed("submit --name -x --env=-y=1 -- a", name="-x", env=[("-y", "1")])
    _parsed("submit --name= -- a", name="")
    _parsed("submit --config -", config="-")
    _parsed("submit --config=f --watch", config="f", watch=True)
    _parsed("list --state executing,FAULTED --json", state=["EXECUTING", "FAULTED"], json=True)
    _parsed("list", state=None, json=False)
    _parsed("watch", words=[])
    _parsed("watch a", words=["a"])
    _parsed("watch caf\u00e9", words=["caf\u00e9"])
    _parsed("cancel a --daemon h:1 b -- c", words=["a", "b", "c"], daemon="h:1")
    _parsed("cancel --all", all=True)
    _parsed("logs --follow --stderr a", words=["a"], follow=True, stderr=True, malformed=False)
    _parsed("logs a --malformed", malformed=True)
    _parsed("export a --lifecycle --out f", lifecycle=True, out="f")
    _parsed("export -", words=["-"])


@pytest.mark.parametrize(
    ("given", "secs"), [("1s", 1), ("1.5s", 2), ("90m", 5400), ("2h30m", 9000), ("1000ms", 1), (".5h", 1800)]
)
def test_durations_are_rounded_up_to_seconds(given: str, secs: int) -> None:
    """The run's schedule has whole seconds."""
    _parsed(f"submit --max_duration {given} -- a", max_duration=secs)


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("", "expected a command (submit, sweep,"),
        ("run", "found 'run'"),
        ("--verbose list", "found '--verbose'"),
        ("--daemon", "--daemon: expected one argument"),
        (
            "list --nonsense",
            "--json, --daemon ADDRESS, --token_file FILE, --tls_ca FILE, --tls_cert FILE, --tls_key FILE or --help, "
            "found '--nonsense'",
        ),
        ("list --stat=x", "found '--stat=x'"),
        ("list --state", "--state: expected one argument"),
        ("list --json=yes", "--json"),
        ("list --state=ready --state=ready", "--state: expected once, found twice"),
        ("list --daemon a --daemon b", "--daemon: expected once, found twice"),
        ("list --daemon=", "--daemon: expected a value"),
        ("list --token_file=", "--token_file: expected a value"),
        ("list --tls_ca a --tls_key k", "expected --tls_ca, --tls_cert and --tls_key"),
        ("list --state dead", "initialized,handshake,ready,executing"),
        ("list --state=", "found ''"),
        ("list x", "expected options only, found 'x'"),
        ("list --", "expected options only, found '--'"),
        ("health x", "found 'x'"),
        ("submit", "found neither"),
        ("submit --", "found neither"),
        ("submit python", "expected '--' before PROGRAM, found 'python'"),
        ("submit --name -- x", "--name: expected one argument"),
        ("submit --gpus 9 -- a", "--gpus: expected a number from 0 to 8, found '9'"),
        ("submit --gpus -1 -- a", "found '-1'"),
        ("submit --env A -- a", "--env: expected NAME=VALUE, found 'A'"),
        ("submit --env =1 -- a", "found '=1'"),
        ("submit --max_steps 0 -- a", "found '0'"),
        ("submit --max_steps 1e3 -- a", "found '1e3'"),
        ("submit --step_stride 18446744073709551615 -- a", "--step_stride: expected a whole number above 0"),
        ("submit --max_duration 90 -- a", "such as 90m"),
        ("submit --max_duration inf -- a", "found 'inf'"),
        ("submit --max_duration -5m -- a", "found '-5m'"),
        ("submit --max_duration 0.9s -- a", "at least 1s"),
        ("submit --config f --name x", "found --name beside it"),
        ("submit --config f -- python", "found both"),
        ("submit --config=", "--config: expected a value"),
        ("watch a b", "expected at most one RUN_ID, found a b"),
        ("cancel", "expected RUN_ID..., or --all, found none"),
        ("cancel --all a", "found both"),
        ("pause", "expected RUN_ID..., found none"),
        ("resume --all", "found '--all'"),
        ("delete --all", "found '--all'"),
        ("logs", "expected one RUN_ID, found none"),
        ("logs a --stderr --malformed", "not allowed with"),
        ("export a --steps --episodes", "not allowed with"),
        ("export a --out=", "--out: expected a value"),
    ],
)
def test_invalid_values_are_refused(line: str, part: str) -> None:
    """The error has the refused word, and the --help to read."""
    assert part in _refusal(*line.split())


@pytest.mark.parametrize("words", [["watch", ""], ["cancel", ""], ["submit", "--", ""]])
def test_an_empty_word_is_refused(words: list[str]) -> None:
    """It is neither a run_id nor a program."""
    _refusal(*words)


@pytest.mark.parametrize("words", [["watch", "a\udcff"], ["submit", "--", "python", "a\udcff"], ["a\udcff"]])
def test_words_that_are_no_utf8_are_refused(words: list[str]) -> None:
    """The error has the byte and its offset."""
    assert "the byte 0xff at offset 1 of 'a\\udcff'" in _refusal(*words)


def test_help_comes_before_errors() -> None:
    """The help is the named command's, or tandemctl's, even if other words are invalid."""
    for command in _COMMANDS:
        assert parse([command, "--help"], "").help.startswith(f"Usage: tandemctl {command}")
        assert f"\n  {command}" in parse(["--help"], "").help
    for line in ("list --nonsense -h", "submit --gpus x --help", "submit --name --help", "list --daemon= --help"):
        assert parse(line.split(), "h:99999").help


def test_states_are_those_of_the_wire() -> None:
    """The order is that of RunStatus's numbers."""
    from tandem.telemetry import RunStatus

    letters = [state[0] for state in STATES]
    assert letters == [RunStatus(number).name[0] for number in range(1, 8)]
    assert {state for state in STATES if RunStatus(STATES.index(state) + 1).final} == {"FAULTED", "TERMINATED"}


def test_default_port_is_the_daemons() -> None:
    """Both are Constant.DEFAULT_PORT of slow_lane.proto."""
    from tandem.telemetry.wire import load

    assert DEFAULT_TARGET == f"127.0.0.1:{load().constants['DEFAULT_PORT']}"


def test_help_and_refusals_import_no_package() -> None:
    """Only the standard library is imported, so that the output comes at once."""
    program = """
import sys, tandemctl.main
for words in (["--help"], ["submit", "--help"], ["list", "x"]):
    tandemctl.main.run(words)
print([name for name in ("grpc", "numpy", "rich", "tandem") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("\n[]\n")
