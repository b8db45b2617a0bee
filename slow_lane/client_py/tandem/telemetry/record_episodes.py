"""`RecordEpisodes`: a Gymnasium wrapper that prints an event at the end of each episode."""

from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import iterate
from numpy.typing import NDArray

from tandem.arguments import flag, shown
from tandem.errors import InvalidArgument
from tandem.telemetry.episode_counter import EpisodeCounter
from tandem.telemetry.events import EventWriter

if TYPE_CHECKING:
    _Wrapper = VectorWrapper[Any, Any, Any, Any, Any]
else:
    _Wrapper = VectorWrapper  # takes no parameters before Gymnasium 1.4


class RecordEpisodes(_Wrapper):
    """Counts the episodes of all environments that have ended, `episode_count`, and prints an event at the end of each.

    Works with any `gymnasium.vector.VectorEnv` in any autoreset mode, and changes none of its results. Episodes are
    numbered from 0 in the order in which they begin; those that begin together, in the order of their environments. An
    episode that a reset cuts short has no event. An episode event's metadata names the environment: {"env": 3}, and
    the "error" that truncated it (`WorkerOptions.on_error`).

    >>> import tandem
    >>> from tandem.telemetry import EventWriter, RecordEpisodes
    >>> events = EventWriter(timestamps=False)
    >>> envs = RecordEpisodes(tandem.make_vec("CartPole-v1", num_envs=2), events)
    >>> obs, infos = envs.reset(seed=0)
    >>> for _ in range(10):
    ...     _ = envs.step(np.zeros(2, np.int64))  # doctest: +ELLIPSIS
    {"event_type":"episode","episode":1,"total_reward":10.0,"steps":10,"terminated":true,...,"metadata":{"env":1}}
    >>> envs.close()
    """

    def __init__(
        self, env: VectorEnv[Any, Any, Any], events: EventWriter | None = None, *, steps: bool = False
    ) -> None:
        """Wraps environments; call `reset` before the first `step`.

        Args:
          env: The environments.
          events: The writer of the events; None: a new `EventWriter()`.
          steps: Whether each step is an event, too, if `events.prints_steps`. Its observation is the one after the
            action; that of an episode's last step belongs to the episode in every mode.

        Raises:
          TypeError: No `gymnasium.vector.VectorEnv`.
          InvalidArgument: Environments without a known autoreset mode; another argument of another type; no `events`
            and no standard output.
        """
        super().__init__(env)
        if events is not None and not isinstance(events, EventWriter):
            raise InvalidArgument(f"events: expected an EventWriter or None, found {shown(events)}")
        mode = env.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
        if not isinstance(mode, AutoresetMode):
            raise InvalidArgument(f"env.metadata['autoreset_mode']: expected an AutoresetMode, found {mode!r}")
        self.autoreset_mode = mode  # which other wrappers read
        self._resets_in_step = mode is AutoresetMode.SAME_STEP
        self._resets_by_itself = mode is not AutoresetMode.DISABLED
        self._events = EventWriter() if events is None else events
        self._print_steps = flag("steps", steps) and self._events.prints_steps
        self._counter = EpisodeCounter(self._events, self.num_envs)
        self._over = np.zeros(self.num_envs, np.bool_)  # the episode has ended, and no other has begun

    @property
    def episode_count(self) -> int:
        """The number of episodes that have ended."""
        return self._counter.ended

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets all environments, or those of the option "reset_mask", bool[num_envs]; returns their results."""
        mask = (options or {}).get("reset_mask")  # read now: some environments remove it
        chosen = np.ones(self.num_envs, np.bool_) if mask is None else np.array(mask, np.bool_)
        result = super().reset(seed=seed, options=options)
        self._begin(chosen & (self._over | (self._counter.lengths > 0)))
        return result

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Steps the environments, and prints an event for each ended episode; returns the environments' results.

        Raises:
          InvalidArgument: A reward that is not finite. The environments were stepped.
          SystemCallFailed: The write of an event failed. The environments were stepped.
        """
        result = super().step(actions)
        _, rewards, terminations, truncations, infos = result
        stepped = ~self._over
        if self._resets_by_itself:
            self._begin(self._over)  # this step is not the next episode's
        self._counter.count(rewards, stepped)
        ended = stepped & (np.asarray(terminations) | np.asarray(truncations))
        if self._print_steps:
            self._print_each(stepped, ended, actions, result)
        self._over |= ended
        if ended.any():
            last = infos.get("final_info", infos) if self._resets_in_step else infos
            failed = np.flatnonzero(last.get("_env_error", ())).tolist()
            self._counter.end(ended, terminations, truncations, {env: last["env_error"][env] for env in failed})
        if self._resets_in_step:
            self._begin(ended)
        return result

    def _begin(self, chosen: NDArray[np.bool_]) -> None:
        """Begins the next episode of the chosen environments."""
        self._counter.begin(chosen)
        self._over = self._over & ~chosen

    def _print_each(self, stepped: NDArray[np.bool_], ended: NDArray[np.bool_], actions: Any, result: Any) -> None:
        observations, rewards, terminations, truncations, infos = result
        seen = list(iterate(self.observation_space, observations))
        done = list(iterate(self.action_space, actions))
        for index in np.flatnonzero(stepped):
            last = self._resets_in_step and ended[index]
            self._events.step(
                episode=self._counter.numbers[index],
                step_index=self._counter.lengths[index] - 1,
                reward=rewards[index],
                action=done[index],
                observation=infos["final_obs"][index] if last else seen[index],
                terminated=bool(terminations[index]),
                truncated=bool(truncations[index]),
            )
