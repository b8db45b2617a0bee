"""The suite as a program: its arguments, its report, and engines that break rules."""

import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

_SUITE = Path("engine_adapter/conformance/suite")
_FIELDS = Path("engine_adapter/conformance/fields_server")
_REFERENCE = Path("engine_adapter/conformance/reference/server")
_TICKED = Path("engine_adapter/conformance/reference/ticked_server")


def _run(*words: str | Path) -> tuple[int, str, str]:
    done = subprocess.run([_SUITE, *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_help_lists_the_suites_own_flags() -> None:
    """And not those of googletest. A --help behind ENGINE is the engine's."""
    code, out, err = _run("--help")
    assert (code, err) == (0, "")
    flags = re.findall(r"^  --(\w+)", out, re.MULTILINE)
    assert flags == ["actions", "detect", "filter", "limit_flag", "list", "python", "rule_secs"]
    assert "gtest" not in out


def test_list_prints_the_names_of_the_rules() -> None:
    """Of each group; --filter selects some."""
    _, out, _ = _run("--list")
    groups = {name.partition(".")[0] for name in out.split()}
    assert groups >= {"Cameras", "Contracts", "Episodes", "Fields", "Frames", "Gpu", "Images", "Processes", "Services"}
    _, some, _ = _run("--list", "--filter=Frames.")
    assert some.split() == [name for name in out.split() if name.startswith("Frames.")]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "ENGINE: expected the path"),
        (["./no_such_engine"], "no file './no_such_engine'"),
        (["no_such_engine"], "no file 'no_such_engine'"),
        (["--no_such_flag", _REFERENCE], "expected one of the flags --actions"),
        (["--actions=fast", _REFERENCE], "--actions: expected numbers"),
        (["--actions=nan", _REFERENCE], "--actions: expected numbers"),
        (["--rule_secs", "0", _REFERENCE], "--rule_secs: expected whole seconds"),
        (["--filter=NoSuchRule", _REFERENCE], "--filter: expected a part of a rule's name, found 'NoSuchRule'"),
        (["--limit_flag"], "--limit_flag: expected"),
        (["--python=no_such_python", __file__], "--python: expected a program"),
        ([_REFERENCE, "--no_such_flag"], "no_such_flag"),
    ],
)
def test_wrong_arguments_are_named(words: list[str | Path], expected: str) -> None:
    """Exit code 2, and what was expected."""
    code, out, err = _run(*words)
    assert code == 2 and expected in err and out == "", (out, err)


def test_a_file_that_may_not_be_executed_is_named(tmp_path: Path) -> None:
    """And what makes it a program. In this folder alone it needs a path."""
    engine = tmp_path / "engine"
    engine.write_text("#!/bin/sh\n")
    code, _, err = _run(engine)
    assert code == 2 and "may not be executed" in err and "chmod +x" in err
    command: list[str | Path] = [_SUITE.absolute(), "engine"]
    environment = {"PATH": "/usr/bin:/bin"}  # a test's own has this folder
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "write ./engine" in done.stderr


def test_an_engine_that_does_not_serve_is_shown_with_its_last_lines(tmp_path: Path) -> None:
    """Exit code 1: it has ended, or is no program of this machine."""
    engine = tmp_path / "engine"
    engine.write_text("#!/bin/sh\nseq 20 >&2\nexit 3\n")
    engine.chmod(0o755)
    code, _, err = _run(engine)
    assert code == 1 and "exit code 3" in err
    assert err.split()[-10:] == [str(line) for line in range(11, 21)]
    engine.write_bytes(b"\x7fELF of another machine")
    code, _, err = _run(engine)
    assert code == 1 and "expected a program that this machine can execute" in err


def test_an_engine_that_hangs_at_its_start_is_killed(tmp_path: Path) -> None:
    """After --rule_secs."""
    engine = tmp_path / "engine"
    engine.write_text("#!/bin/sh\necho loading >&2\nexec sleep 1000\n")
    engine.chmod(0o755)
    code, _, err = _run("--rule_secs=1", engine)
    assert code == 1 and "--rule_secs" in err and "loading" in err


def test_an_unknown_limit_flag_is_explained() -> None:
    """With the engine's own words, and what is left out without it."""
    code, _, err = _run("--limit_flag=no_such_flag", _REFERENCE)
    assert code == 2 and "truncates each episode after N steps" in err and "are then skipped" in err
    assert "InvalidArgument" in err  # the engine's


def test_the_report_has_capabilities_then_rules_then_numbers() -> None:
    """Without --limit_flag the rules about ends of episodes are skipped. The engine's own help is not shown."""
    code, out, err = _run("--filter=Episodes", _REFERENCE)
    assert (code, err) == (0, "")
    assert "engine    Counter, observations float32[4], actions float32[1]" in out
    assert re.search("^services  .*scene", out, re.MULTILINE)
    assert "with      contracts" in out and "with      a camera" in out and "without   fields" in out
    assert "without   frames (--frames): " in out
    rules = re.findall(r"^skipped  Episodes\.\w+: engine without a flag that limits episodes", out, re.MULTILINE)
    assert len(rules) > 5 and out.endswith(f"0 passed, 0 failed, {len(rules)} skipped\n")
    code, out, _ = _run("--filter=HelpListsFlags", _REFERENCE)
    assert code == 0 and "ok       Processes.HelpListsFlags\n1 passed, 0 failed, 0 skipped\n" in out
    assert "--num_envs" not in out


@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        ("reset", "Steps.ResetOnlyLeavesTheOthersUntouched"),
        ("reward", "Fields.RewardsAreTheRoundedFieldOfRewards"),
        ("image", "Images.TheSameSeedGivesTheSameImages"),
        ("frame", "Frames.ARequestedFrameHasATileForEachEnvironment"),
        ("contract", "Contracts.TheSameSeedDrawsTheSameAndAnotherDrawsOtherwise"),
    ],
)
def test_a_broken_rule_fails(fault: str, rule: str) -> None:
    """By the engine with fields, which passes without the fault (fields_test)."""
    code, out, _ = _run(f"--filter={rule}", _FIELDS, f"--fault={fault}")
    assert code == 1 and f"FAILED   {rule}\n" in out and out.endswith("0 passed, 1 failed, 0 skipped\n"), out
    assert "serving 'tandem-conformance-" in out  # the engine's last lines


def test_a_rule_that_hangs_fails_and_the_next_is_checked() -> None:
    """The suite kills the engine after --rule_secs."""
    code, out, _ = _run("--rule_secs=10", "--filter=Rewards", _FIELDS, "--fault=hang")
    assert code == 1 and "expected an end within 10 s (--rule_secs)" in out
    assert out.endswith("0 passed, 1 failed, 0 skipped\n")


def test_ctrl_c_ends_the_suite_and_its_engines() -> None:
    """In the middle of a step; no region remains."""
    words: list[str | Path] = [
        "--filter=AStepStepsEveryEnvironment",
        _TICKED,
        "--tick_hz=5",
        "--ticks_per_step=1000000",
    ]
    with subprocess.Popen([_SUITE, *words], stdout=subprocess.PIPE, text=True) as suite:
        assert suite.stdout is not None
        while "GPU" not in suite.stdout.readline():  # the last capability
            assert suite.poll() is None
        while not list(Path("/dev/shm").glob(f"tandem-conformance-{suite.pid}-*")):
            time.sleep(0.01)
        suite.send_signal(signal.SIGINT)
        suite.communicate()
    assert suite.returncode == -signal.SIGINT
    assert not list(Path("/dev/shm").glob(f"*tandem-conformance-{suite.pid}-*"))
