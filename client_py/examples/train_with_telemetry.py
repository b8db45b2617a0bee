"""Teaches CartPole-v1 to balance in seconds, and prints what happens as events: one line of JSON each.

Run by hand, the events are on standard output, and a line for people is on standard error. Submitted to Tandem's
daemon, the same program's events are in its database and reach its watchers:

    tandemctl submit -- python client_py/examples/train_with_telemetry.py

The method is the cross-entropy method: each environment runs one episode of a linear policy drawn at random, and the
next ones are drawn from around the best of them.
"""

import argparse
import contextlib
import sys

import gymnasium
import numpy as np
from numpy.typing import NDArray

import tandem
from tandem.telemetry import EventWriter, RecordEpisodes

TOP_SHARE = 0.2  # of the policies, the best, are where the next ones are drawn from
LEAST_NOISE = 0.05  # standard deviation: the search never stops

Array = NDArray[np.float64]


class Search:
    """The cross-entropy method over the weights of linear policies."""

    def __init__(self, envs: gymnasium.vector.VectorEnv, seed: int) -> None:
        """Starts around the policy that always does the same."""
        self.envs = envs
        self.rng = np.random.default_rng(seed)
        space = envs.single_action_space
        outputs = int(space.n) if isinstance(space, gymnasium.spaces.Discrete) else gymnasium.spaces.flatdim(space)
        self.mean = np.zeros((outputs, gymnasium.spaces.flatdim(envs.single_observation_space) + 1))
        self.deviation = np.ones_like(self.mean)

    def iterate(self) -> Array:
        """Tries a policy in each environment, then moves towards the best; returns their returns, float64[num_envs]."""
        num_envs = self.envs.num_envs
        policies = self.mean + self.deviation * self.rng.standard_normal((num_envs, *self.mean.shape))
        returns = self.run_episodes(policies)
        best = policies[np.argsort(returns)[-max(1, round(num_envs * TOP_SHARE)) :]]
        self.mean, self.deviation = best.mean(axis=0), np.maximum(best.std(axis=0), LEAST_NOISE)
        return returns

    def run_episodes(self, policies: Array) -> Array:
        """Runs one episode in each environment; returns each one's sum of rewards, float64[num_envs].

        `policies` is float64[num_envs, outputs, obs_size + 1], the last column for a constant input.
        """
        obs, _ = self.envs.reset(seed=int(self.rng.integers(2**31)))
        returns, running = np.zeros(len(policies)), np.ones(len(policies), np.bool_)
        while running.any():
            inputs = np.concatenate([obs, np.ones((len(obs), 1))], axis=1)
            outputs = np.einsum("nij,nj->ni", policies, inputs)
            space = self.envs.single_action_space
            if isinstance(space, gymnasium.spaces.Box):
                actions = np.clip(outputs, space.low, space.high)
            else:
                actions = outputs.argmax(axis=1)
            obs, rewards, terminations, truncations, _ = self.envs.step(actions)
            returns += rewards * running  # a finished one waits for the others, in an episode that does not count
            running &= ~(terminations | truncations)
        return returns


def main() -> None:
    """Trains, and prints what happens."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", default="CartPole-v1", help="any that tandem.make_vec knows")
    parser.add_argument("--num_envs", type=int, default=32, help="policies tried at a time")
    parser.add_argument("--iterations", type=int, default=10, help="how often to move towards the best")
    parser.add_argument("--seed", type=int, default=0, help="of the search and of the environments")
    parser.add_argument("--steps", action="store_true", help="print each step, too, rather than episodes alone")
    parser.add_argument("--frames", metavar="WIDTHxHEIGHT", help="draw environments for viewers")
    parser.add_argument("--policy", metavar="FILE", help="save the policy as FILE, *.npy, for evaluate_policy.py")
    arguments = parser.parse_args()
    if min(arguments.num_envs, arguments.iterations) < 1 or arguments.seed < 0:
        parser.error("--num_envs, --iterations and --seed: expected positive numbers")

    with EventWriter().run(env_id=arguments.task, algo="cem", seed=arguments.seed) as events:
        envs = tandem.make_vec(arguments.task, num_envs=arguments.num_envs, frames=arguments.frames)
        with contextlib.closing(envs):
            events.lifecycle("engine_started", {"region": envs.client.name})  # what viewers find it by
            search = Search(RecordEpisodes(envs, events, steps=arguments.steps), arguments.seed)
            for iteration in range(arguments.iterations):
                returns = search.iterate()
                events.lifecycle(
                    "iteration", {"iteration": iteration, "mean_return": returns.mean(), "best_return": returns.max()}
                )
                events.scalars(iteration, {"return/mean": returns.mean(), "return/deviation": returns.std()})
                print(f"iteration {iteration:3d}   return {returns.mean():8.1f}", file=sys.stderr, flush=True)
            if arguments.policy:
                np.save(arguments.policy, search.mean)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("interrupted")
