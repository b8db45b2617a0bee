"""Evaluates a policy that train_with_telemetry.py has saved, and shows the results in viewers while it runs.

Submitted to Tandem's daemon, its episodes are in the daemon's database, and `tandem-view` shows the results so far:

    tandemctl submit -- python client_py/examples/train_with_telemetry.py --policy /tmp/policy.npy
    tandemctl submit -- python client_py/examples/evaluate_policy.py /tmp/policy.npy --frames 320x240
"""

import argparse
import contextlib
import sys
from pathlib import Path

import gymnasium
import numpy as np
from numpy.typing import NDArray

import tandem
from tandem.telemetry import EvalSummaryWriter, EventWriter, RecordEpisodes

Array = NDArray[np.float64]


def run_episodes(envs: gymnasium.vector.VectorEnv, policy: Array, seed: int) -> Array:
    """Runs one episode in each environment, i from seed + i; returns each one's sum of rewards, float64[num_envs].

    The policy is float64[outputs, obs_size + 1], the last column for a constant input.
    """
    obs, _ = envs.reset(seed=seed)
    returns, running = np.zeros(envs.num_envs), np.ones(envs.num_envs, np.bool_)
    while running.any():
        outputs = np.concatenate([obs, np.ones((len(obs), 1))], axis=1) @ policy.T
        space = envs.single_action_space
        if isinstance(space, gymnasium.spaces.Box):
            actions = np.clip(outputs, space.low, space.high)
        else:
            actions = outputs.argmax(axis=1)
        obs, rewards, terminations, truncations, _ = envs.step(actions)
        returns += rewards * running
        running &= ~(terminations | truncations)
    return returns


def main() -> None:
    """Evaluates, and prints what happens."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policy", type=Path, help="a file *.npy of train_with_telemetry.py --policy")
    parser.add_argument("--task", default="CartPole-v1", help="the task that the policy has learnt")
    parser.add_argument("--num_envs", type=int, default=8, help="episodes of a batch")
    parser.add_argument("--batches", type=int, default=5, help="batches of episodes")
    parser.add_argument("--frames", metavar="WIDTHxHEIGHT", help="draw environments for viewers")
    parser.add_argument("--out", type=Path, help="the file of the results; default: in the folder of the daemon's run")
    arguments = parser.parse_args()
    if min(arguments.num_envs, arguments.batches) < 1:
        parser.error("--num_envs and --batches: expected positive numbers")
    try:
        policy = np.load(arguments.policy)
        summary = EvalSummaryWriter(arguments.out)
    except (OSError, ValueError) as error:
        parser.error(str(error))

    with EventWriter().run(env_id=arguments.task, algo="evaluation") as events:
        envs = tandem.make_vec(arguments.task, num_envs=arguments.num_envs, frames=arguments.frames)
        with contextlib.closing(envs):
            events.lifecycle("engine_started", {"region": envs.client.name})
            recorded = RecordEpisodes(envs, events)
            for batch in range(arguments.batches):
                returns = run_episodes(recorded, policy, 10**6 + batch * arguments.num_envs)
                summary.add_batch(returns)
                print(f"batch {batch:3d}   return {returns.mean():8.1f}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("interrupted")
