"""Teaches HalfCheetah-v5 to run in about a minute: augmented random search, a linear policy, nothing but NumPy.

The method is ARS V2-t of Mania, Guy and Recht, "Simple random search provides a competitive approach to reinforcement
learning" (2018). Each environment runs one perturbed copy of the policy, one half of them the opposites of the other
half, so that a whole iteration is one batch of episodes in the engine, stepped in lock-step through shared memory.

With --server it teaches the task of an engine of your own, such as a game of Godot. Tasks with few numbers need larger
steps, such as --noise=0.2 --step_size=0.12.

Ctrl-C ends the training early; what was learnt until then is evaluated, shown and drawn.
"""

import argparse
import math
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import tandem
from tandem.environments.description import describe

TASK = "HalfCheetah-v5"
EPISODE_STEPS = 1000  # the task cuts episodes off there
STEP_SIZE = 0.03
NOISE = 0.03  # standard deviation of a perturbation
TOP_SHARE = 0.25  # of the directions, the best, take part in an update

Array = NDArray[np.float64]


@dataclass
class Normaliser:
    """Running mean and deviation of all observations seen (Welford's method, a batch at a time)."""

    size: int
    count: float = 1e-4
    mean: Array = field(init=False)
    squares: Array = field(init=False)

    def __post_init__(self) -> None:
        """Starts from mean 0 and deviation 1."""
        self.mean, self.squares = np.zeros(self.size), np.full(self.size, self.count)

    def add(self, count: int, total: Array, total_of_squares: Array) -> None:
        """Takes in `count` observations, given their sums, each float64[obs_size]."""
        mean = total / count
        apart = mean - self.mean
        whole = self.count + count
        self.squares += np.maximum(total_of_squares - count * mean**2, 0) + apart**2 * self.count * count / whole
        self.mean += apart * count / whole
        self.count = whole

    @property
    def deviation(self) -> Array:
        """Standard deviation, float64[obs_size]."""
        return np.maximum(np.sqrt(self.squares / self.count), 1e-6)


def run_episodes(
    client: tandem.SharedMemoryClient,
    weights: Array,
    normaliser: Normaliser,
    seed: int,
    *,
    learn: bool,
    steps: int = EPISODE_STEPS,
) -> Array:
    """Runs one episode in each environment, i from seed + i; returns each one's sum of rewards, float64[num_envs].

    An episode that ends before `steps` counts up to its end. `weights` is float64[num_envs, act_size, obs_size],
    one linear policy for each environment. `normaliser` scales the observations; it takes them in afterwards if
    `learn`.
    """
    # (obs - mean) / deviation @ weights, with the scaling folded into weights and offset.
    scaled = (weights / normaliser.deviation).astype(np.float32)
    offset = (scaled @ normaliser.mean.astype(np.float32)).astype(np.float32)
    returns, total, squares = np.zeros(client.num_envs), np.zeros(client.obs_size), np.zeros(client.obs_size)
    running = np.ones(client.num_envs, bool)  # in its first episode
    obs = client.reset(seed=seed)
    for _ in range(steps):
        if learn:
            total += obs.sum(axis=0)
            squares += np.einsum("ij,ij->j", obs, obs)
        actions = np.matmul(scaled, obs[:, :, None])[:, :, 0] - offset
        np.clip(actions, -1, 1, out=client.actions)  # straight into the engine's memory
        obs, rewards, dones = client.step(client.actions)
        returns += np.where(running, rewards, 0)
        running &= dones == 0
    if learn:
        normaliser.add(steps * client.num_envs, total, squares)
    return returns


def random_return(client: tandem.SharedMemoryClient, rng: np.random.Generator, steps: int = EPISODE_STEPS) -> float:
    """Runs an episode of uniformly random actions in every environment; returns the mean return."""
    returns, running = np.zeros(client.num_envs), np.ones(client.num_envs, bool)
    client.reset(seed=0)
    for _ in range(steps):
        client.actions[:] = rng.uniform(-1, 1, client.actions.shape)
        _, rewards, dones = client.step(client.actions)
        returns += np.where(running, rewards, 0)
        running &= dones == 0
    return float(returns.mean())


def episode_steps(client: tandem.SharedMemoryClient) -> int:
    """Returns the steps that truncate an episode. Exits for a task that a linear policy of rows cannot learn."""
    if not client.obs_size or not client.act_size:
        sys.exit(
            f"{client.task}: expected observations and actions as rows of float32, found fields; try train_ppo_sb3"
        )
    steps = describe(client).max_episode_steps
    if steps is None:
        sys.exit(f"{client.task}: expected episodes with a limit of steps, found none; set max_episode_steps")
    return steps


class Search:
    """Augmented random search, V2-t."""

    def __init__(
        self,
        client: tandem.SharedMemoryClient,
        seed: int,
        *,
        noise: float = NOISE,
        step_size: float = STEP_SIZE,
        steps: int = EPISODE_STEPS,
    ) -> None:
        """Starts from the policy that does nothing."""
        self.client = client
        self.seed, self.noise, self.step_size, self.steps = seed, noise, step_size, steps
        self.rng = np.random.default_rng(seed)
        self.weights = np.zeros((client.act_size, client.obs_size))
        self.normaliser = Normaliser(client.obs_size)
        self.curve: list[tuple[int, float]] = []  # environment steps so far, mean return of the iteration

    def iterate(self) -> float:
        """Tries num_envs / 2 directions both ways and moves along the best; returns the mean return."""
        half = self.client.num_envs // 2
        directions = self.rng.standard_normal((half, *self.weights.shape))
        tries = self.weights + self.noise * np.concatenate([directions, -directions])
        seed = int(self.rng.integers(2**32))
        returns = run_episodes(self.client, tries, self.normaliser, seed, learn=True, steps=self.steps)
        forth, back = returns[:half], returns[half:]
        best = np.argsort(np.maximum(forth, back))[-max(1, int(half * TOP_SHARE)) :]
        deviation = np.concatenate([forth[best], back[best]]).std() + 1e-8
        step = np.einsum("i,ijk->jk", forth[best] - back[best], directions[best])
        self.weights += self.step_size / (len(best) * deviation) * step
        mean = float(returns.mean())
        self.curve.append(((len(self.curve) + 1) * self.steps * 2 * half, mean))
        return mean

    def evaluate(self) -> float:
        """Runs the policy itself, unperturbed, in every environment; returns the mean return."""
        same = np.repeat(self.weights[None], self.client.num_envs, axis=0)
        return float(run_episodes(self.client, same, self.normaliser, 10**6, learn=False, steps=self.steps).mean())


def train(search: Search, iterations: int | None, seconds: float) -> None:
    """Iterates until the budget is used up; shows a live line."""
    live = sys.stdout.isatty()
    start = time.monotonic()
    while len(search.curve) < iterations if iterations is not None else time.monotonic() - start < seconds:
        mean = search.iterate()
        elapsed = time.monotonic() - start
        rate = search.curve[-1][0] / elapsed
        line = f"iteration {len(search.curve):3d}   return {mean:8.1f}   {rate:8,.0f} steps/s   {elapsed:5.1f} s"
        print(f"\r{line}" if live else line, end="" if live else "\n", flush=True)


def draw(search: Search, random: float, before: float, after: float, path: Path) -> None:
    """Draws return over environment steps."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    steps, returns = np.array([(0, before), *search.curve]).T
    axes.plot(steps[1:] / 1e6, returns[1:], linewidth=2, label="perturbed policies, mean of an iteration")
    axes.plot([0, steps[-1] / 1e6], [before, after], "o", markersize=8, label="policy itself, before and after")
    for at, value in ((0, before), (steps[-1] / 1e6, after)):
        if math.isnan(value):  # interrupted before it was known
            continue
        axes.annotate(f"{round(value):,}", (at, value), xytext=(0, 9), textcoords="offset points", ha="center")
    axes.axhline(random, color="grey", linestyle="--", label="random policy")
    axes.set(xlabel="environment steps, millions", ylabel="return of an episode")
    axes.set_title(f"{search.client.task}: augmented random search, seed {search.seed}")
    axes.margins(x=0.06, y=0.12)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=120)


def main() -> None:
    """Trains, and shows the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="of the search and of the environments")
    parser.add_argument("--num_envs", type=int, default=64, help="an even number; half as many directions an iteration")
    parser.add_argument("--seconds", type=float, default=55, help="how long to train")
    parser.add_argument("--iterations", type=int, help="train so many iterations, however long they take")
    parser.add_argument("--server", type=Path, help=f"program of an engine whose task to learn; default: {TASK}")
    parser.add_argument("--noise", type=float, default=NOISE, help="standard deviation of a perturbation")
    parser.add_argument("--step_size", type=float, default=STEP_SIZE)
    parser.add_argument("--out", type=Path, default=Path("."), help="folder for learning_curve.png")
    parser.add_argument(
        "--watch", metavar="NAME", help="draw some environments for viewers, which find the run by NAME"
    )
    arguments = parser.parse_args()
    if arguments.num_envs < 2 or arguments.num_envs % 2:
        parser.error(f"--num_envs: expected an even number from 2, found {arguments.num_envs}")
    if arguments.seed < 0 or arguments.seconds <= 0 or (arguments.iterations or 1) < 1:
        parser.error("--seed, --seconds and --iterations: expected positive numbers")
    picture = arguments.out / "learning_curve.png"
    try:  # now, rather than after the training
        arguments.out.mkdir(parents=True, exist_ok=True)
        picture.open("ab").close()
    except OSError as error:
        parser.error(
            f"--out: expected a folder to write {picture} to, found that it cannot be written: {error.strerror}"
        )

    with (
        tandem.launch_engine(
            None if arguments.server else TASK,
            server=arguments.server,
            num_envs=arguments.num_envs,
            seed=arguments.seed,
            name=arguments.watch,
            frames=(320, 240) if arguments.watch else None,
        ) as engine,
        tandem.SharedMemoryClient(engine.name) as client,
    ):
        steps = episode_steps(client)
        search = Search(client, arguments.seed, noise=arguments.noise, step_size=arguments.step_size, steps=steps)
        random = before = math.nan
        try:
            print(f"{client.task}: {client.num_envs} environments in process {engine.pid}; first at random", flush=True)
            random = random_return(client, search.rng, steps)
            before = search.evaluate()
            train(search, arguments.iterations, arguments.seconds)
        except KeyboardInterrupt:
            print("\ninterrupted: going on with what was learnt so far", flush=True)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left takes a second or two
        if client.pending:
            client.recv()
        after = search.evaluate()
        stats = client.stats()

    total = stats.policy_secs + stats.transport_secs + stats.physics_secs
    print(f"""

{client.task}, {arguments.num_envs} environments, seed {arguments.seed}
  return, random policy   {random:10.1f}
  return before           {before:10.1f}
  return after            {after:10.1f}
  environment steps/s     {stats.steps_per_second:10,.0f}
  step latency p50, p99   {stats.step_p50_us:10.0f} us {stats.step_p99_us:.0f} us
  time in policy          {stats.policy_secs / total:10.1%}
  time in transport       {stats.transport_secs / total:10.1%}
  time in physics         {stats.physics_secs / total:10.1%}""")
    try:
        draw(search, random, before, after, picture)
        print(f"  learning curve          {picture}")
    except ModuleNotFoundError as error:
        if picture.stat().st_size == 0:
            picture.unlink()
        print(f"  learning curve          none: pip install {error.name}")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("interrupted")
