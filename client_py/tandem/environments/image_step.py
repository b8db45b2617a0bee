"""`ImageStep`: steps of environments whose observations are a Dict of the engine's images and of its other values."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from tandem.arguments import shown
from tandem.client import SharedMemoryClient
from tandem.environments.client_vector import Obs, StepResults
from tandem.environments.vector_arguments import Mask
from tandem.errors import InvalidArgument, Unsupported

STATE = "state"


def image_spaces(client: SharedMemoryClient, keys: Sequence[str]) -> dict[str, spaces.Box]:
    """Returns the space of each key's images; none: without keys, or the engine draws no images.

    Raises:
      InvalidArgument: The keys are not one for each camera.
      Unsupported: The engine does not keep the images of final observations.
    """
    if client.images is None or not keys:
        return {}
    _, height, width, channels = client.images.shape
    if width % len(keys) != 0 or len(set(keys)) != len(keys) or STATE in keys:
        raise InvalidArgument(
            f"image_keys: expected different keys, one for each camera of images {width} pixels wide, and no "
            f"{STATE!r}, found {shown(keys)}"
        )
    if client.final_images is None:
        raise Unsupported(
            f"region '{client.name}': expected an engine that keeps images of final observations, found one from "
            "before; install the client's version, or pass image_keys=()"
        )
    return {key: spaces.Box(0, 255, (height, width // len(keys), channels), np.uint8) for key in keys}


class ImageStep:
    """The interface of `_native.VectorStep`, around an object that has it and returns the other values.

    The images of several cameras are side by side in the region: each key has its part.
    """

    def __init__(self, client: SharedMemoryClient, step: Any, keys: Sequence[str], *, copy: bool) -> None:
        """Takes the client, whose engine draws images, and the steps. `copy`: observations are the caller's to keep."""
        self._client, self._step, self._copy = client, step, copy
        assert client.images is not None
        width = client.images.shape[2] // len(keys)
        self._columns = {key: slice(at * width, (at + 1) * width) for at, key in enumerate(keys)}

    def step(self, actions: Any) -> StepResults:
        """Does `send`, then `recv`."""
        return self._with_images(*self._step.step(actions))

    def send(self, actions: Any) -> None:
        """Starts a step of all environments."""
        self._step.send(actions)

    def send_chosen(self, env_ids: list[int]) -> None:
        """Starts a step of some environments, with the region's own actions."""
        self._step.send_chosen(env_ids)

    def recv(self, timeout: float | None = None) -> StepResults:
        """Waits for the results of what was sent."""
        return self._with_images(*self._step.recv(timeout))

    def expect_reset(self, mask: Mask) -> None:
        """Notes the environments that the next exchange resets."""
        self._step.expect_reset(mask)

    def reset_results(self) -> tuple[Obs, dict[str, Any]]:
        """Returns the observations and infos of a reset."""
        obs, infos = self._step.reset_results()
        return self.observations(obs), infos

    def observations(self, state: Obs) -> dict[str, Any]:
        """Returns the observations of all environments; `state` are the other values."""
        return {**self._parts(self._client.images, copy=self._copy), STATE: state}

    def _parts(self, images: NDArray[np.uint8] | None, *, copy: bool) -> dict[str, NDArray[np.uint8]]:
        """Returns the image of each key, of one environment or of all."""
        assert images is not None
        parts = {key: images[..., columns, :] for key, columns in self._columns.items()}
        return {key: part.copy() for key, part in parts.items()} if copy else parts

    def _with_images(self, state: Obs, *others: Any) -> StepResults:
        rewards, terminations, truncations, infos = others
        if (ended := infos.get("_final_obs")) is not None:
            final_images, last = self._client.final_images, infos["final_obs"]
            assert final_images is not None
            for index in np.flatnonzero(ended):
                last[index] = {**self._parts(final_images[index], copy=True), STATE: last[index]}
        return self.observations(state), rewards, terminations, truncations, infos
