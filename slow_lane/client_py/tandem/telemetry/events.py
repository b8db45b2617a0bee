"""`EventWriter`: prints a run's events, a line of JSON each."""

import contextlib
import math
import os
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, SupportsFloat, SupportsIndex

import numpy as np

from tandem.arguments import flag, integer, shown
from tandem.engine.worker_environment import RUN_ID_VARIABLE, WorkerSettings
from tandem.errors import InvalidArgument
from tandem.telemetry.json_lines import line_of
from tandem.telemetry.line_output import LineOutput

_LARGEST = 2**64 - 1
_LONGEST_ERROR = 4000  # characters of an exception in an event


class EventWriter:
    r"""Prints events as lines of JSON, for Tandem's daemon or any other reader.

    Under the daemon, a program's events are durable in its database, and watchers receive them; without the daemon,
    they are lines on the terminal. Each event is one line, by one write, and stays separate from other output of the
    program. Safe to use from any thread.

    Actions, observations and payloads may be numbers, strings, lists, mappings, NumPy's scalars and arrays, and what
    NumPy converts to an array. NaN and infinities, which JSON does not have, become null in them. Rewards and scalars
    keep them, as texts.

    With the variable MOSAIC_FASTLANE_ONLY=1 steps are not printed: viewers show the run's frames instead.

    An invalid value is InvalidArgument, and nothing is printed. SystemCallFailed: the write failed.

    >>> import io
    >>> out = io.StringIO()
    >>> events = EventWriter(out, run_id="try", timestamps=False)
    >>> events.step(episode=0, step_index=42, action=1, observation=np.float32([0.5, -1]), reward=1.0)
    >>> events.episode(episode=0, total_reward=195.0, steps=195, terminated=True)
    >>> print(out.getvalue().replace(',"terminated', ',\n "terminated'), end="")
    {"event_type":"step","run_id":"try","episode":0,"step_index":42,"action":1,"observation":[0.5,-1.0],"reward":1.0,
     "terminated":false,"truncated":false}
    {"event_type":"episode","run_id":"try","episode":0,"total_reward":195.0,"steps":195,
     "terminated":true,"truncated":false}
    """

    def __init__(
        self,
        stream: IO[Any] | None = None,
        *,
        run_id: str | None = None,
        worker_id: str | None = None,
        timestamps: bool = True,
    ) -> None:
        """Prints nothing yet.

        Args:
          stream: An open file. None: the current standard output, which is also made line-buffered, so that other
            prints of the program stay unbroken lines.
          run_id: The run; None: the environment variable TANDEM_RUN_ID, or else events have no run_id.
          worker_id: The run's worker; None: events have none, and the daemon names it.
          timestamps: Whether events have the time at which they were made (`ts_unix_ns`).

        Raises:
          InvalidArgument: A stream that cannot be written to, a name that is not a string, or invalid variables
            MOSAIC_FASTLANE_*.
        """
        self._output = LineOutput(stream)
        self._common: dict[str, object] = {}
        if run_id is None:
            run_id = os.environ.get(RUN_ID_VARIABLE) or None
        if run_id is not None:
            self._common["run_id"] = _text("run_id", run_id)
        if worker_id is not None:
            self._common["worker_id"] = _text("worker_id", worker_id)
        self._timestamps = flag("timestamps", timestamps)
        self._print_steps = not WorkerSettings.read().fastlane_only

    @property
    def prints_steps(self) -> bool:
        """Whether `step` prints: not with MOSAIC_FASTLANE_ONLY=1."""
        return self._print_steps

    def step(
        self,
        *,
        episode: SupportsIndex,
        step_index: SupportsIndex,
        reward: SupportsFloat,
        action: object = None,
        observation: object = None,
        terminated: bool = False,
        truncated: bool = False,
        agent_id: str | None = None,
        episode_seed: SupportsIndex | None = None,
        policy_label: str | None = None,
        backend: str | None = None,
        frame_ref: str | None = None,
        render_payload: object = None,
    ) -> None:
        """Prints a step of an environment, unless `prints_steps` is false. Fields that are None are omitted.

        Args:
          episode: Number of the episode in this run, from 0.
          step_index: Number of the step in its episode, from 0.
          reward: The reward, NaN and infinities included.
          action: The action.
          observation: The observation after it.
          terminated: Whether the episode ended with this step.
          truncated: Whether the episode was cut off with this step.
          agent_id: The agent, among several.
          episode_seed: The seed of the episode's reset.
          policy_label: The policy that acted.
          backend: The simulator.
          frame_ref: Where an image of it is.
          render_payload: What a viewer needs to draw it.
        """
        fields = self._begin("event_type", "step")
        fields["episode"] = integer("episode", episode, 0, _LARGEST)
        fields["step_index"] = integer("step_index", step_index, 0, _LARGEST)
        _add(fields, action=action, observation=observation)
        fields["reward"] = _number("reward", reward)
        fields["terminated"] = flag("terminated", terminated)
        fields["truncated"] = flag("truncated", truncated)
        if episode_seed is not None:
            fields["episode_seed"] = integer("episode_seed", episode_seed, 0, _LARGEST)
        _add_texts(fields, agent_id=agent_id, policy_label=policy_label, backend=backend, frame_ref=frame_ref)
        _add(fields, render_payload=render_payload)
        if self._print_steps:
            self._output.write(line_of(fields))

    def episode(
        self,
        *,
        episode: SupportsIndex,
        total_reward: SupportsFloat,
        steps: SupportsIndex,
        terminated: bool = False,
        truncated: bool = False,
        agent_id: str | None = None,
        metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Prints the end of an episode. Fields that are None are omitted; those of `step` have its meaning.

        `total_reward` is the sum of its `steps` rewards. `metadata` has further facts. As in MOSAIC's events,
        the daemon takes an "episode_index" in it for the number of the episode, in place of `episode`.
        """
        fields = self._begin("event_type", "episode")
        fields["episode"] = integer("episode", episode, 0, _LARGEST)
        fields["total_reward"] = _number("total_reward", total_reward)
        fields["steps"] = integer("steps", steps, 0, _LARGEST)
        fields["terminated"] = flag("terminated", terminated)
        fields["truncated"] = flag("truncated", truncated)
        _add_texts(fields, agent_id=agent_id)
        _add(fields, metadata=_mapping("metadata", metadata))
        if metadata and (index := metadata.get("episode_index")) is not None:
            integer("metadata['episode_index']", index, 0, _LARGEST)  # type: ignore[arg-type]
        self._output.write(line_of(fields))

    def scalars(self, step: SupportsIndex, values: Mapping[str, SupportsFloat]) -> None:
        """Prints numbers of the training, such as losses, at a step: from 0, of whatever the program counts.

        NaN and infinities stay what they are. A run may have 1,000 different names; without values nothing is printed.

        >>> EventWriter(run_id="try", timestamps=False).scalars(100, {"train/loss": np.float32(0.5), "kl": math.inf})
        {"event_type":"scalars","run_id":"try","step":100,"scalars":{"train/loss":0.5,"kl":"Infinity"}}
        """
        fields = self._begin("event_type", "scalars")
        fields["step"] = integer("step", step, 0, _LARGEST)
        numbers = {_text("values", name): _number(f"values[{name!r}]", value) for name, value in values.items()}
        if numbers:
            fields["scalars"] = numbers
            self._output.write(line_of(fields))

    def lifecycle(self, event: str, payload: Mapping[str, object] | None = None) -> None:
        """Prints an event of the run as a whole, with further facts.

        It is "run_started", "run_completed", "run_failed", or a name of your own, such as "checkpoint".
        """
        fields = self._begin("event", _text("event", event))
        _add(fields, payload=_mapping("payload", payload))
        self._output.write(line_of(fields))

    @contextmanager
    def run(self, **payload: object) -> Iterator["EventWriter"]:
        """Prints run_started with facts, and at the end of the block run_completed, or run_failed with the error.

        `sys.exit()`, or with 0, is no failure. The exception is raised again. Yields this writer.

        >>> with EventWriter(run_id="try", timestamps=False).run(env_id="CartPole-v1", algo="ppo") as events:
        ...     events.lifecycle("checkpoint", {"path": "policy.npz"})
        {"event":"run_started","run_id":"try","payload":{"env_id":"CartPole-v1","algo":"ppo"}}
        {"event":"checkpoint","run_id":"try","payload":{"path":"policy.npz"}}
        {"event":"run_completed","run_id":"try"}
        """
        self.lifecycle("run_started", payload)
        try:
            yield self
        except BaseException as error:
            if isinstance(error, SystemExit) and error.code in (None, 0):
                self.lifecycle("run_completed")
            else:
                self.failed(error)
            raise
        self.lifecycle("run_completed")

    def failed(self, error: BaseException) -> None:
        """Prints run_failed with an exception's text and class; `run` and `track` do so themselves."""
        said = "".join(traceback.format_exception_only(error)).strip()
        self.lifecycle("run_failed", {"error": said[:_LONGEST_ERROR], "error_type": type(error).__name__})

    def _begin(self, kind: str, name: str) -> dict[str, object]:
        fields = {kind: name, **self._common}
        if self._timestamps:
            fields["ts_unix_ns"] = time.time_ns()
        return fields


def _add(fields: dict[str, object], **values: object) -> None:
    fields.update((name, value) for name, value in values.items() if value is not None)


def _add_texts(fields: dict[str, object], **values: str | None) -> None:
    fields.update((name, _text(name, value)) for name, value in values.items() if value is not None)


def _text(name: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidArgument(f"{name}: expected a string that is not empty, found {shown(value)}; nothing was printed")
    return value


def _mapping(name: str, value: object) -> Mapping[str, object] | None:
    if value is not None and not isinstance(value, Mapping):
        raise InvalidArgument(f"{name}: expected a mapping, found {shown(value)}; nothing was printed")
    return value or None


def _number(name: str, value: SupportsFloat) -> float | str:
    """Returns a number, or the text of one that JSON does not have, as schema/telemetry has it."""
    if not isinstance(value, str | bytes | bytearray):
        with contextlib.suppress(TypeError, ValueError, OverflowError):  # of lists of different lengths, too
            if np.ndim(value) == 0:  # type: ignore[arg-type]
                number = float(value)
                if math.isfinite(number):
                    return number
                return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    raise InvalidArgument(f"{name}: expected a number, found {shown(value)}; nothing was printed")
