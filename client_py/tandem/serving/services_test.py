"""The optional methods of an engine as services."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

import tandem
from tandem.environments.images import separate
from tandem.services import CameraKind, DebugArrow, Entity, SimulationContract, SimulationMode, Transform
from tandem.serving.arrays import EngineArrays
from tandem.serving.engine import Actuator, DebugMark, OwnMethod
from tandem.testing.engines import (  # noqa: F401, the fixtures
    nothing_left_behind,
    unique_name,
    watchdog,
)
from tandem.testing.live_scenes import glb_of, watched
from tandem.testing.python_engines import Counter, serving


class Furnished(Counter):
    """Has every optional method."""

    scene_name = "counters"
    joint_names = ("count",)
    actuators = (Actuator("left", -1, 1), Actuator("right"))
    cameras = ("front", "top")
    image_size = (8, 6)
    own_methods = {"echo": OwnMethod(help="Returns the request."), "fails": OwnMethod("text/plain")}

    def __init__(self) -> None:
        """Makes three environments."""
        super().__init__(3)
        self.place = np.zeros((3, 3), np.float32)
        self.control = np.zeros((3, 2))
        self.marks: dict[int, Sequence[DebugMark]] = {}
        self.contracts: list[Any] = []
        self.image: NDArray[np.uint8] | None = None

    def clear_client_state(self) -> None:
        """Moves the counters back."""
        self.place[:] = 0

    def entities(self, env: int) -> Sequence[Entity]:
        """Returns the world and the counter."""
        place = Transform(self.place[env], np.array([0, 0, 0, 1], np.float32), None)
        return [Entity(1, "world", None, ()), Entity(2, "counter", place, ("body",))]

    def move_entity(self, env: int, entity_id: int, transform: Transform) -> None:
        """Moves the counter alone."""
        if entity_id != 2 or transform.position is None:
            raise tandem.Unsupported("transform: expected a position of the counter")
        self.place[env] = transform.position

    def joints(self, env: int) -> tuple[ArrayLike, ArrayLike]:
        """Returns the count."""
        return [self.count[env]], [0.5]

    def controls(self, env: int) -> ArrayLike:
        """Returns what was set."""
        return list(self.control[env])

    def set_control(self, env: int, actuator: int, value: float) -> None:
        """Sets it."""
        self.control[env, actuator] = value

    def render(self, env: int, camera: str, width: int, height: int) -> NDArray[np.uint8]:
        """Shows the environment's number and the camera."""
        if self.image is not None:
            return self.image
        image = np.zeros((height, width, 3), np.uint8)
        image[0, 0] = (env, self.cameras.index(camera), 7)
        return image

    def call_own(self, name: str, data: bytes) -> bytes:
        """Returns the request, or fails."""
        if name == "fails":
            raise ValueError("no weather")
        return data

    def show_marks(self, env: int, marks: Sequence[DebugMark]) -> None:
        """Keeps them."""
        self.marks[env] = marks

    def set_contract(self, envs: Sequence[int], contract: SimulationContract | None, seed: int | None) -> Sequence[str]:
        """Keeps it, and uses the friction."""
        self.contracts.append((list(envs), contract, seed))
        return [name for name in contract.given() if name != "friction_range"] if contract else []


def test_scene() -> None:
    """Entities are read and moved; the next client finds them where they were."""
    engine = Furnished()
    with serving(engine) as name:
        with tandem.SharedMemoryClient(name) as client:
            assert client.scene.info().scene_name == "counters"
            assert client.scene.info().entity_count == 2
            client.scene.set_transform("counter", position=[1, 2, 3], env_id=1)
            entity = client.scene.entity("counter", env_id=1)
            assert (entity.id, entity.components) == (2, ("body",))
            assert entity.transform is not None and entity.transform.position is not None
            assert entity.transform.position.tolist() == [1, 2, 3]
            assert entity.transform.scale is None
            with pytest.raises(tandem.Unsupported, match="expected a position of the counter"):
                client.scene.set_transform(1, position=[1, 2, 3])
        with tandem.SharedMemoryClient(name) as client:
            assert not engine.place.any()


def test_joints_controls_and_telemetry() -> None:
    """The services mujoco and telemetry; values are clipped to an actuator's range."""
    engine = Furnished()
    with serving(engine) as name, tandem.SharedMemoryClient(name) as client:
        info = client.mujoco.info()
        assert (info.nq, info.nv, info.nu) == (1, 1, 2)
        assert (info.joint_names, info.actuator_names) == (("count",), ("left", "right"))
        client.step(client.actions)
        state = client.mujoco.joint_state([2])[0]
        assert (state.positions.tolist(), state.velocities.tolist()) == ([1], [0.5])
        client.mujoco.send_control({"left": 5.0, "right": 5.0}, env_ids=[1])
        assert engine.control.tolist() == [[0, 0], [1, 5], [0, 0]]
        with client.telemetry.stream([1]) as frames:
            assert next(frames)


def test_camera_and_viewport() -> None:
    """The viewport has the first camera's view; images are encoded."""
    with serving(Furnished()) as name, tandem.SharedMemoryClient(name) as client:
        assert [(each.id, each.name) for each in client.camera.list()] == [(3, "front"), (4, "top")]
        image = client.camera.frame("top", env_id=2)
        assert image.pixels.shape == (6, 8, 3) and image.pixels[0, 0].tolist() == [2, 1, 7]
        assert client.viewport.frame(width=3, height=2).pixels[0, 0].tolist() == [0, 0, 7]
        assert client.camera.frame("front", format="png").encoded.startswith(b"\x89PNG")
        with pytest.raises(tandem.Unsupported, match="DEPTH"):
            client.camera.frame("front", kind=CameraKind.DEPTH)


def test_frames_show_the_first_camera() -> None:
    """Each environment's tile is what `render` returned; a failure is in the frame's metadata."""
    engine = Furnished()
    with (
        serving(engine, frames=tandem.FrameOptions((8, 6), envs="all")) as name,
        tandem.SharedMemoryClient(name) as client,
    ):
        frame, metadata = client.drawn_frame()
        images = separate(frame, metadata, 3)
        assert [image[0, 0].tolist() for image in images] == [[env, 0, 7] for env in range(3)]
        engine.image = np.zeros((1, 1), np.uint8)
        client.step(client.actions)
        _, metadata = client.drawn_frame()
        assert "expected uint8[6, 8, 3]" in json.loads(metadata)["error_text"]
        client.step(client.actions)


def test_frames_need_render() -> None:
    """The message names the option and the task."""
    with pytest.raises(tandem.InvalidArgument, match="expected a task that can be drawn, found 'Counter'"):
        tandem.serve(Counter(), name=unique_name(), frames=(8, 6))


class Shown(Counter):
    """Has a scene of one node, whose x is the count."""

    def __init__(self) -> None:
        """Makes three environments."""
        super().__init__(3)
        self.made: Any = glb_of({"scenes": [{}], "nodes": [{"name": "box", "mesh": 0}]})
        self.found: Any = self.count
        self.copies = 0

    def scene(self) -> Any:
        """Returns the file, or fails."""
        return self.made() if callable(self.made) else self.made

    def poses(self, envs: NDArray[np.int64], out: NDArray[np.float32]) -> None:
        """Writes the counts, or fails."""
        self.copies += 1
        out[:] = (0, 0, 0, 0, 0, 0, 1)
        out[:, 0, 0] = (self.found() if callable(self.found) else self.found)[envs]


def test_a_viewer_gets_the_live_scene() -> None:
    """The file once, and the poses of the watched environments; nothing is asked for before."""
    engine = Shown()
    with serving(engine) as name, tandem.SharedMemoryClient(name, timeout=60) as client:
        client.step(client.actions)
        assert engine.copies == 0
        with watched(name, 0, 2) as scene:
            assert (scene.generation, scene.glb, scene.nodes) == (1, engine.made, 1)
            client.step(client.actions)
            snapshot = scene.next()
            while snapshot.steps != [1, 1]:
                snapshot = scene.next()
            assert (snapshot.envs, snapshot.poses[:, 0, 0].tolist()) == ([0, 2], [2, 2])
            engine.made = glb_of({"scenes": [{}], "nodes": [{"name": "ball", "mesh": 0}]})
            engine.scene_version = 7
            assert scene.attach()["generation"] == 2
            assert scene.gltf["nodes"][0]["name"] == "ball"
            engine.found = np.full(3, np.nan)
            while not np.isnan(scene.next().poses[0, 0, 0]):
                client.step(client.actions)


def test_poses_that_an_engine_does_not_write_are_not_finite() -> None:
    """A viewer does not draw them."""

    class Lazy(Shown):
        def poses(self, envs: NDArray[np.int64], out: NDArray[np.float32]) -> None:
            """Writes the first environment's alone."""
            out[0] = (0, 0, 0, 0, 0, 0, 1)

    with serving(Lazy()) as name, tandem.SharedMemoryClient(name, timeout=60) as client, watched(name, 0, 1) as scene:
        client.step(client.actions)
        poses = scene.next().poses
        assert np.isfinite(poses[0]).all() and np.isnan(poses[1]).all()


def test_a_scene_needs_poses() -> None:
    """Each needs the other."""

    class Still(Counter):
        def scene(self) -> bytes:
            return b""

    with pytest.raises(tandem.InvalidArgument, match="found scene without poses"):
        tandem.serve(Still(), name=unique_name())


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"made": lambda: 1 / 0}, "ZeroDivisionError"),
        ({"made": "glTF"}, "scene of Shown: expected the bytes of a .glb file, found str"),
        ({"made": b"glTF"}, "expected a file of glTF 2.0 in its binary form"),
        ({"made": glb_of({"scenes": [{}], "nodes": []})}, "expected nodes that move, found none"),
        ({"found": lambda: 1 / 0}, "ZeroDivisionError"),
        ({"scene_version": -1}, "scene_version"),
    ],
)
def test_a_failed_scene_ends_the_watch_alone(change: dict[str, Any], text: str) -> None:
    """The viewer gets the reason, and steps go on."""
    engine = Shown()
    with serving(engine) as name, tandem.SharedMemoryClient(name, timeout=60) as client:
        for attribute, value in change.items():
            setattr(engine, attribute, value)
        with pytest.raises(tandem.TandemError, match=text), watched(name) as scene:
            while True:
                scene.items.next()
        for step in range(1, 4):
            client.step(client.actions)
            assert engine.count.tolist() == [step] * 3


def test_own_methods() -> None:
    """Bytes in, bytes out; an exception fails the call alone; an unknown name lists the known ones."""
    with serving(Furnished()) as name, tandem.SharedMemoryClient(name) as client:
        assert client.call("echo", b"\0\xff{}") == b"\0\xff{}"
        assert client.call("echo") == b""
        with pytest.raises(tandem.EngineFailed, match="ValueError: no weather"):
            client.call("fails", b"{}")
        with pytest.raises(tandem.InvalidArgument, match="echo, fails; found 'snow'"):
            client.call("snow")
        with pytest.raises(tandem.InvalidArgument, match="data: expected bytes"):
            client.call("echo", "text")  # type: ignore[arg-type]
        listed = json.loads(client.description)["own_methods"]
        assert [(each["name"], each["content_type"]) for each in listed] == [
            ("echo", "application/octet-stream"),
            ("fails", "text/plain"),
        ]


def test_own_methods_need_call_own() -> None:
    """Each needs the other."""

    class Listed(Counter):
        own_methods = {"echo": OwnMethod()}

    with pytest.raises(tandem.InvalidArgument, match="found own_methods without call_own"):
        tandem.serve(Listed(), name=unique_name())


def test_images_beside_observations() -> None:
    """Resets and steps write them; a client reads them."""

    class Seeing(Counter):
        observation_image_size = (4, 2)

        def reset(self, envs: NDArray[np.int64], seeds: Sequence[int | None], arrays: EngineArrays) -> None:
            super().reset(envs, seeds, arrays)
            assert arrays.images is not None
            arrays.images[envs] = 9

        def step(self, envs: Any, arrays: EngineArrays) -> None:
            super().step(envs, arrays)
            assert arrays.images is not None
            arrays.images[envs, 1, 3, 2] = self.count[envs]

    with serving(Seeing()) as name, tandem.SharedMemoryClient(name) as client:
        assert client.images is not None and client.images.shape == (3, 2, 4, 3)
        assert (client.images == 9).all()
        client.step(client.actions)
        assert client.images[:, 1, 3, 2].tolist() == [1, 1, 1]
        assert client.image_step == 1


def test_marks() -> None:
    """The engine gets all marks of an environment when they change."""
    engine = Furnished()
    with serving(engine) as name:
        with tandem.SharedMemoryClient(name) as client:
            client.debug.line([0, 0, 0], [1, 0, 0], color=(1, 0, 0), env_id=1)
            client.debug.draw(arrows=[DebugArrow([0, 0, 1], [0, 2, 0])], env_id=1)
            line, arrow = engine.marks[1]
            assert line == DebugMark(False, (0, 0, 0), (1, 0, 0), (1, 0, 0, 1))
            assert arrow[:3] == (True, (0, 0, 1), (0, 2, 1))
        with tandem.SharedMemoryClient(name):
            assert engine.marks == {1: []}


def test_contracts() -> None:
    """The engine gets the given fields; unused ones are reported."""
    engine = Furnished()
    with serving(engine) as name, tandem.SharedMemoryClient(name) as client:
        contract = SimulationContract(friction_range=(0.5, 1), mass_scale_range=(1, 2), terrain_type="moon")
        assert client.agent.set_contract(contract, [0, 2], seed=4) == ("mass_scale_range", "terrain_type")
        assert client.agent.set_contract(SimulationContract(), [1]) == ()
    (envs, given, seed), (others, none, _) = engine.contracts
    assert (envs, seed, others, none) == ([0, 2], 4, [1], None)
    assert given == contract


@pytest.mark.parametrize(
    ("change", "call", "text"),
    [
        ({"image": np.zeros((6, 8))}, lambda client: client.camera.frame("top"), "expected uint8\\[6, 8, 3\\], found"),
        ({"joints": lambda env: ([1, 2], [3])}, lambda client: client.mujoco.joint_state(), "expected 1 numbers"),
        ({"entities": lambda env: [Entity(7, "x", None, ())]}, lambda client: client.scene.info(), "the ids 1, 2"),
        ({"move_entity": lambda *_: 1 / 0}, lambda client: client.scene.set_transform(2, position=[0] * 3), "Zero"),
        ({"set_control": lambda *_: 1 / 0}, lambda client: client.mujoco.send_control([0]), "ZeroDivision"),
    ],
    ids=["image", "joints", "entities", "move", "control"],
)  # fmt: skip
def test_invalid_results_fail_the_call_alone(change: dict[str, Any], call: Any, text: str) -> None:
    """The text names the method, what was expected and what was found."""
    engine = Furnished()
    with serving(engine) as name, tandem.SharedMemoryClient(name) as client:
        for attribute, value in change.items():
            setattr(engine, attribute, value)
        with pytest.raises(tandem.EngineFailed, match=text):
            call(client)
        client.step(client.actions)


def test_a_step_without_an_exchange_takes_the_controls() -> None:
    """If they fail, this step fails alone; in real time, too."""

    class Driven(Furnished):
        action_space = spaces.Box(-9, 9, (2,))

    engine = Driven()
    with serving(engine) as name, tandem.SharedMemoryClient(name) as client:
        client.scene.pause()
        engine.control[:] = [3, 4]
        assert client.scene.single_step() == 1
        engine.controls = lambda env: [1 / 0]  # type: ignore[method-assign]
        with pytest.raises(tandem.EngineFailed, match="ZeroDivisionError"):
            client.scene.single_step()
        client.scene.set_simulation_mode(SimulationMode.REALTIME)
        client.scene.resume()
        assert client.step(client.actions)[1].tolist() == [7, 7, 7]


def test_actuators_need_controls() -> None:
    """The message names the method."""

    class Uncontrolled(Counter):
        actuators = (Actuator("left"),)

        def joints(self, env: int) -> tuple[ArrayLike, ArrayLike]:
            return [0], [0]

    with pytest.raises(tandem.InvalidArgument, match="controls: expected a method of Uncontrolled"):
        tandem.serve(Uncontrolled(), name=unique_name())


def test_an_engine_without_methods_has_no_services() -> None:
    """Each call is Unsupported."""
    with serving(Counter()) as name, tandem.SharedMemoryClient(name) as client:
        for call in (client.scene.entities, client.mujoco.info, lambda: client.camera.frame("camera")):
            with pytest.raises(tandem.Unsupported):
                call()


def test_services_are_chosen_by_name() -> None:
    """The others are off."""
    with serving(Furnished(), services=["scene"]) as name, tandem.SharedMemoryClient(name) as client:
        client.scene.info()
        with pytest.raises(tandem.Unsupported):
            client.mujoco.info()
