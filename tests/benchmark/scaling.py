"""What an environment's step costs as environments become many, and observations large."""

import dataclasses
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.benchmark import pictures
from tests.benchmark.measurement import BASELINE, ROWS, Group, Row, Size
from tests.benchmark.python_rows import measure_row
from tests.benchmark.suite import Found, Plan, Suite, in_turn
from tests.benchmark.tables import Spread, figure, markdown

_ROWS = [row for row in ROWS if row.key in (BASELINE, "host_spin", "python_spin", "python_adaptive", "python_make_vec")]
_OBS, _ACT, _ENVS = 32, 8, 64
ENVS = tuple(4**power for power in range(8))  # 1 to 16,384, with observations of 32
OBS = (4, 10, 32, 100, 320, 1000)  # float32 values, of 64 environments
_QUICK_ENVS, _QUICK_OBS = (1, 64, 4096, 16384), (4, 1000)
_MOST_EXCHANGES, _QUICK_EXCHANGES = 10_000, 500
_VALUES = 40_000_000  # of observations, that a turn moves at most


@dataclass(frozen=True)
class Case:
    """A size, and what was found with it.

    Attributes:
      size: Sizes of a payload.
      groups: Row -> a group of each round.
    """

    size: Size
    groups: dict[str, list[Group]] = field(default_factory=dict)

    def cost(self, row: str) -> Spread:
        """Returns nanoseconds of a step, by environment."""
        return Spread.of([group.step_p50 / self.size.envs for group in self.groups[row]])

    def ratio(self, row: str) -> Spread:
        """Returns how many times the bare spin's, round by round."""
        pairs = zip(self.groups[row], self.groups[BASELINE], strict=True)
        return Spread.of([group.step_p50 / bare.step_p50 for group, bare in pairs])


def cases(quick: bool) -> tuple[list[Case], list[Case]]:
    """Lists what there is to measure: by environments, and by observations."""
    envs, obs = (_QUICK_ENVS, _QUICK_OBS) if quick else (ENVS, OBS)
    return [_case(one, _OBS, quick) for one in envs], [_case(_ENVS, one, quick) for one in obs]


def _case(envs: int, obs: int, quick: bool) -> Case:
    exchanges = min(_QUICK_EXCHANGES if quick else _MOST_EXCHANGES, max(100, _VALUES // (envs * obs)))
    return Case(Size(envs, obs, _ACT, exchanges))


def measure(plan: Plan) -> Found:
    """Measures the rows at every size in every round, the rows in turn.

    Args:
      plan: What of it to measure. A round takes at most `plan.seconds` and a fifth of a second for each of 56 (quick:
        24) groups; small payloads are done with their exchanges before.

    Returns:
      What was found.
    """
    rows = [row for row in _ROWS if row.key in plan.rows]
    by_envs, by_obs = cases(plan.quick)
    for case in (*by_envs, *by_obs):
        case.groups.update({row.key: [] for row in rows})
    started = time.monotonic()
    for number in range(plan.rounds):
        for case in (*by_envs, *by_obs):
            for row in in_turn(rows, number):
                group = measure_row(row, case.size, plan.seconds, f"{plan.prefix}-{row.key}")
                case.groups[row.key].append(group)
        now = time.monotonic() - started
        print(f"scaling: round {number + 1} of {plan.rounds}; {now:.0f} s so far", file=sys.stderr, flush=True)
    figures = {
        name: [
            {
                "size": dataclasses.asdict(case.size),
                "groups_ns": {row: [dataclasses.asdict(one) for one in groups] for row, groups in case.groups.items()},
            }
            for case in found
        ]
        for name, found in (("by_envs", by_envs), ("by_obs", by_obs))
    }
    about = (
        f"nanoseconds of a step p50, by environment; times the bare spin's at the same size, in the same round; median "
        f"(least .. greatest) of {plan.rounds} groups"
    )
    tables = [
        _table(f"**Environments**, observations of {_OBS}, actions of {_ACT}: {about}", "environments", rows, by_envs),
        _table(f"**Observations**, {_ENVS} environments, actions of {_ACT}: {about}", "values", rows, by_obs),
    ]
    return Found(tables, figures, draw=lambda path: _draw(path, rows, by_envs, by_obs))


def _table(title: str, what: str, rows: Sequence[Row], found: Sequence[Case]) -> str:
    """Has a line for each size: what is to be flat or falling reads downwards."""
    lines = []
    for case in found:
        line = [f"{case.size.envs if what == 'environments' else case.size.obs:,}"]
        for row in rows:
            line.append(figure(case.cost(row.key).median))
            if row.key != BASELINE:
                line.append(str(case.ratio(row.key)))
        lines.append(line)
    head = [what]
    for row in rows:
        head += [row.label] if row.key == BASELINE else [row.label, "times bare spin"]
    return markdown(title, head, lines)


def _draw(path: str, rows: Sequence[Row], by_envs: Sequence[Case], by_obs: Sequence[Case]) -> None:
    colours = {
        BASELINE: pictures.PEER,
        "host_spin": pictures.DARK_TANDEM,
        "python_spin": pictures.TANDEM,
        "python_adaptive": pictures.LIGHT_TANDEM,
        "python_make_vec": pictures.PALE_TANDEM,
    }
    columns = (
        (by_envs, [case.size.envs for case in by_envs], f"environments (observations of {_OBS})"),
        (by_obs, [case.size.obs for case in by_obs], f"float32 values of an observation ({_ENVS} environments)"),
    )
    title = "Cost of an environment's step, the engine's trivial work included"
    with pictures.saved(path, title, 2, len(columns), 10.5, 7.0, sharex="col") as panels:
        for (found, sizes, what), costs, ratios in zip(columns, *panels, strict=True):
            for row in rows:
                for panel, spreads in (
                    (costs, [case.cost(row.key) for case in found]),
                    (ratios, [case.ratio(row.key) for case in found]),
                ):
                    colour, medians = colours[row.key], [one.median for one in spreads]
                    least, most = [one.min for one in spreads], [one.max for one in spreads]
                    panel.plot(sizes, medians, "o-", ms=3, lw=1.3, color=colour, label=row.label)
                    panel.fill_between(sizes, least, most, color=colour, alpha=0.15, lw=0)
            costs.set_yscale("log")
            costs.set_ylabel("ns per environment's step, p50", fontsize=9)
            ratios.set_ylim(bottom=0)
            ratios.set_ylabel("times bare spin", fontsize=9)
            ratios.set_xlabel(what, fontsize=9)
            for panel in (costs, ratios):
                panel.set_xscale("log")
                panel.set_xticks(sizes, [f"{size:,}" for size in sizes])
                panel.minorticks_off()
                panel.grid(axis="y", color="#dddddd", lw=0.6)
        panels[0][0].legend(fontsize=8, frameon=False)


SUITE = Suite(
    name="scaling",
    about="what an environment's step costs from 1 to 16,384 environments, and by the size of observations",
    rows={row.key: row.label for row in _ROWS},
    baseline=frozenset({BASELINE}),
    measure=measure,
)
