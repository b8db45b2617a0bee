"""Vector environments: the classes that `make_vec` returns, and Gymnasium's `AsyncVectorEnv` with Tandem's workers."""

from tandem.environments.async_vector import AsyncVectorEnv, CallPending, CallTimeout, NoCallPending
from tandem.environments.client_vector import ClientVectorEnv
from tandem.environments.make_vec import make_registered
from tandem.environments.own_rewards import OwnRewardsVectorEnv
from tandem.environments.transition import Transition
from tandem.environments.worker_vector import WorkerVectorEnv

__all__ = [
    "AsyncVectorEnv",
    "CallPending",
    "CallTimeout",
    "ClientVectorEnv",
    "NoCallPending",
    "OwnRewardsVectorEnv",
    "Transition",
    "WorkerVectorEnv",
    "make_registered",
]
