"""How fast messages go from a process to another: Tandem's command ring against queues that one would take instead."""

import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.benchmark.json_program import answer_of, timeout_of
from tests.benchmark.suite import Found, Plan, Suite, in_turn
from tests.benchmark.tables import Spread, markdown

MESSAGE_RATES = Path(__file__).with_name("message_rates")
SIZES = (64, 4096)
PACED_HZ = 10_000


@dataclass(frozen=True)
class Row:
    """A way of sending messages.

    Attributes:
      label: Its name in tables.
      channel: message_rates' --channel.
      wait: How both sides wait, where that can be chosen.
      against: The row whose flood its own is held against: the same waiting, if that can be chosen.
    """

    label: str
    channel: str
    wait: str = "adaptive"
    against: str = "spsc_adaptive"


ROWS = {
    "ring_spin": Row("Tandem's ring, spin", "ring", "spin", "spsc_spin"),
    "ring_adaptive": Row("Tandem's ring, adaptive", "ring", "adaptive", "spsc_adaptive"),
    "ring_block": Row("Tandem's ring, block", "ring", "block", "spsc_block"),
    "envelopes": Row("Tandem, packed and verified envelopes, adaptive", "envelopes"),
    "spsc_spin": Row("SPSC queue, same sleeper check, spin", "spsc", "spin", "spsc_spin"),
    "spsc_adaptive": Row("SPSC queue, same sleeper check, adaptive", "spsc"),
    "spsc_block": Row("SPSC queue, same sleeper check, block", "spsc", "block", "spsc_block"),
    "bare_spsc": Row("SPSC queue, no sleeper check, spin", "bare_spsc", against="spsc_spin"),
    "boost": Row("Boost.Interprocess, message_queue", "boost"),
    "pipe": Row("pipe", "pipe"),
}


@dataclass(frozen=True)
class Case:
    """Messages of one size; for each row a figure of each round.

    Attributes:
      message_bytes: Of a message.
      rates: Messages a second of a flood.
      p50_ns: From before the write until after the read, one message at a time: nanoseconds.
      p99_ns: The same.
    """

    message_bytes: int
    rates: dict[str, list[float]] = field(default_factory=lambda: {key: [] for key in ROWS})
    p50_ns: dict[str, list[float]] = field(default_factory=lambda: {key: [] for key in ROWS})
    p99_ns: dict[str, list[float]] = field(default_factory=lambda: {key: [] for key in ROWS})

    def ratios(self, key: str) -> list[float]:
        """Of a row's floods to those it is held against, round by round."""
        return [rate / other for rate, other in zip(self.rates[key], self.rates[ROWS[key].against], strict=True)]


def _measure_all(plan: Plan) -> Found:
    """Measures every row at every size in every round, the rows in turn, flood and paced."""
    cases = [Case(size) for size in SIZES]
    keys = [key for key in ROWS if key in plan.rows or any(ROWS[one].against == key for one in plan.rows)]
    for number in range(plan.rounds):
        for case in cases:
            for key in in_turn(keys, number):
                case.rates[key].append(_measure(ROWS[key], case.message_bytes, plan)["rate"])
                paced = _measure(ROWS[key], case.message_bytes, plan, f"--hz={PACED_HZ}")
                case.p50_ns[key].append(paced["p50"])
                case.p99_ns[key].append(paced["p99"])
        print(f"messages: round {number + 1} of {plan.rounds}", file=sys.stderr, flush=True)
    return Found([_table(case, keys, plan.rounds) for case in cases], {"sizes": [asdict(case) for case in cases]})


def _measure(row: Row, message_bytes: int, plan: Plan, *more: str) -> dict[str, float]:
    command = [
        str(MESSAGE_RATES),
        f"--channel={row.channel}",
        f"--wait={row.wait}",
        f"--bytes={message_bytes}",
        f"--seconds={plan.seconds}",
        f"--name={plan.prefix}-{row.channel}",
        *more,
    ]
    found: dict[str, float] = answer_of(command, timeout_secs=timeout_of(plan.seconds))
    return found


def _table(case: Case, keys: list[str], rounds: int) -> str:
    lines = []
    for key in keys:
        figures = (
            [rate / 1e6 for rate in case.rates[key]],
            case.ratios(key),
            [nanos / 1e3 for nanos in case.p50_ns[key]],
            [nanos / 1e3 for nanos in case.p99_ns[key]],
        )
        lines.append([ROWS[key].label, *(str(Spread.of(one)) for one in figures)])
    title = f"**Messages of {case.message_bytes} bytes**: median (least .. greatest) of {rounds} rounds"
    paced = f"at {PACED_HZ:,} a second: p50 us"
    return markdown(title, ("row", "flood, M/s", "times SPSC queue", paced, "p99 us"), lines)


SUITE = Suite(
    name="messages",
    about="messages through a command ring, against other queues between two processes",
    rows={key: row.label for key, row in ROWS.items()},
    baseline=frozenset(),
    measure=_measure_all,
)
