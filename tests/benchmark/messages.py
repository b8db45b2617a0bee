"""How fast messages go from a process to another: Tandem's command ring against queues that one would take instead."""

import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

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
    "bare_spsc": Row("SPSC queue, no sleeper check, spin", "bare_spsc"),
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
    rates: dict[str, list[float]] = field(default_factory=lambda: {row: [] for row in ROWS})
    p50_ns: dict[str, list[float]] = field(default_factory=lambda: {row: [] for row in ROWS})
    p99_ns: dict[str, list[float]] = field(default_factory=lambda: {row: [] for row in ROWS})

    def ratios(self, key: str) -> list[float]:
        """Of a row's floods to those it is held against, round by round."""
        return [rate / other for rate, other in zip(self.rates[key], self.rates[ROWS[key].against], strict=True)]


def measure_messages(rounds: int, seconds: float) -> list[Case]:
    """Measures every row at every size in every round, the rows in turn, flood and paced.

    Args:
      rounds: How often each.
      seconds: How long each time.

    Returns:
      What was found for each size.

    Raises:
      subprocess.SubprocessError: A row failed; its own message is on stderr.
    """
    cases = [Case(size) for size in SIZES]
    keys = list(ROWS)
    for number in range(rounds):
        first = number % len(keys)
        for case in cases:
            for key in [*keys[first:], *keys[:first]]:
                case.rates[key].append(_measure(ROWS[key], case.message_bytes, seconds)["rate"])
                paced = _measure(ROWS[key], case.message_bytes, seconds, f"--hz={PACED_HZ}")
                case.p50_ns[key].append(paced["p50"])
                case.p99_ns[key].append(paced["p99"])
        print(f"messages: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return cases


def _measure(row: Row, message_bytes: int, seconds: float, *more: str) -> dict[str, float]:
    command = [
        str(MESSAGE_RATES),
        f"--channel={row.channel}",
        f"--wait={row.wait}",
        f"--bytes={message_bytes}",
        f"--seconds={seconds}",
        *more,
    ]
    ended = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=60 + 10 * seconds)
    found: dict[str, float] = json.loads(ended.stdout)
    return found


def table(case: Case, rounds: int) -> str:
    """Lays out one size in Markdown.

    Args:
      case: What was found.
      rounds: How many rounds the figures are over.

    Returns:
      Lines.
    """
    lines = [
        f"**Messages of {case.message_bytes} bytes**: median (least .. greatest) of {rounds} rounds",
        "",
        f"| row | flood, M/s | times SPSC queue | at {PACED_HZ:,} a second: p50 us | p99 us |",
        "|---|--:|--:|--:|--:|",
    ]
    for key, row in ROWS.items():
        cells = [
            row.label,
            _spread([rate / 1e6 for rate in case.rates[key]]),
            _spread(case.ratios(key)),
            _spread([nanos / 1e3 for nanos in case.p50_ns[key]]),
            _figure(statistics.median(case.p99_ns[key]) / 1e3),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _spread(values: Sequence[float]) -> str:
    return f"{_figure(statistics.median(values))} ({_figure(min(values))} .. {_figure(max(values))})"


def _figure(value: float) -> str:
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:.0f}"
