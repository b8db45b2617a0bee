"""`SharedMemoryVectorEnv`: an engine's environments as a `gymnasium.vector.VectorEnv`."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import DTypeLike, NDArray

from tandem._native import AUTORESET_MODES, VectorStep
from tandem.arguments import shown
from tandem.arguments.arrays import contract_seed, env_indices, seeds_of
from tandem.client import SharedMemoryClient
from tandem.engine.process import EngineProcess
from tandem.environments.client_vector import ClientVectorEnv, GymnasiumVectorEnv, Obs
from tandem.environments.description import describe, has_rows
from tandem.environments.image_step import STATE, ImageStep, image_spaces
from tandem.environments.images import separate
from tandem.environments.registration import OTHER_TASK, TASKS
from tandem.environments.vector_arguments import Mask, Seed, as_floats, obs_dtype
from tandem.errors import InvalidArgument, LayoutMismatch, Unsupported
from tandem.services.contract import SimulationContract, contracts_of
from tandem.spaces.batches import Actions, Observations
from tandem.spaces.fields import layout

_UNKNOWN_SEED = -1  # Gymnasium's number


class SharedMemoryVectorEnv(ClientVectorEnv, GymnasiumVectorEnv):
    """A `SharedMemoryClient`'s environments as a Gymnasium vector environment; `make_vec` makes one with its engine.

    The spaces of one environment are the task's: Box[obs_size], and Box[act_size] or Discrete; of an engine with
    fields, any. Those of all are Box[num_envs, obs_size], and Box[num_envs, act_size] or MultiDiscrete[num_envs].

    If the engine draws images, observations are a Dict of "image", uint8[height, width, 3], and of these as "state".

    The option "contract" of `reset` is a `tandem.services.SimulationContract` for the environments that are reset, or a
    sequence with one, or None, for each of all `num_envs`; they keep it until another contract replaces it.

    >>> import tandem
    >>> with tandem.launch_engine("HalfCheetah-v5", num_envs=2) as engine:
    ...     envs = tandem.SharedMemoryVectorEnv(tandem.SharedMemoryClient(engine.name))
    ...     envs.observation_space.shape, envs.action_space.shape
    ...     envs.close()
    ((2, 17), (2, 6))
    """

    _reset_options = ("contract",)
    _instead = (
        "its engine has one client, in this process; pass the arguments of make_vec and call it in the other process"
    )

    def __init__(
        self,
        client: SharedMemoryClient,
        *,
        copy: bool = True,
        dtype: DTypeLike | None = None,
        render_mode: str | None = None,
        image_keys: Sequence[str] = ("image",),
        engine: EngineProcess | None = None,
    ) -> None:
        """Takes over an idle client, and the engine that it is attached to if one is given: `close` closes both.

        `copy` and `dtype` are those of `make_vec`; `render_mode` is None, or "rgb_array" for an engine that draws all
        environments. `image_keys` are the keys of the images in observations, one for each camera, of an engine that
        draws images; none: observations have no images.

        Raises:
          InvalidArgument: No client, or an invalid dtype or key.
          LayoutMismatch: The engine's description of its task is invalid.
          Unsupported: The engine's observations or actions are fields, and it does not describe their spaces; or its
            observations are on a GPU only; or it does not keep the images of final observations.
        """
        if not isinstance(client, SharedMemoryClient):
            raise InvalidArgument(f"client: expected a tandem.SharedMemoryClient, found {shown(client)}")
        if not client.has_cpu_obs:
            raise Unsupported(
                f"region '{client.name}': expected observations in the region, found them on a GPU only; use "
                "tandem.torch, or start the engine with fills_cpu"
            )
        self._task = describe(client)
        single = self._task.observation_space
        if has_rows(client):
            assert isinstance(single, spaces.Box)
            self._dtype = obs_dtype(single.dtype, dtype, copy)
            low, high = single.low.astype(self._dtype), single.high.astype(self._dtype)
            single = spaces.Box(low, high, single.shape, self._dtype.type)
        elif dtype is not None:
            raise InvalidArgument(
                f"dtype: expected None for an engine with fields, which have their own, found {shown(dtype)}; omit it"
            )
        self.render_mode = render_mode
        self._image_spaces = image_spaces(client, image_keys)
        self._seeds = [_UNKNOWN_SEED] * client.num_envs
        super().__init__(client, copy=copy, engine=engine, spaces=(self._with_images(single), self._task.action_space))

    def _with_images(self, space: spaces.Space[Any]) -> spaces.Space[Any]:
        """Returns the space of observations whose other values are in `space`."""
        return spaces.Dict({**self._image_spaces, STATE: space}) if self._image_spaces else space

    def _attach(self, client: SharedMemoryClient) -> None:
        super()._attach(client)
        if self._image_spaces:
            self._stepper = ImageStep(client, self._stepper, list(self._image_spaces), copy=self._copy)
        # The contract of each environment, and the seed that the engine got with it. A new client has none.
        self._contracts: list[tuple[SimulationContract, int | None]] = [(SimulationContract(), None)] * client.num_envs

    def _metadata(self) -> dict[str, Any]:
        return {
            "render_modes": ["rgb_array"] if self._client.has_frames else [],
            "render_fps": TASKS.get(self._client.task, OTHER_TASK).render_fps,
        }

    def _make_stepper(self, client: SharedMemoryClient) -> VectorStep:
        observed: Observations | None = None
        final: Observations | None = None
        actions: Actions | None = None
        if not has_rows(client):
            observed, final, actions = self._values_in_fields(client)
        single = self._task.action_space
        return VectorStep(
            client._native,
            observed,
            final,
            actions or functools.partial(as_floats, self._row_actions, self.num_envs),
            self._task.infos,
            wide=has_rows(client) and self._dtype == np.float64,
            copy=self._copy,
            autoreset=AUTORESET_MODES[client.autoreset_mode.name],
            choices=int(single.n) if isinstance(single, spaces.Discrete) else None,
        )

    @property
    def _row_actions(self) -> "spaces.Box | spaces.Discrete[np.int64]":  # quoted: Gymnasium 1.1 cannot subscript it
        """The action space of one environment whose actions are float32 rows."""
        space = self._task.action_space
        assert isinstance(space, spaces.Box | spaces.Discrete)
        return space

    def _values_in_fields(self, client: SharedMemoryClient) -> tuple[Observations, Observations, Actions]:
        def arrays(role: str, space: spaces.Space[Any]) -> dict[str, NDArray[Any]]:
            return {
                leaf.path: client.fields[role, leaf.path].reshape(self.num_envs, *leaf.shape)
                for leaf in layout(space).leaves
            }

        observed, acting = self._task.observation_space, self._task.action_space
        try:
            self._observations = Observations(observed, self.num_envs, arrays("obs", observed))
            final = Observations(observed, self.num_envs, arrays("final_obs", observed))
            self._actions = Actions(acting, self.num_envs, arrays("action", acting))
        except (KeyError, ValueError) as error:
            raise LayoutMismatch(
                f"region {client.name!r}: expected the fields of its spaces {observed} and {acting}, found "
                f"{list(client.fields)} ({error!r})"
            ) from error
        return self._observations, final, self._actions

    @property
    def np_random_seed(self) -> tuple[int, ...]:  # type: ignore[override]  # as Gymnasium's SyncVectorEnv has it
        """The seed of each environment's last reset that had one; -1 before."""
        return tuple(self._seeds)

    def _reset_chosen(self, mask: Mask, seed: Seed, options: Mapping[str, Any] | None) -> None:
        contracts = self._contracts_of(options, mask)
        self._client.reset(mask, seed=seed, contract=contracts)
        self._note_reset(contracts, mask, seed)

    def _contracts_of(self, options: Mapping[str, Any] | None, mask: Mask) -> list[SimulationContract | None]:
        """Returns the contract of each environment that `mask` chooses, by the options of a reset; None: unchanged."""
        given = contracts_of((options or {}).get("contract"), self.num_envs)
        return [given[index] for index in np.flatnonzero(mask)]

    def reset_each(
        self, options: Sequence[Mapping[str, Any] | None], *, seed: Seed = None
    ) -> tuple[Obs, list[tuple[Sequence[int], dict[str, Any]]]]:
        """Resets all environments, each by options of its own: None, or a mapping with "contract".

        Arguments, results and errors are those of `WorkerVectorEnv.reset_each`; InvalidArgument also for other options.
        """
        if len(options) != self.num_envs:
            raise InvalidArgument(f"options: expected {self.num_envs}, one for each environment, found {len(options)}")
        for index, each in enumerate(options):
            if each is not None and (not isinstance(each, Mapping) or each.keys() - {"contract"}):
                raise InvalidArgument(
                    f"options[{index}]: expected None or a dict with 'contract' alone, found {shown(each)}; nothing "
                    "was sent; options of the task are make_vec's"
                )
        contracts = [None if each is None else each.get("contract") for each in options]
        obs, infos = self.reset(seed=seed, options={"contract": contracts})
        return obs, [(range(self.num_envs), infos)]

    def _observations_of(self, env_ids: list[int], obs: Obs) -> Obs:
        if not self._image_spaces:
            return self._states_of(env_ids, obs)
        rows = {key: obs[key][np.asarray(env_ids)] for key in self._image_spaces}
        return {**rows, STATE: self._states_of(env_ids, obs[STATE])}

    def _states_of(self, env_ids: list[int], obs: Obs) -> Obs:
        return super()._observations_of(env_ids, obs) if has_rows(self._client) else self._observations.rows(env_ids)

    def _write_actions(self, env_ids: list[int], actions: Any) -> None:
        if not has_rows(self._client):
            self._actions.write_rows(env_ids, actions)
            return
        self._client.actions[env_ids] = as_floats(self._row_actions, len(env_ids), actions)

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:
        """Draws every environment as it is after the last step or reset; takes milliseconds for each.

        Returns:
          uint8[height, width, 3] for each environment, the caller's to keep: R, G, B, the top row first. Without a
          render mode: None, with a warning, as Gymnasium's own environments.

        Raises:
          Unsupported: The machine cannot draw; the message names the missing packages.
          StepPending: The last step was not received.
          StepTimeout: No image in time; the session continues.
          TandemError: As `SharedMemoryClient.drawn_frame`.
        """
        if self.closed:
            raise self._closed_error("render")
        if self.render_mode is None:
            gymnasium.logger.warn(
                'render() was called without a render mode; make the environments with render_mode="rgb_array"'
            )
            return None
        return separate(*self._client.drawn_frame(), self.num_envs)

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Calls a method of every environment; the only one is "render", without arguments.

        Returns:
          As `render`; () without a render mode.

        Raises:
          Unsupported: Another name, or arguments: the environments are not Python objects.
          TandemError: As `render`.
        """
        if name == "render" and not args and not kwargs:
            return self.render() or ()
        raise self._no_objects(f"call({name!r})", "`client` has the services of the engine")

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Returns an attribute of every environment.

        Args:
          name: "render_mode", "spec", "np_random_seed", "observation_space" or "action_space".

        Raises:
          Unsupported: Another name: the environments are not Python objects.
        """
        if name == "np_random_seed":
            return self.np_random_seed
        of_each = {
            "render_mode": self.render_mode,
            "spec": self.spec,
            "observation_space": self.single_observation_space,
            "action_space": self.single_action_space,
        }
        if name not in of_each:
            raise self._no_objects(f"get_attr({name!r})", f"expected one of {[*of_each, 'np_random_seed']}")
        return (of_each[name],) * self.num_envs

    def set_attr(self, name: str, values: object) -> NoReturn:
        """Raises Unsupported: the environments are not Python objects."""
        raise self._no_objects(
            f"set_attr({name!r})",
            "set a task's options in make_vec, such as ctrl_cost_weight=0.1, and change episodes by "
            'reset(options={"contract": tandem.services.SimulationContract(...)})',
        )

    def _no_objects(self, call: str, instead: str) -> Unsupported:
        return Unsupported(
            f"{call}: the environments are in the engine's process and are not Python objects; {instead}"
        )

    def _saved_states(self, ids: list[int]) -> list[bytes]:
        return self._client.states.save(ids)

    def _stage_states(self, states: Sequence[bytes], ids: list[int]) -> None:
        self._client.states.load(states, ids)

    def _discard_states(self, ids: list[int]) -> None:
        if not self._client.pending:
            self._client.states.discard(ids)

    def _note_reset(self, contracts: list[SimulationContract | None], mask: Mask, seed: Seed) -> None:
        """Records the contracts and the seeds of the environments that are reset."""
        if seed is None and not any(contracts):
            return
        indices = env_indices(mask, self.num_envs)
        seeds = seeds_of(seed, indices) or [None] * len(indices)
        for index, contract, its_seed in zip(indices, contracts, seeds, strict=True):
            if contract is not None:
                self._contracts[index] = contract, contract_seed(its_seed, index)
            if its_seed is not None:
                self._seeds[index] = its_seed
