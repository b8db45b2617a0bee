"""`Agent`: what is observed and done, and the contract that environments run under."""

from dataclasses import dataclass
from typing import Any, overload

from tandem.arguments import integer, shown
from tandem.errors import BrokenPeer, InvalidArgument
from tandem.services.caller import Caller, EnvIds
from tandem.services.contract import SimulationContract
from tandem.services.methods import MethodId


@dataclass(frozen=True)
class AgentSchema:
    """What an agent observes and does.

    Attributes:
      agent_name: Such as "agent_3" of environment 3.
      observation_names: One for each number of an observation, such as "qvel/rootx", all different; empty: the engine
        does not say.
      action_names: One for each number of an action, all different: a MuJoCo actuator's, or its joint's where it has
        none; empty: the engine does not say.
      observation_size: float32 numbers in an observation.
      action_size: float32 numbers in an action.
    """

    agent_name: str
    observation_names: tuple[str, ...]
    action_names: tuple[str, ...]
    observation_size: int
    action_size: int


class Agent:
    """Asks for agents' schemas and sets their contracts; `client.agent` is one."""

    def __init__(self, caller: Caller) -> None:
        """Calls through `caller`."""
        self._caller = caller

    @overload
    def schema(self, env_ids: None = None, *, timeout: float | None = None) -> AgentSchema: ...
    @overload
    def schema(self, env_ids: EnvIds, *, timeout: float | None = None) -> tuple[AgentSchema, ...]: ...
    def schema(
        self, env_ids: EnvIds | None = None, *, timeout: float | None = None
    ) -> AgentSchema | tuple[AgentSchema, ...]:
        """Asks what agents observe and do.

        Args:
          env_ids: Indices, or a mask bool[num_envs]; None: environment 0 alone.
          timeout: Seconds; None: the client's.

        Returns:
          One schema, or with `env_ids` one for each, in their order.

        Raises:
          InvalidArgument: No such environment.
          Unsupported: The service is off.
          TandemError: As every call: docs/commands.md.
        """
        values = self._caller.call(MethodId.GetAgentSchema, timeout, env_ids=self._caller.env_ids(env_ids))
        if env_ids is not None:
            return tuple(_schema(each) for each in values["schemas"])
        if values["schema"] is None:
            raise BrokenPeer("expected a schema in the engine's answer, found none; reconnect(), or close()")
        return _schema(values["schema"])

    def set_contract(
        self,
        contract: SimulationContract,
        env_ids: EnvIds | None = None,
        *,
        seed: int | None = None,
        timeout: float | None = None,
    ) -> tuple[str, ...]:
        """Sets the contract under which environments run from their next reset on; none is reset now.

        Args:
          contract: It takes the place of the one before.
          env_ids: Indices, or a mask bool[num_envs]; None: all environments.
          seed: Environment i draws from seed + i all that the contract asks for: equal seeds, equal draws; None: the
            engine takes one of its own.
          timeout: Seconds; None: the client's.

        Returns:
          Names of the fields that this task has no use for: they change nothing.

        Raises:
          InvalidArgument: No such environment, or a contract that cannot be.
          Unsupported: The engine does not randomise, or the service is off.
          TandemError: As `schema`.
        """
        if not isinstance(contract, SimulationContract):
            raise InvalidArgument(f"contract: expected a tandem.services.SimulationContract, found {shown(contract)}")
        all_envs = range(self._caller.num_envs)
        given = contract.given()
        first = None if seed is None else integer("seed", seed, 0, 2**64 - 1, "; nothing was sent")
        values = self._caller.call(
            MethodId.ResetAgent,
            timeout,
            simulation_contract=given or None,
            env_ids=self._caller.env_ids(all_envs if env_ids is None else env_ids),
            seed=first if given else None,  # nothing is drawn without one
            at_next_reset=True,
        )
        return tuple(values["unused_fields"])


def _schema(values: dict[str, Any]) -> AgentSchema:
    return AgentSchema(
        values["agent_name"],
        tuple(values["observation_names"]),
        tuple(values["action_names"]),
        values["observation_size"],
        values["action_size"],
    )
