"""A worker of the soak: prints events of all kinds, alone or with a process tree, or publishes events as well.

`soak_worker.py MARKER KIND SEED SECONDS`, where KIND is print, tree, publish or endless. Each kind but `endless`
prints run_completed at its end.
"""

import json
import os
import random
import signal
import sys
import time

_PUBLISHED_AT_ONCE = 40
_RETRY_SECS = 0.05


def _line(chance: random.Random, index: int) -> bytes:
    kind = chance.random()
    if kind < 0.88:
        event = {"event_type": "step", "episode": index // 50, "step_index": index, "reward": chance.random()}
        return json.dumps(event).encode() + b"\n"
    if kind < 0.92:
        event = {"event_type": "episode", "episode": index // 50, "total_reward": chance.random(), "steps": 50}
        return json.dumps(event).encode() + b"\n"
    return chance.choice(
        [
            b"text, \xc3\xa4 and \xff\n",
            b"\n",
            b'{"event_type": "step", "episode": \n',
            b'{"event_type": "step", "episode": -1, "step_index": 0, "reward": 0}\n',
            b'{"event": "checkpoint", "payload": {"file": "\xc3\xa4"}}\n',
        ]
    )


def _put(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def _print_lifecycle(event: str, last: int = 0) -> None:
    _put(json.dumps({"event": event, "payload": {"last": last}}).encode() + b"\n")


def _print(chance: random.Random, end: float) -> None:
    """Prints lines in random pieces, so that a kill leaves an incomplete line."""
    index = 0
    while time.monotonic() < end:
        lines = b""
        for _ in range(chance.choice([1, 10, 100, 400])):
            lines += _line(chance, index)
            index += 1
        while lines:
            size = chance.randrange(1, 5000)
            _put(lines[:size])
            lines = lines[size:]
        time.sleep(chance.choice([0.0, 0.01, 0.1, 0.3]))


def _grow_tree() -> None:
    """Forks children, also in own sessions and with SIGTERM ignored; they print until they are killed."""
    for kind in ("child", "deaf", "session", "orphan"):
        if os.fork() > 0:
            continue
        if kind in ("session", "orphan"):
            os.setsid()
        if kind == "orphan" and os.fork() > 0:
            os._exit(0)
        if kind in ("deaf", "orphan"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        index = 0
        while True:
            _put(json.dumps({"event_type": "step", "episode": 0, "step_index": index, "reward": 1.5}).encode() + b"\n")
            index += 1
            time.sleep(0.05)


def _publish(end: float) -> None:
    """Publishes numbered steps, and repeats each batch until the daemon acknowledges it."""
    from slow_lane.testing.printed_lines import PUBLISHER
    from tandem.errors import TandemError
    from tandem.telemetry import Step, TrainerClient

    session = None
    last = 0
    with TrainerClient(timeout=3) as client:
        while time.monotonic() < end:
            numbers = range(last + 1, last + _PUBLISHED_AT_ONCE + 1)
            _print_lifecycle("sends", numbers[-1])
            steps = [Step(episode_index=0, step_index=number, reward=1, seq_id=number) for number in numbers]
            while True:
                try:
                    session = session or client.register(os.environ["TANDEM_RUN_ID"], PUBLISHER)
                    session.publish_steps(steps, timeout=3)
                    break
                except TandemError:
                    session = None
                    time.sleep(_RETRY_SECS)
            last = numbers[-1]
            _print_lifecycle("kept", last)
            time.sleep(0.02)


def main(kind: str, seed: int, seconds: float) -> None:
    """Prints the events of one kind.

    Args:
      kind: print, tree, publish or endless.
      seed: The seed of the random lines.
      seconds: The approximate duration.
    """
    chance = random.Random(seed)
    end = time.monotonic() + seconds
    if kind == "tree":
        _grow_tree()
        while time.monotonic() < end:
            _put(_line(chance, 0))
            time.sleep(0.005)
    elif kind == "publish":
        _publish(end)
    elif kind == "endless":
        if chance.random() < 0.5:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _print(chance, end=float("inf"))
    else:
        _print(chance, end)
    _print_lifecycle("run_completed")


if __name__ == "__main__":
    main(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
