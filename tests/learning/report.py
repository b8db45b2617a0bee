"""The table and image of several trainings, with Tandem's and Gymnasium's vectorisation."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.learning.table import lay_out, spread
from tests.learning.trainings import LAST_EPISODES, Training

VECTORS = ("tandem", "sync")
LABELS = {"tandem": "Tandem", "sync": "Gymnasium's own, in one process"}
_COLOURS = {"tandem": "#1b6ca8", "sync": "#d1731f"}


@dataclass(frozen=True)
class VectorTraining(Training):
    """A finished training with one of the two vectorisations.

    Attributes:
      env_secs: The part of `wall_secs` in the environments and their wrappers.
    """

    env_secs: float


@dataclass(frozen=True)
class Comparison:
    """One script with both vectorisations, over the same seeds.

    Attributes:
      script: The script's name.
      seeds: The seeds.
      trainings: For each vectorisation, a training for each seed.
    """

    script: str
    seeds: Sequence[int]
    trainings: Mapping[str, Sequence[VectorTraining]]

    def mean(self, vector: str) -> float:
        """Returns the mean of the final returns."""
        return statistics.fmean(training.final_return for training in self.trainings[vector])

    @property
    def sync_range(self) -> tuple[float, float]:
        """The least and the greatest final return with Gymnasium's environments."""
        finals = [training.final_return for training in self.trainings["sync"]]
        return min(finals), max(finals)

    @property
    def within(self) -> bool:
        """Whether Tandem's mean is in `sync_range`."""
        least, greatest = self.sync_range
        return least <= self.mean("tandem") <= greatest

    @property
    def ratios(self) -> list[float]:
        """For each seed, the ratio of Gymnasium's wall time to Tandem's."""
        pairs = zip(self.trainings["sync"], self.trainings["tandem"], strict=True)
        return [sync.wall_secs / tandem.wall_secs for sync, tandem in pairs]

    @property
    def faster(self) -> bool:
        """Whether Tandem took less time, summed over all seeds."""
        tandem, sync = (sum(training.wall_secs for training in self.trainings[vector]) for vector in VECTORS)
        return tandem < sync

    @property
    def equal_curves(self) -> int:
        """The number of seeds for which both have the same returns, digit for digit."""
        pairs = zip(self.trainings["sync"], self.trainings["tandem"], strict=True)
        return sum(sync.returns == tandem.returns for sync, tandem in pairs)

    def verdict(self) -> str:
        """Formats the results as text."""
        least, greatest = self.sync_range
        yes_no = {True: "yes", False: "NO"}
        return (
            f"{self.script}\n"
            f"  Tandem's mean {self.mean('tandem'):.1f} within the others' range {least:.1f} .. {greatest:.1f}: "
            f"{yes_no[self.within]}\n"
            f"  in less wall time: {yes_no[self.faster]}; the others took "
            f"{spread(self.ratios, 2)} times as long\n"
            f"  curves that are equal, digit for digit: {self.equal_curves} of {len(self.seeds)}"
        )


def table(comparisons: Sequence[Comparison]) -> str:
    """Formats all trainings as a table in Markdown.

    Args:
      comparisons: One or more comparisons over the same seeds.

    Returns:
      The table.
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
                    spread([training.wall_secs for training in trainings]),
                    spread([training.env_secs for training in trainings]),
                ]
            )
    return lay_out(cells, words=2)


def draw(path: Path, title: str, comparisons: Sequence[Comparison]) -> None:
    """Draws the curves: mean and range over the seeds, by steps and by wall time.

    Args:
      path: The PNG file to write.
      title: The image's title.
      comparisons: The comparisons; each has a column.
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
            # Tandem's line is dashed, so that the other line is visible below it where both are equal.
            style = "--" if vector == "tandem" else "-"
            for panel, x in ((over_steps, steps / 1e3), (over_time, seconds.mean(axis=0))):
                panel.fill_between(x, returns.min(axis=0), returns.max(axis=0), color=_COLOURS[vector], alpha=0.18)
                panel.plot(x, returns.mean(axis=0), style, color=_COLOURS[vector], lw=2, label=LABELS[vector])
        over_steps.set(title=comparison.script, xlabel="environment steps, thousands")
        over_time.set(xlabel="wall time, seconds")
        for panel in (over_steps, over_time):
            panel.grid(alpha=0.3)
    for panel in panels[:, 0]:
        panel.set_ylabel(f"return, mean of {LAST_EPISODES} episodes")
    panels[0, 0].legend(loc="upper left")
    figure.suptitle(f"{title}; mean and range of {len(comparisons[0].seeds)} seeds")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
