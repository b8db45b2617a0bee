"""A run of the daemon with frames and an evaluation, from its submission to its end, in the page."""

import os
import sys
from pathlib import Path

from tandem.telemetry import RunStatus, TrainerClient
from tandem.testing.daemons import Gate, running_daemon
from tandem.testing.engines import watchdog  # noqa: F401, a fixture
from tests.web.page_fixture import Page, running_view, wait_for

# Three batches of two episodes; each batch waits until the test lets it begin.
_PROGRAM = """
import numpy as np
import tandem
from tandem.telemetry import EvalSummaryWriter, EventWriter, RecordEpisodes
with EventWriter().run() as events:
    limit = tandem.TaskOptions(max_episode_steps=20)
    envs = tandem.make_vec("HalfCheetah-v5", num_envs=2, frames=(160, 120), options=limit)
    envs = RecordEpisodes(envs, events, steps=True)
    summary = EvalSummaryWriter()
    envs.reset(seed=0)
    for batch in range(3):
        wait_for(f"batch {batch}")
        returns = np.zeros(2)
        for step in range(20):
            returns += envs.step(envs.action_space.sample())[1]
            time.sleep(0.01)
        summary.add_batch(returns)
        envs.reset()
    wait_for("end")
    envs.close()
"""


def test_frames_open_by_themselves_and_the_evaluation_is_shown(tmp_path: Path) -> None:
    """The daemon is killed twice on the way; every episode is stored once, and no step, as the configuration says."""
    gate = Gate(tmp_path / "gate")
    config = gate.program(_PROGRAM)
    config["environment"]["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    config["metadata"] = {"tandem": {"fast_lane": {"only": True, "video_mode": "single", "slot": 1}}}
    with running_daemon(tmp_path / "data") as daemon, running_view(f"--daemon_target={daemon.address}") as view:
        page = Page()
        page.open(view.address)
        with TrainerClient(daemon.address) as client:
            run_id = client.submit(config).run_id
        gate.open("batch 0")
        wait_for(lambda: page.all("article .picture:not([hidden])"), "an image without a click")
        wait_for(lambda: "evaluation batch 1, 2 episodes" in page.text("article .note"), "the first batch")
        for batch in (1, 2):
            daemon.kill()
            gate.open(f"batch {batch}")
            daemon.start()
            expected = f"evaluation batch {batch + 1}, {2 * batch + 2} episodes"
            wait_for(lambda: expected in page.text("article .note"), expected)  # noqa: B023, called at once
        assert "running" in page.text("article .note") and "6 episodes" in page.text("article .note")
        page.save("linked-run")
        gate.open("end")
        wait_for(lambda: "test: finished" in page.text("article .note"), "the end of the run in its tile")
        assert page.text("article h2") == "test"
        wait_for(lambda: page.text("article .badge") == "ENDED", "a neutral state")
        assert page.all("article .picture:not([hidden])"), "the last picture"
        assert page.errors() == []
        page.close()
        with TrainerClient(daemon.address) as client:
            (run,) = client.runs()
            episodes = list(client.episodes(run_id))
            assert run.status is RunStatus.TERM, run.failure_reason
            assert [episode.steps for episode in episodes] == 6 * [20]
            assert list(client.steps(run_id)) == []
            assert [event.event for event in client.lifecycle(run_id)] == ["run_started", "run_completed"]
