"""Tests of the example command_a_run."""

import re
import signal
from pathlib import Path

from tandem.testing.engines import start_python, watchdog  # noqa: F401, a fixture

_SCRIPT = Path(__file__).with_name("command_a_run.py")


def test_commands_work_while_a_run_goes_on(tmp_path: Path) -> None:
    """The script reports the bodies, the contract and the exchanges; the steps continue during the commands."""
    script = start_python(_SCRIPT, "--num_envs=3", "--seconds=0.3", f"--out={tmp_path}")
    out, err = script.communicate()
    assert script.returncode == 0, err
    assert "among them the bodies" in out and "torso" in out
    assert "contract taken on" in out
    frames = [int(number.replace(",", "")) for number in re.findall(r"^  exchange +([0-9,]+):", out, re.MULTILINE)]
    assert len(frames) >= 2 and frames == sorted(frames)
    exchanges = re.search(r"^meanwhile: ([0-9,]+)", out, re.MULTILINE)
    assert exchanges and int(exchanges[1].replace(",", "")) >= frames[-1]
    if "no picture" not in out:
        assert (tmp_path / "cheetah.png").read_bytes().startswith(b"\x89PNG")


def test_ctrl_c_ends_the_example(tmp_path: Path) -> None:
    """After SIGINT the script exits with code 1 and prints no traceback."""
    script = start_python(_SCRIPT, "--num_envs=2", "--seconds=1000", f"--out={tmp_path}")
    assert script.stdout is not None
    while not script.stdout.readline().startswith("  exchange"):
        assert script.poll() is None
    script.send_signal(signal.SIGINT)
    _, err = script.communicate()
    assert script.returncode == 1 and err.strip() == "interrupted"
