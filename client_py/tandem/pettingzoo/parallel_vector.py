"""`ParallelVectorEnv`: environments of PettingZoo as a `gymnasium.vector.VectorEnv` with a row for each agent."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from tandem.arguments import shown
from tandem.client import SharedMemoryClient
from tandem.environments.client_vector import EnvIds, GymnasiumVectorEnv, Obs, Sb3Hint, StepResults
from tandem.environments.lanes import RAISED
from tandem.environments.row_infos import Infos, copied, final_infos, infos_of_groups, masked, merged_infos, split_infos
from tandem.environments.vector_arguments import Mask, Seed, distinct_ids, reset_mask, seed_of_chosen
from tandem.environments.worker_vector import WorkerVectorEnv, call_of_each
from tandem.errors import EngineFailed, EnvFailed, InvalidAction, InvalidArgument
from tandem.handles import NotPicklable
from tandem.spaces.batches import Actions
from tandem.spaces.trees import assign
from tandem.workers.processes import WorkerProcesses

if TYPE_CHECKING:
    from tandem.sb3 import SharedMemoryVecEnv


class JointVectorEnv(WorkerVectorEnv, GymnasiumVectorEnv):
    """Environments of `JointEnv`, whose `step` takes an action for each row, as `ParallelVectorEnv` does.

    It has the `possible_agents` of each environment, and the `single_spaces` of one agent.
    """

    def __init__(self, client: SharedMemoryClient, workers: WorkerProcesses) -> None:
        """Takes over both, as `WorkerVectorEnv`.

        Raises:
          InvalidArgument: The environments have different agents.
        """
        try:
            self.possible_agents = self._agents_of(workers)
            self.single_spaces = workers.calls.apply(*call_of_each("single_spaces", (), {}), [0])[0]
        except BaseException:
            client.close()
            workers.close()
            raise
        super().__init__(client, workers)

    @staticmethod
    def _agents_of(workers: WorkerProcesses) -> list[Any]:
        agents = workers.calls.apply(*call_of_each("possible_agents", (), {}))
        for env_id, others in enumerate(agents):
            if others != agents[0]:
                raise InvalidArgument(
                    f"env_fn: expected environments with the same agents, found {others} in environment {env_id}, and "
                    f"{agents[0]} in environment 0"
                )
        return list(agents[0])

    def row_name(self, row: int) -> str:
        """Returns what error messages call a row."""
        env_id, agent = divmod(row, len(self.possible_agents))
        return f"agent {self.possible_agents[agent]!r} of environment {env_id} (row {row})"

    def _actions_in(self, arrays: Any, objects: Any) -> Actions:
        count = self.num_envs * len(self.possible_agents)
        of_rows = {path: array.reshape(count, *array.shape[2:]) for path, array in arrays.items()}
        return Actions(self.single_spaces[1], count, of_rows, objects, name_of=self.row_name)


class ParallelVectorEnv(NotPicklable, gymnasium.vector.VectorEnv[Any, Any, NDArray[Any]], metaclass=Sb3Hint):
    """ParallelEnvs in worker processes; `tandem.pettingzoo.parallel_vec` makes one.

    Row `i * len(possible_agents) + k` is agent k of environment i. An environment is reset when all its agents have
    ended. Until then, the row of an agent that ended earlier is padding: zeros, no flags, and False in
    `infos["active"]`; its action has no effect. In the environment's last step the padding is truncated. So each row is
    a sequence of episodes, and an episode that is never active is padding.

    Autoreset modes hold for each row. With SAME_STEP, a row that ends has its last observation in `infos["final_obs"]`.
    Its observation is the first one of its next episode, or of its padding.

    `num_envs` is the number of rows, `num_parallel_envs` that of environments, `possible_agents` the names of the
    agents of each, in the order of their rows. Other attributes are those of `WorkerVectorEnv`, of one agent and of all
    rows.
    """

    _instead = (
        "its workers have one client, in this process; call parallel_vec with the same arguments in the other process"
    )

    def __init__(self, joint: JointVectorEnv) -> None:
        """Takes over environments; `close` closes them."""
        self._joint = joint
        self.possible_agents = joint.possible_agents
        self.num_parallel_envs = joint.num_envs
        self.num_envs = joint.num_envs * len(self.possible_agents)
        self.single_observation_space, self.single_action_space = joint.single_spaces
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.render_mode = joint.render_mode
        self._adopt_mode()

    def _adopt_mode(self) -> None:
        self.autoreset_mode = self._joint.autoreset_mode
        self.metadata = self._joint.metadata
        # Agents that have ended, in environments that have not.
        self._gone = np.zeros((self.num_parallel_envs, len(self.possible_agents)), np.bool_)
        # Rows whose padding began after the last exchange: the region still has the agent's last observation.
        self._padded = np.zeros(self.num_envs, np.bool_)

    def __len__(self) -> int:
        """Returns the number of rows."""
        return self.num_envs

    @property
    def client(self) -> SharedMemoryClient:
        """The client of the workers: `stats()`, `name`."""
        return self._joint.client

    def reset(self, *, seed: Seed = None, options: Mapping[str, Any] | None = None) -> tuple[Obs, dict[str, Any]]:
        """Starts new episodes of whole environments.

        Args:
          seed: Environment i starts from seed + i. Of a sequence with a seed for each row, it starts from that of its
            first row. None: each environment's random stream continues.
          options: None, or a mapping, which each environment's `reset` gets without "reset_mask". "reset_mask",
            bool[num_envs]: an environment is reset if all its rows are True. In other environments only rows of agents
            that have ended may be True: their padding starts.

        Returns:
          Observations of all rows, as `step` returns them, and infos of the environments that were reset. "env_failed"
          marks the rows of environments that still await their reset.

        Raises:
          InvalidArgument: An invalid seed or mask.
          TandemError: As `WorkerVectorEnv.reset`.
        """
        rows = self._of_agents(reset_mask(options, self.num_envs, None))
        if self._joint.client.pending and not self._joint.closed:
            with contextlib.suppress(EngineFailed):  # the results are dropped, but not the ends of agents
                self.recv()
        chosen: Mask = np.asarray(rows.all(axis=1))
        padding = rows & ~chosen[:, np.newaxis]
        if (wrong := (padding & ~self._gone).any(axis=1)).any():
            raise InvalidArgument(
                "reset_mask: expected all agents of an environment, which is reset as a whole, found only some of "
                f"environments {np.flatnonzero(wrong).tolist()}, and not all of these have ended; nothing was sent"
            )
        first_rows = np.arange(self.num_envs) % len(self.possible_agents) == 0
        seed = seed_of_chosen(seed, first_rows)
        others = {key: value for key, value in (options or {}).items() if key != "reset_mask"}
        if isinstance(options, dict):
            options.pop("reset_mask", None)  # as Gymnasium's own vector environments
        infos: dict[str, Any] = {}
        if chosen.any():
            given = None if options is None else {**others, "reset_mask": chosen}
            with self._reset_of(chosen):
                obs, of_joint = self._joint.reset(seed=seed, options=given)
            infos = self._infos_of(of_joint)
        else:
            obs = self._joint._last_observations()
            failed = np.repeat(self._joint.client.fields["status", ""] == RAISED, len(self.possible_agents))
            infos = {"env_failed": failed, "_env_failed": failed.copy()} if failed.any() else {}
        self._padded |= padding.reshape(-1)
        observations = self._rows_of(obs["obs"])
        assign(observations, self._padded, 0)
        return observations, infos

    def reset_each(
        self, options: Sequence[Mapping[str, Any] | None], *, seed: Seed = None
    ) -> tuple[Obs, list[tuple[list[int], dict[str, Any]]]]:
        """Resets all environments, each with options of its own, as `WorkerVectorEnv.reset_each`.

        Args:
          options: For each row. Those of an environment's first row are the environment's.
          seed: As for `reset`.

        Returns:
          Observations of all rows, and a list of parts: the rows that were reset together, and their infos.

        Raises:
          TandemError: As `reset`.
        """
        if len(options) != self.num_envs:
            raise InvalidArgument(f"options: expected {self.num_envs}, one for each row, found {len(options)}")
        count = len(self.possible_agents)
        seed = seed_of_chosen(seed, np.arange(self.num_envs) % count == 0)
        with self._reset_of(np.ones(self.num_parallel_envs, np.bool_)):
            obs, parts = self._joint.reset_each(options[::count], seed=seed)
        return self._rows_of(obs["obs"]), [
            ([env_id * count + agent for env_id in env_ids for agent in range(count)], self._infos_of(infos))
            for env_ids, infos in parts
        ]

    @contextlib.contextmanager
    def _reset_of(self, chosen: Mask) -> Iterator[None]:
        """Notes that environments were reset, also those beside one that raised an exception."""
        failed = None
        try:
            yield
        except EnvFailed as error:
            failed = error
        self._gone &= ~chosen[:, np.newaxis]
        self._padded &= ~np.repeat(chosen, len(self.possible_agents))
        if failed is not None:
            raise failed

    def step(self, actions: Any) -> StepResults:
        """Steps every environment once.

        Args:
          actions: An element of `action_space`: an action for each row.

        Returns:
          Observations, an element of `observation_space`, the caller's to keep; rewards float64[num_envs]; terminations
          and truncations bool[num_envs]; infos. infos["active"], bool[num_envs], is whether the environment returned an
          observation of the agent; infos["final_info"] has it, too.

        Raises:
          InvalidAction: Actions of another structure, shape or kind; nothing was sent.
          TandemError: As `WorkerVectorEnv.step`.
        """
        self.send(actions)
        return self.recv()

    def send(self, actions: Any) -> None:
        """Starts a step and returns at once; `recv` returns its results."""
        try:
            self._joint.send(actions)
        except InvalidAction:
            self._refuse_not_finite(actions)
            raise

    def _refuse_not_finite(self, actions: Any) -> None:
        """Raises InvalidAction for the first row whose numbers are not finite; returns if the reason is another."""
        try:
            with np.errstate(over="ignore"):
                given = np.asarray(actions, np.float32)
        except (TypeError, ValueError):  # no numbers, or no array
            return
        if given.shape == self.action_space.shape:
            for row in np.flatnonzero(~np.isfinite(given.reshape(self.num_envs, -1)).all(axis=1)):
                raise InvalidAction(
                    f"actions: expected finite values, found {shown(given[row])} for {self._joint.row_name(int(row))}; "
                    "nothing was sent"
                )

    def recv(self, timeout: float | None = None) -> StepResults:
        """Waits for the results of what was sent; results and errors are those of `step`."""
        try:
            obs, _, ends, cut, infos = self._joint.recv(timeout)
        except EnvFailed:
            self._note_ends_of_others()
            raise
        over: Mask = ends | cut
        kept = {name: obs[name].copy() for name in ("rewards", "terminations", "truncations", "active")}
        last: Any = infos.get("final_obs", ())
        for env_id in np.flatnonzero(over) if len(last) else ():
            for name, values in kept.items():
                values[env_id] = last[env_id][name]
        rewards, active = kept["rewards"], kept["active"] != 0
        terminations, truncations = kept["terminations"] != 0, kept["truncations"] != 0
        # JointEnv never truncates: a worker was started again, and what its environments returned before is old.
        rewards[cut], terminations[cut], truncations[cut] = 0, False, True
        ended = terminations | truncations
        self._note_ends(ended, over)
        obs, of_rows = self._rows_of(obs["obs"]), self._infos_of(infos)
        if self.autoreset_mode is AutoresetMode.SAME_STEP and ended.any():
            of_rows = self._started_next(obs, of_rows, infos, ended, over)
            now = ended.reshape(-1)
            of_rows["final_info"] |= {"active": active.reshape(-1) & now, "_active": now}
        of_rows["active"], of_rows["_active"] = active.reshape(-1), np.ones(self.num_envs, np.bool_)
        return obs, rewards.reshape(-1), terminations.reshape(-1), truncations.reshape(-1), of_rows

    def _note_ends(self, ended: Mask, over: Mask) -> None:
        """Notes which agents, bool[environments, agents], and which environments have ended in an exchange."""
        self._gone = (self._gone | ended) & ~over[:, np.newaxis]
        same_step = self.autoreset_mode is AutoresetMode.SAME_STEP
        self._padded = (ended & ~over[:, np.newaxis] & same_step).reshape(-1)

    def _note_ends_of_others(self) -> None:
        """Does so after an exchange whose results EnvFailed hides; a failed environment awaits its reset."""
        client, obs = self._joint.client, self._joint._last_observations()
        stepped: Mask = client.fields["status", ""] != RAISED
        ended = ((obs["terminations"] != 0) | (obs["truncations"] != 0)) & stepped[:, np.newaxis]
        self._note_ends(ended, (client.dones != 0) & stepped)

    def _started_next(self, obs: Obs, of_rows: Infos, infos: Infos, ended: Mask, over: Mask) -> Infos:
        """Starts the padding of agents that ended, in `obs`; returns all infos, with the last observations."""
        padding = self._padded
        now, of_padding = split_infos(of_rows, padding)
        final_info = merged_infos(self._infos_of(infos.get("final_info", {})), of_padding)
        last, count = copied(obs), len(self.possible_agents)
        for env_id in np.flatnonzero(over):  # its rows show the next episode
            assign(last, slice(env_id * count, (env_id + 1) * count), infos["final_obs"][env_id]["obs"])
        assign(obs, padding, 0)
        return now | final_infos(last, final_info, ended.reshape(-1), self.observation_space)

    def _of_agents(self, rows: Mask) -> Mask:
        """Returns flags of rows as [environments, agents]."""
        return rows.reshape(self.num_parallel_envs, -1)

    def _rows_of(self, obs: Any) -> Any:
        """Returns arrays [environments, agents, ...] as [rows, ...]."""
        if isinstance(obs, dict):
            return {key: self._rows_of(value) for key, value in obs.items()}
        if isinstance(obs, tuple):
            return tuple(map(self._rows_of, obs))
        return obs.reshape(self.num_envs, *obs.shape[2:])

    def _infos_of(self, infos: Infos) -> Infos:
        """Returns the infos of agents by their rows, and those of an environment in each of its rows."""
        count = len(self.possible_agents)
        of_agents = infos.get("agents", {})
        rows = infos_of_groups([of_agents.get(str(agent), {}) for agent in self.possible_agents])
        for name, values, mask in masked(infos):
            if name not in ("agents", "final_obs", "final_info"):
                rows[name], rows[f"_{name}"] = (np.repeat(each, count, axis=0) for each in (values, mask))
        return rows

    def as_sb3(self) -> "SharedMemoryVecEnv":
        """Makes a Stable-Baselines3 VecEnv of the rows; imports that package, and so torch.

        Their autoreset mode becomes SAME_STEP. `get_attr` and `env_method` of a row are those of its environment, and
        `get_images` has an image of each environment.

        Raises:
          ModuleNotFoundError: Stable-Baselines3 is not installed.
          TandemError: As `WorkerVectorEnv.as_sb3`.
        """
        self._joint.as_sb3()  # for its checks, and for the mode
        self._adopt_mode()
        from tandem.sb3 import SharedMemoryVecEnv

        return SharedMemoryVecEnv(self)

    def render(self) -> tuple[Any, ...] | None:
        """Returns what `render` of each environment returns."""
        return self._joint.render()

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Calls a method of every environment; returns the value of another attribute. As `WorkerVectorEnv.call`."""
        return self._joint.call(name, *args, **kwargs)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Returns a copy of an attribute of every environment."""
        return self._joint.get_attr(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Sets an attribute of every environment; `values` as for `WorkerVectorEnv.set_attr`."""
        self._joint.set_attr(name, values)

    def call_chosen(self, rows: EnvIds, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Calls a method of the environments of some rows, int[n] or bool[num_envs]; None: of all rows.

        Each environment is called once, also for several rows. Returns the result of its environment for each row.
        Errors are those of `WorkerVectorEnv.call`.
        """
        return self._for_rows(rows, lambda env_ids: self._joint.call_chosen(env_ids, name, *args, **kwargs))

    def set_chosen(self, rows: EnvIds, name: str, value: Any) -> None:
        """Sets an attribute of the environments of some rows, int[n] or bool[num_envs], to one value; None: of all."""
        self._for_rows(rows, lambda env_ids: self._set_each(env_ids, name, value))

    def _set_each(self, env_ids: list[int], name: str, value: Any) -> list[None]:
        self._joint.set_chosen(env_ids, name, value)
        return [None] * len(env_ids)

    def is_wrapped(self, wrapper: type[gymnasium.Wrapper[Any, Any, Any, Any]], rows: EnvIds = None) -> tuple[bool, ...]:
        """Returns False for each row: wrappers of Gymnasium do not take a ParallelEnv."""
        return (False,) * (self.num_envs if rows is None else len(distinct_ids(rows, self.num_envs)))

    def _for_rows(self, rows: EnvIds, call: Any) -> tuple[Any, ...]:
        count = len(self.possible_agents)
        chosen = list(range(self.num_envs)) if rows is None else distinct_ids(rows, self.num_envs)
        env_ids = sorted({row // count for row in chosen})
        results = dict(zip(env_ids, call(env_ids), strict=True))
        return tuple(results[row // count] for row in chosen)

    def close_extras(self, **kwargs: Any) -> None:
        """Closes the environments and their workers; `close` calls this."""
        self._joint.close()
