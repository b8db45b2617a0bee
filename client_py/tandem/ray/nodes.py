"""Nodes of the Ray cluster, and which of them can have a worker."""

import contextlib
import socket
from collections.abc import Mapping
from typing import NamedTuple

import ray

_PROBE_SECS = 1.0


class Node(NamedTuple):
    """A node that Ray counts as alive: Ray's id, its name and address for messages, address and port of its raylet.

    `resources` are all that it has, such as {"CPU": 8.0}.
    """

    id: str
    host: str
    raylet: tuple[str, int]
    resources: Mapping[str, float]

    def has(self, wanted: Mapping[str, float]) -> bool:
        """Returns whether its resources, used or not, are enough."""
        return all(self.resources.get(name, 0.0) >= amount for name, amount in wanted.items())

    def answers(self) -> bool:
        """Returns whether its raylet accepts a connection within a second.

        Ray itself counts a node as alive until its health check fails, some seconds later.
        """
        with contextlib.suppress(OSError), socket.create_connection(self.raylet, _PROBE_SECS):
            return True
        return False


def live_nodes() -> dict[str, Node]:
    """Returns the nodes that Ray counts as alive, by id."""
    return {
        node["NodeID"]: Node(
            node["NodeID"],
            f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']}, node {node['NodeID'][:8]})",
            (node["NodeManagerAddress"], node["NodeManagerPort"]),
            node["Resources"],
        )
        for node in ray.nodes()
        if node["Alive"]
    }
