"""Workers in Python that print steps as fast as possible: `slow_lane_worker WAY STEPS`."""

import json
import sys


def print_json(events: int) -> None:
    """Prints events with Python's own functions."""
    for index in range(events):
        print(
            json.dumps(
                {
                    "event_type": "step",
                    "run_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
                    "episode": index // 200,
                    "step_index": index,
                    "action": 1,
                    "observation": [0.02, -0.01, 0.03, -0.02],
                    "reward": index + 0.5,
                    "terminated": False,
                    "truncated": False,
                }
            )
        )


def event_writer(events: int) -> None:
    """Prints events with Tandem's writer, with a system call for each step."""
    from tandem.telemetry import EventWriter

    writer = EventWriter()
    for index in range(events):
        writer.step(
            episode=index // 200, step_index=index, action=1, observation=[0.02, -0.01, 0.03, -0.02], reward=index + 0.5
        )


if __name__ == "__main__":
    {"print_json": print_json, "event_writer": event_writer}[sys.argv[1]](int(sys.argv[2]))
