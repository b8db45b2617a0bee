"""A worker that prints numbered steps, and an episode after each hundred steps.

It runs for a given time, so that a test can kill other processes meanwhile.
"""

import json
import sys
import time


def main(steps: int, seconds: float) -> None:
    """Prints the events.

    Args:
      steps: The number of steps.
      seconds: The duration in seconds.
    """
    begin = time.monotonic()
    for index in range(steps):
        print(json.dumps({"event_type": "step", "episode": index // 100, "step_index": index, "reward": index / 4}))
        if index % 100 == 99:
            print(json.dumps({"event_type": "episode", "episode": index // 100, "total_reward": index, "steps": 100}))
            time.sleep(max(0.0, begin + seconds * index / steps - time.monotonic()))
    print(json.dumps({"event": "run_completed", "payload": {}}))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
