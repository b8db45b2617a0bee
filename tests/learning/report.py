"""What a training left behind, and the table and picture of many."""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

VECTORS = ("tandem", "sync")
LABELS = {"tandem": "Tandem", "sync": "Gymnasium's own, in one process"}
_LAST_EPISODES = 32  # make a return, here and in the training scripts
_COLOURS = {"tandem": "#1b6ca8", "sync": "#d1731f"}

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Training:
    """A finished training.

    Attributes:
      wall_secs: How long it took, without starting Python.
      env_secs: Of that, within the environments and their wrappers.
      episodes: For each episode, in order: steps of all environments at its end, its return, seconds at its end.
    """

    wall_secs: float
    env_secs: float
    episodes: tuple[tuple[int, float, float], ...]

    @staticmethod
    def read(path: Path) -> "Training | None":
        """Reads what a training script wrote.

        Args:
          path: The file.

        Returns:
          The training; None if there is none, or it was interrupted.
        """
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):  # the latter: empty until the training has ended
            return None
        if not found["finished"]:
            return None
        return Training(found["wall_secs"], found["env_secs"], tuple(tuple(episode) for episode in found["episodes"]))

    @property
    def returns(self) -> tuple[tuple[int, float], ...]:
        """Steps and return of each episode: what does not depend on how fast the machine was."""
        return tuple((steps, value) for steps, value, _ in self.episodes)

    @property
    def final_return(self) -> float:
        """Mean of the last episodes."""
        return statistics.fmean(value for _, value in self.returns[-_LAST_EPISODES:])

    def curve(self, steps: Array) -> tuple[Array, Array]:
        """Smooths the returns.

        Args:
          steps: float64[n], where to look; not before the first episode's end.

        Returns:
          float64[n], the mean return of the last episodes until then; float64[n], seconds until then. Both in straight
          lines from one episode's end to the next.
        """
        at, values, seconds = np.array(self.episodes).T
        sums = np.concatenate([[0], np.cumsum(values)])
        ends = np.flatnonzero(np.diff(at, append=np.inf)) + 1  # of episodes that end together, the last counts
        starts = np.maximum(ends - _LAST_EPISODES, 0)
        means = (sums[ends] - sums[starts]) / (ends - starts)
        return np.interp(steps, at[ends - 1], means), np.interp(steps, at[ends - 1], seconds[ends - 1])


@dataclass(frozen=True)
class Comparison:
    """One script with both vectorisations, over the same seeds.

    Attributes:
      script: Its name.
      seeds: The seeds.
      trainings: For each vectorisation, a training for each seed.
    """

    script: str
    seeds: Sequence[int]
    trainings: Mapping[str, Sequence[Training]]

    def mean(self, vector: str) -> float:
        """Mean of the final returns."""
        return statistics.fmean(training.final_return for training in self.trainings[vector])

    @property
    def sync_range(self) -> tuple[float, float]:
        """Least and greatest final return of Gymnasium's own."""
        finals = [training.final_return for training in self.trainings["sync"]]
        return min(finals), max(finals)

    @property
    def within(self) -> bool:
        """Whether Tandem's mean lies in that range."""
        least, greatest = self.sync_range
        return least <= self.mean("tandem") <= greatest

    @property
    def ratios(self) -> list[float]:
        """For each seed, how many times as long as with Tandem it took with Gymnasium's own."""
        pairs = zip(self.trainings["sync"], self.trainings["tandem"], strict=True)
        return [sync.wall_secs / tandem.wall_secs for sync, tandem in pairs]

    @property
    def faster(self) -> bool:
        """Whether Tandem took less time, all seeds together."""
        tandem, sync = (sum(training.wall_secs for training in self.trainings[vector]) for vector in VECTORS)
        return tandem < sync

    @property
    def equal_curves(self) -> int:
        """For how many seeds both show the same returns, digit for digit."""
        pairs = zip(self.trainings["sync"], self.trainings["tandem"], strict=True)
        return sum(sync.returns == tandem.returns for sync, tandem in pairs)

    def verdict(self) -> str:
        """Says in words what was found."""
        least, greatest = self.sync_range
        ratio, yes_no = sorted(self.ratios), {True: "yes", False: "NO"}
        return (
            f"{self.script}\n"
            f"  Tandem's mean {self.mean('tandem'):.1f} within the others' range {least:.1f} .. {greatest:.1f}: "
            f"{yes_no[self.within]}\n"
            f"  in less wall time: {yes_no[self.faster]}; the others took {statistics.median(ratio):.2f} "
            f"({ratio[0]:.2f} .. {ratio[-1]:.2f}) times as long\n"
            f"  curves that are equal, digit for digit: {self.equal_curves} of {len(self.seeds)}"
        )


def table(comparisons: Sequence[Comparison]) -> str:
    """Lays out all trainings as text, in Markdown.

    Args:
      comparisons: At least one; all over the same seeds.

    Returns:
      Lines.
    """
    seeds = comparisons[0].seeds
    cells = [
        ["script", "environments", *(f"return, seed {seed}" for seed in seeds), "mean", "wall s", "in environments"]
    ]
    for comparison in comparisons:
        for vector in VECTORS:
            trainings = comparison.trainings[vector]
            cells.append(
                [
                    comparison.script,
                    LABELS[vector],
                    *(f"{training.final_return:.1f}" for training in trainings),
                    f"{comparison.mean(vector):.1f}",
                    _spread([training.wall_secs for training in trainings]),
                    _spread([training.env_secs for training in trainings]),
                ]
            )
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    cells.insert(1, ["-" * width if i < 2 else "-" * (width - 1) + ":" for i, width in enumerate(widths)])
    return "\n".join(
        "| "
        + " | ".join(
            text.ljust(width) if i < 2 else text.rjust(width)
            for i, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        + " |"
        for line in cells
    )


def _spread(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.1f} ({min(values):.1f} .. {max(values):.1f})"


def draw(path: Path, title: str, comparisons: Sequence[Comparison]) -> None:
    """Draws the curves: mean and range over the seeds, over steps and over wall time.

    Args:
      path: The PNG to write.
      title: Above the picture.
      comparisons: A column for each.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(
        2, len(comparisons), figsize=(5.5 * len(comparisons), 7.5), sharey="row", squeeze=False, layout="constrained"
    )
    for column, comparison in enumerate(comparisons):
        over_steps, over_time = panels[:, column]
        for vector in reversed(VECTORS):
            trainings = comparison.trainings[vector]
            first = max(training.episodes[0][0] for training in trainings)
            last = min(training.episodes[-1][0] for training in trainings)
            steps = np.linspace(first, last, 200)
            returns, seconds = np.array([training.curve(steps) for training in trainings]).transpose(1, 0, 2)
            # Dashed, so that the other is seen below it where both are equal.
            style = "--" if vector == "tandem" else "-"
            for panel, x in ((over_steps, steps / 1e3), (over_time, seconds.mean(axis=0))):
                panel.fill_between(x, returns.min(axis=0), returns.max(axis=0), color=_COLOURS[vector], alpha=0.18)
                panel.plot(x, returns.mean(axis=0), style, color=_COLOURS[vector], lw=2, label=LABELS[vector])
        over_steps.set(title=comparison.script, xlabel="environment steps, thousands")
        over_time.set(xlabel="wall time, seconds")
        for panel in (over_steps, over_time):
            panel.grid(alpha=0.3)
    for panel in panels[:, 0]:
        panel.set_ylabel(f"return, mean of {_LAST_EPISODES} episodes")
    panels[0, 0].legend(loc="upper left")
    figure.suptitle(f"{title}; mean and range of {len(comparisons[0].seeds)} seeds")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
