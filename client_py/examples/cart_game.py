"""An engine in Python with all that an engine can have: a cart that is pushed along a line, and seen.

    python cart_game.py --num_envs 4 --name demo --frames 320x240

Its observation is an image, `obs["image"]`. It has frames and a live scene for viewers, a camera, numbers for
telemetry, a contract that draws the friction, states that clients save and load, and a method of its own:
`client.call("set_wind", b"3")`.
"""

import json
import struct
from collections.abc import Sequence

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

import tandem
from tandem.services import SimulationContract
from tandem.serving.arrays import EngineArrays
from tandem.serving.engine import Index, OwnMethod

_SIDE = 36  # pixels: the least that the CNN of Stable-Baselines3 takes
_STEP_SECS = 1 / 60
_ORANGE = (255, 140, 0)


def boxes(**of: tuple[Sequence[float], Sequence[float]]) -> bytes:
    """Returns a file of glTF in its binary form: boxes by their names, half sizes and RGBA. The first one moves."""
    corners = np.array(list(np.ndindex(2, 2, 2)), np.float32) * 2 - 1
    faces = bytes(int(face[i]) for face in "0132 4675 0451 2376 0264 1573".split() for i in (0, 1, 2, 0, 2, 3))
    binary = corners.tobytes() + faces
    moving = {"moving": [1], "extent": 2, "center": [0, 0, 0], "up": [0, 1, 0], "follow": 0}
    gltf = {
        "asset": {"version": "2.0"},
        "scenes": [{"nodes": [0], "extras": {"tandem": moving}}],
        "nodes": [{"name": "world", "children": list(range(1, len(of) + 1))}]
        + [{"name": name, "mesh": i, "scale": half} for i, (name, (half, _)) in enumerate(of.items())],
        "meshes": [
            {"primitives": [{"attributes": {"POSITION": 0}, "indices": 1, "material": i}]} for i in range(len(of))
        ],
        "materials": [{"pbrMetallicRoughness": {"baseColorFactor": rgba}} for _, rgba in of.values()],
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": 8, "type": "VEC3", "min": [-1] * 3, "max": [1] * 3},
            {"bufferView": 1, "componentType": 5121, "count": 36, "type": "SCALAR"},
        ],
        "bufferViews": [
            {"buffer": 0, "byteLength": corners.nbytes},
            {"buffer": 0, "byteOffset": corners.nbytes, "byteLength": len(faces)},
        ],
        "buffers": [{"byteLength": len(binary)}],
    }
    text = json.dumps(gltf).encode()
    text += b" " * (-len(text) % 4)
    head = struct.pack("<4s3I4s", b"glTF", 2, 28 + len(text) + len(binary), len(text), b"JSON")
    return head + text + struct.pack("<I4s", len(binary), b"BIN\0") + binary


class CartGame(tandem.Engine):
    """A cart at -1 to 1; the episode ends at 1."""

    task = "PythonCartGame"
    observation_space = spaces.Dict({"image": spaces.Box(0, 255, (_SIDE, _SIDE, 3), np.uint8)})
    action_space = spaces.Box(-1, 1, (1,))
    step_secs = _STEP_SECS
    joint_names = ("at", "speed")
    cameras = ("side",)
    own_methods = {"set_wind": OwnMethod("text/plain", "Sets a force on all carts, a number; answers ok.")}

    def __init__(self, num_envs: int, *, truncate_after: int = 200) -> None:
        """Makes the state of all environments."""
        self.num_envs = num_envs
        self.max_episode_steps = truncate_after
        self._at, self._speed, self._friction = np.zeros((3, num_envs))
        self._steps = np.zeros(num_envs, np.int64)
        self._wind = 0.0
        self._random = [np.random.default_rng() for _ in range(num_envs)]
        self._contracts: dict[int, tuple[Sequence[float], np.random.Generator]] = {}  # friction ranges, random streams

    def reset(self, envs: NDArray[np.int64], seeds: Sequence[int | None], arrays: EngineArrays) -> None:
        """Places each cart in the left half; its friction is the contract's."""
        for env, seed in zip(envs.tolist(), seeds, strict=True):
            if seed is not None:
                self._random[env] = np.random.default_rng(seed)
            self._at[env] = self._random[env].uniform(-1, 0)
            self._friction[env] = 0.5
            if env in self._contracts:
                (low, high), draws = self._contracts[env]
                self._friction[env] = draws.uniform(low, high)
        self._speed[envs] = self._steps[envs] = 0
        self._observe(envs, arrays)

    def step(self, envs: Index, arrays: EngineArrays) -> None:
        """Pushes the carts for one step."""
        push = np.clip(arrays.actions[envs, 0], -1, 1)
        speed = self._speed[envs]
        speed = speed + (4 * push + self._wind - self._friction[envs] * speed) * _STEP_SECS
        at = self._at[envs] + speed * _STEP_SECS
        stops = ~(at >= -1)  # at NaN, too
        self._speed[envs] = np.where(stops, 0, speed)
        self._at[envs] = np.where(stops, -1, np.minimum(at, 1))
        self._steps[envs] += 1
        arrays.rewards[envs] = self._at[envs] - 1
        arrays.terminateds[envs] = self._at[envs] == 1
        arrays.truncateds[envs] = self._steps[envs] == self.max_episode_steps  # 0: no limit
        self._observe(envs, arrays)

    def _observe(self, envs: Index, arrays: EngineArrays) -> None:
        for env in range(self.num_envs) if isinstance(envs, slice) else envs:
            arrays.obs["image"][env] = self.render(env, "side", _SIDE, _SIDE)

    def render(self, env: int, camera: str, width: int, height: int) -> NDArray[np.uint8]:
        """Returns an image of the cart, for the observation, frames, and the services camera and viewport."""
        image = np.full((height, width, 3), 30 + self._steps[env] % 100, np.uint8)
        image[height // 2 :, int((self._at[env] + 1) / 2 * (width - 1))] = _ORANGE
        return image

    def scene(self) -> bytes:
        """Returns the cart, which moves, and its track, for viewers that draw them: two boxes."""
        return boxes(cart=((0.1, 0.05, 0.08), (1, 0.55, 0, 1)), track=((1.1, 0.01, 0.03), (0.3, 0.3, 0.3, 1)))

    def poses(self, envs: NDArray[np.int64], out: NDArray[np.float32]) -> None:
        """Writes where the carts are."""
        out[:] = (0, 0, 0, 0, 0, 0, 1)
        out[:, 0, 0] = self._at[envs]

    def joints(self, env: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns the positions, those of `joint_names`, and the speed, for the services mujoco and telemetry."""
        return np.array([self._at[env], self._speed[env]]), self._speed[env : env + 1]

    def set_contract(self, envs: Sequence[int], contract: SimulationContract | None, seed: int | None) -> list[str]:
        """Draws the friction of later episodes from the contract's range."""
        given = {} if contract is None else contract.given()
        for env in envs:
            self._contracts.pop(env, None)
            if "friction_range" in given:
                draws = np.random.default_rng(None if seed is None else seed + env)
                self._contracts[env] = given["friction_range"], draws
        return [name for name in given if name != "friction_range"]

    def save_state(self, env: int) -> bytes:
        """Returns the cart, its contract, and their random streams."""
        cart = [self._at[env], self._speed[env], self._friction[env], int(self._steps[env])]
        limits, draws = self._contracts.get(env, (None, None))
        streams = [each and each.bit_generator.state for each in (self._random[env], draws)]
        return json.dumps([cart, limits, streams]).encode()

    def load_state(self, env: int, data: bytes) -> None:
        """Puts them in place."""
        cart, limits, (stream, draws) = json.loads(data)
        self._at[env], self._speed[env], self._friction[env], self._steps[env] = cart
        self._random[env].bit_generator.state = stream
        self._contracts.pop(env, None)
        if limits is not None:
            self._contracts[env] = limits, np.random.default_rng()
            self._contracts[env][1].bit_generator.state = draws

    def call_own(self, name: str, data: bytes) -> bytes:
        """Sets the wind."""
        try:
            wind = float(data)
        except ValueError:
            wind = np.nan
        if not np.isfinite(wind):
            raise tandem.InvalidArgument(f"set_wind: expected a finite number, found {data[:20]!r}")
        self._wind = wind
        return b"ok"

    def clear_client_state(self) -> None:
        """The next client finds no wind and no contracts."""
        self._wind = 0.0
        self._contracts.clear()


if __name__ == "__main__":
    tandem.serve_program(CartGame)
