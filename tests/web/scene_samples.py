"""An engine with a sample of a scene, and what a page shows of it."""

import contextlib
import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt

from tandem.testing.engines import unique_name
from tests.web.page_fixture import Page, Trainer, wait_for

SCENE_ENGINE = Path(__file__).parent / "scene_engine"
EXTENT = 3.0
# Names that are HTML, and that change the direction of text.
NAMES = ["torso <img src=x onerror=alert(1)>", "leg.left", "\u202egel", "מימין"]


def _box(half: tuple[float, float, float]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], list[int]]:
    """Returns the corners of a box's faces, their normals, and the indices of its triangles."""
    corners: list[Any] = []
    normals: list[Any] = []
    indices: list[int] = []
    for axis in range(3):
        for sign in (-1.0, 1.0):
            normal, right = np.zeros(3), np.zeros(3)
            normal[axis], right[(axis + 1) % 3] = sign, 1
            first = len(corners)
            for across, up in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
                corners.append((normal + across * right + up * np.cross(normal, right)) * half)
                normals.append(normal)
            indices += [first, first + 1, first + 2, first, first + 2, first + 3]
    return np.array(corners, np.float32), np.array(normals, np.float32), indices


class _Buffer:
    """The binary part of a GLB."""

    def __init__(self) -> None:
        self.data = b""
        self.views: list[dict[str, Any]] = []
        self.accessors: list[dict[str, Any]] = []

    def add(self, array: npt.NDArray[Any]) -> int:
        """Returns the index of its accessor."""
        self.views.append({"buffer": 0, "byteOffset": len(self.data), "byteLength": array.nbytes})
        self.data += array.tobytes() + bytes(-array.nbytes % 4)
        accessor: dict[str, Any] = {"bufferView": len(self.views) - 1, "count": len(array)}
        if array.ndim == 2:
            bounds = {"min": array.min(0).tolist(), "max": array.max(0).tolist()}
            accessor |= {"componentType": 5126, "type": "VEC3", **bounds}
        else:
            accessor |= {"componentType": 5123, "type": "SCALAR"}
        self.accessors.append(accessor)
        return len(self.accessors) - 1


def write_robot(path: Path, names: list[str] = NAMES, spare_bytes: int = 0) -> None:
    """Writes a floor and bodies with these names; the first has a collision geometry, and is followed.

    No mesh uses the first `spare_bytes` of the binary part.
    """
    buffer = _Buffer()
    buffer.data += bytes(spare_bytes)

    def mesh(half: tuple[float, float, float], material: int) -> dict[str, Any]:
        corners, normals, indices = _box(half)
        attributes = {"POSITION": buffer.add(corners), "NORMAL": buffer.add(normals)}
        primitive = {"attributes": attributes, "indices": buffer.add(np.array(indices, np.uint16))}
        return {"primitives": [primitive | {"material": material}]}

    meshes = [mesh((0.3, 0.2, 0.1), 0), mesh((50, 50, 0.01), 1), mesh((0.45, 0.3, 0.2), 2)]
    colours = [(0.8, 0.2, 0.1, 1), (0.2, 0.25, 0.2, 1), (1, 1, 0, 1)]
    materials = [{"pbrMetallicRoughness": {"baseColorFactor": colour, "metallicFactor": 0}} for colour in colours]
    bodies = [
        {"name": name, "children": [len(names) + 2 + i], "extras": {"tandem": {"entity": 10 + i, "body": i}}}
        for i, name in enumerate(names)
    ]
    bodies[0]["children"].append(2 * len(names) + 2)  # type: ignore[attr-defined]
    floor = {"name": "floor", "mesh": 1, "extras": {"tandem": {"plane": True}}}
    nodes = [
        {"name": "world", "rotation": [-(0.5**0.5), 0, 0, 0.5**0.5], "children": [*range(1, len(names) + 2)]},
        *bodies,
        floor,
        *({"mesh": 0} for _ in names),
        {"mesh": 2, "extras": {"tandem": {"collision": True}}},
    ]
    moving = [*range(1, len(names) + 1)]
    facts = {"moving": moving, "extent": EXTENT, "center": [1, 0, 1], "up": [0, 0, 1], "follow": 0}
    document = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0], "extras": {"tandem": facts}}],
        "nodes": nodes,
        "meshes": meshes,
        "materials": materials,
        "accessors": buffer.accessors,
        "bufferViews": buffer.views,
        "buffers": [{"byteLength": len(buffer.data)}],
    }
    text = json.dumps(document).encode()
    text += b" " * (-len(text) % 4)
    parts = struct.pack("<I4s", len(text), b"JSON") + text
    parts += struct.pack("<I4s", len(buffer.data), b"BIN\0") + buffer.data
    path.write_bytes(struct.pack("<4sII", b"glTF", 2, 12 + len(parts)) + parts)


@contextlib.contextmanager
def robots(
    folder: Path,
    *,
    name: str | None = None,
    num_envs: int = 1,
    names: list[str] = NAMES,
    spare_bytes: int = 0,
    **variables: str,
) -> Iterator[Trainer]:
    """Trains environments of the sample; `variables` are more ones of scene_engine.cc."""
    write_robot(folder / "robot.glb", names, spare_bytes)
    variables = {"SCENE_GLB": str(folder / "robot.glb"), "SCENE_NODES": str(len(names))} | variables
    with mock.patch.dict(os.environ, variables):
        training = Trainer(name or unique_name(), None, server=SCENE_ENGINE, frames=None, num_envs=num_envs)
    try:
        yield training
    finally:
        training.close()


def poses_at(env: int, step: int, nodes: int) -> npt.NDArray[np.float64]:
    """Returns the poses that scene_engine.cc has in a step: float64[nodes, 7]."""
    turn = [0.0, 0.0, np.sin(step / 20), np.cos(step / 20)]
    return np.array([[node + step / 100, env, 1, *turn] for node in range(nodes)])


def world_poses(poses: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float64]:
    """Returns the matrices of poses in a world whose y is up, in three.js's order: float64[nodes, 16]."""
    upright = np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]])
    matrices = []
    for x, y, z, qx, qy, qz, qw in poses:
        turn = [
            [1 - 2 * (qy * qy + qz * qz), 2 * (qx * qy - qz * qw), 2 * (qx * qz + qy * qw)],
            [2 * (qx * qy + qz * qw), 1 - 2 * (qx * qx + qz * qz), 2 * (qy * qz - qx * qw)],
            [2 * (qx * qz - qy * qw), 2 * (qy * qz + qx * qw), 1 - 2 * (qx * qx + qy * qy)],
        ]
        matrix = np.eye(4)
        matrix[:3, :3] = upright @ turn
        matrix[:3, 3] = upright @ [x, y, z]
        matrices.append(matrix.T.ravel())
    return np.array(matrices)


_SHOWN = """
const { panel } = document.querySelector("canvas.scene");
const found = panel.source(performance.now());
if (!found || found.share !== 1) return null;
panel.draw(performance.now());
return [...found.after.rows].flatMap(([env, row]) => {
  const copy = panel.view.copies.get(env);
  if (!copy) return [];
  const matrices = copy.nodes.map((node) => {
    const elements = [...node.matrixWorld.elements];
    copy.root.position.toArray().forEach((way, i) => { elements[12 + i] -= way; });
    return elements;
  });
  return [{ env, step: row.step, time: row.time, matrices }];
});
"""


def shown_poses(page: Page) -> list[dict[str, Any]] | None:
    """Returns env, step, time, world matrices without the place in the grid; None: they are between two snapshots."""
    found: list[dict[str, Any]] | None = page.driver.execute_script(_SHOWN)
    return found


def open_run_in_3d(page: Page, name: str) -> None:
    """Opens a run as a browser does in which no person has chosen images."""
    page.driver.execute_script("localStorage.removeItem('dimension')")
    page.run_button(name).click()


def open_scene(page: Page, trainer: Trainer) -> None:
    """Opens a run at full size, and waits for its poses."""
    open_run_in_3d(page, trainer.name)
    wait_for(lambda: page.all("canvas.scene"), "a scene")
    page.click("article .open")
    wait_for(lambda: shown_poses(page), "poses")


def assert_as_the_engine(rows: list[dict[str, Any]], envs: set[int]) -> None:
    """Each node's world matrix is that of the engine in this step."""
    assert {row["env"] for row in rows} == envs
    for row in rows:
        step = round(row["time"] * 100)  # row["step"] counts from the beginning of the watch
        expected = world_poses(poses_at(row["env"], step, len(NAMES)))
        assert np.abs(np.array(row["matrices"]) - expected).max() <= 1e-5 * EXTENT, row


def freeze(page: Page) -> list[dict[str, Any]]:
    """Freezes the scene, and returns what it shows, as `shown_poses`."""
    page.press(" ")
    wait_for(lambda: page.text("article .badge") == "FROZEN", "a frozen scene")
    return list(wait_for(lambda: shown_poses(page), "the newest poses"))


def tracks_of(glb: bytes) -> tuple[npt.NDArray[np.float32], dict[tuple[int, str], npt.NDArray[np.float32]]]:
    """Returns the times and the values of an animation's channels, by node and path."""
    assert struct.unpack("<4sII", glb[:12]) == (b"glTF", 2, len(glb))
    (size,) = struct.unpack("<I", glb[12:16])
    document, binary = json.loads(glb[20 : 20 + size]), glb[28 + size :]

    def numbers(index: int) -> npt.NDArray[np.float32]:
        view = document["bufferViews"][document["accessors"][index]["bufferView"]]
        begin = view["byteOffset"]
        return np.frombuffer(binary[begin : begin + view["byteLength"]], np.float32)

    (animation,) = document["animations"]
    samplers = animation["samplers"]
    tracks = {
        (channel["target"]["node"], channel["target"]["path"]): numbers(samplers[channel["sampler"]]["output"])
        for channel in animation["channels"]
    }
    return numbers(samplers[0]["input"]), tracks
