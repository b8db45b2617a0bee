"""Runs as JSON, as `tandemctl list --json` prints them."""

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from tandem.telemetry import DaemonDescription, RunDescription
from tandemctl.texts import state_of

_EPOCH = datetime.fromtimestamp(0, UTC)
_AS_DESCRIBED = (
    *(
        "folder",
        "steps",
        "steps_printed",
        "episodes",
        "lifecycle",
        "malformed",
        "text_lines",
        "bytes_read",
        "max_steps",
    ),
    *("unreachable", "proxy_starts", "worker_pid", "waiting_for", "output_problem"),
)


def runs_json(described: DaemonDescription, runs: Sequence[RunDescription]) -> str:
    """Makes JSON.

    Args:
      described: The daemon.
      runs: Those to list.

    Returns:
      An object and a newline. Its keys are sorted.
    """
    value = {
        "daemon_state": described.state,
        "queued_bytes": described.queued_bytes,
        "oldest_queued_secs": _number(described.oldest_queued_secs),
        "watchers": described.watchers,
        "runs": [_object(run) for run in runs],
    }
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2, sort_keys=True) + "\n"


def _object(run: RunDescription) -> dict[str, Any]:
    return {name: getattr(run, name) for name in _AS_DESCRIBED} | {
        "run_id": run.run.run_id,
        "name": run.run_name,
        "state": state_of(run),
        "created_at": _iso(run.run.created_at),
        "updated_at": _iso(run.run.updated_at),
        "steps_per_second": _number(run.steps_per_second),
        "gpu_slots": run.run.gpu_slots,
        "failure_reason": run.run.failure_reason,
        "last_return": None if run.last_return is None else _number(run.last_return),
    }


def _number(value: float) -> float | None:
    """JSON has no NaN and no infinity."""
    return value if math.isfinite(value) else None


def _iso(time: datetime | None) -> str:
    return (time or _EPOCH).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
