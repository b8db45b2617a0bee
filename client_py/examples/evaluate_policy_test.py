"""The example evaluate_policy, with a policy that train_with_telemetry has just learnt."""

import json
from pathlib import Path

from tandem.testing.engines import start_python, watchdog  # noqa: F401, a fixture

_FOLDER = Path(__file__).parent


def test_a_trained_policy_balances(tmp_path: Path) -> None:
    """Its mean return is at least 100; the file has all episodes, each of which is also an event."""
    policy, out = tmp_path / "policy.npy", tmp_path / "eval.json"
    training = start_python(_FOLDER / "train_with_telemetry.py", f"--policy={policy}")
    _, err = training.communicate()
    assert training.returncode == 0, err
    flags = (str(policy), "--batches=2", "--num_envs=4", f"--out={out}")
    evaluation = start_python(_FOLDER / "evaluate_policy.py", *flags)
    printed, err = evaluation.communicate()
    assert evaluation.returncode == 0, err
    summary = json.loads(out.read_text())
    assert summary["batch_index"] == 2 and summary["episodes"] == 8
    assert summary["min_return"] <= summary["avg_return"] <= summary["max_return"] and summary["avg_return"] > 100
    episodes = [json.loads(line) for line in printed.splitlines() if '"episode"' in line]
    assert max(episode["total_reward"] for episode in episodes) == summary["max_return"]


def test_a_missing_policy_is_refused(tmp_path: Path) -> None:
    """As a wrong command line, with the path."""
    flags = (str(tmp_path / "none.npy"), f"--out={tmp_path / 'e.json'}")
    evaluation = start_python(_FOLDER / "evaluate_policy.py", *flags)
    _, err = evaluation.communicate()
    assert evaluation.returncode == 2 and "none.npy" in err
