"""`Placement`: on which nodes the workers run, and how long the caller waits for nodes."""

from collections.abc import Mapping
from dataclasses import dataclass

from tandem.arguments import flag, integer, seconds, shown
from tandem.errors import InvalidArgument


@dataclass(frozen=True, kw_only=True)
class Placement:
    """On which nodes the workers of `rollout_workers` run, such as `Placement(resources={"CPU": 8, "simulation": 1})`.

    Attributes:
      resources: Ray's resources that each worker takes: only nodes that have them get one. "CPU", a whole number, also
        is the number of the engine's threads, or of the processes of environments in Python. None: all cores of its
        node; with `share_nodes` one.
      share_nodes: Whether a node may have several workers; otherwise at most one.
      start_timeout: Seconds that the start of a worker may take.
      rejoin_timeout: Seconds for which `collect` waits while there is no worker at all.
    """

    resources: Mapping[str, float] | None = None
    share_nodes: bool = False
    start_timeout: float = 120.0
    rejoin_timeout: float = 300.0

    def __post_init__(self) -> None:
        """Checks the values; InvalidArgument: one of another type, or out of its range."""
        flag("Placement.share_nodes", self.share_nodes, after="")
        seconds("Placement.start_timeout", self.start_timeout)
        seconds("Placement.rejoin_timeout", self.rejoin_timeout)
        given = self.resources
        if given is None:
            return
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            raise InvalidArgument(f"Placement.resources: expected names and numbers, found {shown(given)}")
        wanted = {name: seconds(f"Placement.resources[{name!r}]", amount) for name, amount in given.items()}
        cores = wanted.setdefault("CPU", 1.0)
        integer("Placement.resources['CPU']", int(cores) if cores == int(cores) else cores, 1)  # type: ignore[arg-type]
        object.__setattr__(self, "resources", wanted)  # the class is frozen

    def least(self) -> Mapping[str, float]:
        """Returns what a node needs to get a worker."""
        return {"CPU": 1.0} if self.resources is None else self.resources

    def taken(self, of_node: Mapping[str, float]) -> Mapping[str, float]:
        """Returns what a worker takes of a node with these resources."""
        if self.resources is not None:
            return self.resources
        return {"CPU": 1.0 if self.share_nodes else float(int(of_node["CPU"]))}
