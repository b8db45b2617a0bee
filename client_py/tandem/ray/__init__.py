"""Rollouts from the nodes of a Ray cluster. Importing this imports ray.

rollout_workers  an engine, its region and the policy on each node; whole rollouts come back (docs/ray.md)
register_env     environments of Tandem for RLlib, by a name
"""

from tandem.ray.losses import Loss, NodeLost, WorkerLost
from tandem.ray.placement import Placement
from tandem.ray.rllib import register_env
from tandem.ray.rollout import Policy, Rollout
from tandem.ray.rollout_workers import RolloutStats, RolloutWorkers, rollout_workers

__all__ = [
    "Loss",
    "NodeLost",
    "Placement",
    "Policy",
    "Rollout",
    "RolloutStats",
    "RolloutWorkers",
    "WorkerLost",
    "register_env",
    "rollout_workers",
]
