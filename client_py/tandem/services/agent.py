"""`Agent`: what agents observe and do, and the contracts of environments."""

from dataclasses import dataclass
from typing import Any, overload

from tandem._native import MethodId
from tandem.arguments import integer
from tandem.services.caller import EnvIds, Service, part
from tandem.services.contract import SimulationContract, expected_contract


@dataclass(frozen=True)
class AgentSchema:
    """What an agent observes and does.

    Attributes:
      agent_name: Such as "agent_3" of environment 3.
      observation_names: One for each number of an observation, such as "qvel/rootx", all different; empty: unknown.
      action_names: One for each number of an action, all different: a MuJoCo actuator's name, or its joint's if it has
        none; empty: unknown.
      observation_size: float32 numbers in an observation.
      action_size: float32 numbers in an action.
    """

    agent_name: str
    observation_names: tuple[str, ...]
    action_names: tuple[str, ...]
    observation_size: int
    action_size: int


class Agent(Service):
    """Reads the schemas of agents and sets their contracts; `client.agent` is one."""

    @overload
    def schema(self, env_ids: None = None, *, timeout: float | None = None) -> AgentSchema: ...
    @overload
    def schema(self, env_ids: EnvIds, *, timeout: float | None = None) -> tuple[AgentSchema, ...]: ...
    def schema(
        self, env_ids: EnvIds | None = None, *, timeout: float | None = None
    ) -> AgentSchema | tuple[AgentSchema, ...]:
        """Returns what agents observe and do: one schema, or with `env_ids` one for each, in their order."""
        values = self._caller.call(MethodId.GetAgentSchema, timeout, env_ids=self._caller.env_ids(env_ids))
        if env_ids is not None:
            return tuple(_schema(each) for each in values["schemas"])
        return _schema(part(values, "schema", "a schema"))

    def set_contract(
        self,
        contract: SimulationContract,
        env_ids: EnvIds | None = None,
        *,
        seed: int | None = None,
        timeout: float | None = None,
    ) -> tuple[str, ...]:
        """Sets the contract of environments, in place of the one before, from their next reset on; resets none now.

        Without `env_ids` it is of all environments. Environment i draws what the contract randomises from `seed` + i;
        None: the engine chooses a seed. Returns the names of the contract's fields without effect on this task.
        """
        expected_contract("contract", contract)
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
