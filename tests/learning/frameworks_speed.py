"""Measures the steps a second of each framework's training on Tandem, and on the framework's own vector environment.

Runs recipes of client_py/examples/frameworks on CartPole-v1: with Tandem's task in C++, with Gymnasium's environment in
Tandem's workers, and with the framework's own vector environment. These trainings take turns. A rate is that of whole
rollouts with their updates, without the first two.
"""

import argparse
import sys
from statistics import median

from tests.learning.own_environments import name_of
from tests.learning.recipe_runs import FRAMEWORKS, HORIZON, Asked, train
from tests.learning.table import spread

_KINDS = ("native", "python", "own")
_UNMEASURED = 2  # rollouts; they compile and load


def rate(framework: str, environments: str, num_envs: int, updates: int) -> float:
    """Trains once; returns steps a second, of all environments together."""
    steps = HORIZON * num_envs * (_UNMEASURED + updates + 1)  # the last rollout's end is not seen
    found = train(Asked(framework, 0, steps, num_envs, conditions=("off",), environments=environments))
    secs = [segment[1] for segment in found.segments[_UNMEASURED : _UNMEASURED + updates]]
    return HORIZON * num_envs * len(secs) / sum(secs)


def main() -> None:
    """Trains, and prints the table."""
    parser = argparse.ArgumentParser(
        prog="tools/frameworks_speed", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--frameworks", nargs="+", choices=FRAMEWORKS, default=list(FRAMEWORKS))
    parser.add_argument("--num_envs", type=int, nargs="+", default=[16, 64])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--updates", type=int, default=20, help="measured rollouts of a training")
    asked = parser.parse_args()
    print(
        "| framework | environments | its own: steps/s | Tandem, C++: steps/s | relative | Tandem, Python: relative |\n"
        "|---|--:|--:|--:|--:|--:|"
    )
    for framework in asked.frameworks:
        for num_envs in asked.num_envs:
            rates: dict[str, list[float]] = {kind: [] for kind in _KINDS}
            for number in range(asked.rounds):
                turn = number % len(_KINDS)
                for kind in (*_KINDS[turn:], *_KINDS[:turn]):
                    rates[kind].append(rate(framework, kind, num_envs, asked.updates))
            relative = {
                kind: [one / own for one, own in zip(rates[kind], rates["own"], strict=True)] for kind in _KINDS[:2]
            }
            print(
                f"| {framework} | {num_envs} | {name_of(framework)}: {median(rates['own']):,.0f} | "
                f"{median(rates['native']):,.0f} | {spread(relative['native'], 2)} | {spread(relative['python'], 2)} |",
                flush=True,
            )
    print(f"\nmedian (least .. greatest) of {asked.rounds} rounds, {asked.updates} rollouts each")
    sys.exit(0)


if __name__ == "__main__":
    main()
