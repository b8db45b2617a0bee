"""Random robots in contact, and their accelerations in two versions of MuJoCo.

A program too, which needs only NumPy and MuJoCo, so that each version runs it in its own environment:

    python random_robots.py save FILE        steps robots, and saves states with their accelerations
    python random_robots.py compare FILE     computes them with this environment's MuJoCo, and compares; prints the
                                             results of `compare`
    python random_robots.py compare_dense FILE   the same, without models of sparse matrices
"""

import sys
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray


def robots(seed: int, jacobian: str = "auto", *, spheres: bool = False) -> str:
    """Makes robots that fall onto a floor and onto each other: trunks with one to four legs of one to three joints.

    Args:
      seed: Chooses all shapes, joints, places and options.
      jacobian: MuJoCo's option: "auto", "dense" or "sparse".
      spheres: Whether each trunk is a sphere. The contacts of spheres and capsules are the same in more versions.

    Returns:
      MJCF of 20 to 150 degrees of freedom, with a motor for each joint of a leg.
    """
    rng = np.random.default_rng(seed)
    wanted, dofs = rng.integers(20, 145), 0
    trunks: list[str] = []
    motors: list[str] = []
    while dofs < wanted:
        joints = int(rng.integers(1, 4))
        legs = min(int(rng.integers(1, 5)), max(1, (150 - dofs - 6) // joints))
        if dofs + 6 + joints * legs > 150:
            break
        dofs += 6 + joints * legs
        names = [[f"{len(trunks)}/{leg}/{joint}" for joint in range(joints)] for leg in range(legs)]
        body = "".join(_leg(rng, each, 2 * np.pi * (leg + 0.5) / legs) for leg, each in enumerate(names))
        motors += [f'<motor joint="{name}" gear="{rng.uniform(1, 6)}"/>' for leg in names for name in leg]
        shapes = ('type="box" size=".2 .13 .06"', 'type="ellipsoid" size=".22 .14 .07"', 'type="sphere" size=".13"')
        shape = shapes[2 if spheres else rng.integers(3)]
        column, row, layer = len(trunks) % 3, len(trunks) // 3 % 3, len(trunks) // 9
        place = (0.33 * column, 0.3 * row, 0.35 + 0.3 * layer) + rng.uniform((-0.03, -0.05, 0), (0.03, 0.05, 0.15))
        trunks.append(f'<body pos="{_numbers(place)}"><freejoint/><geom {shape}/>{body}</body>')
    return (
        f'<mujoco><option jacobian="{jacobian}" cone="{rng.choice(["pyramidal", "elliptic"])}" '
        f'integrator="{rng.choice(["Euler", "implicitfast"])}"/>'
        f'<default><geom condim="{rng.choice([3, 4, 6])}" friction="{rng.uniform(0.5, 1.2)} .01 .001"/></default>'
        f'<worldbody><geom type="plane" size="5 5 .1"/>{"".join(trunks)}</worldbody>'
        f"<actuator>{''.join(motors)}</actuator></mujoco>"
    )


def _leg(rng: np.random.Generator, names: list[str], angle: float) -> str:
    opened, place = "", np.array([0.18 * np.cos(angle), 0.12 * np.sin(angle), 0])
    for name in names:
        length = rng.uniform(0.08, 0.2)
        axis = rng.choice(["1 0 0", "0 1 0", "0 0 1"][: 3 if opened else 2])
        opened += (
            f'<body pos="{_numbers(place)}"><joint name="{name}" axis="{axis}" damping="{rng.uniform(0.1, 1)}" '
            f'armature="{rng.uniform(0, 0.01)}" range="-1 1" limited="{rng.choice(["true", "true", "false"])}"/>'
            f'<geom type="capsule" size="{rng.uniform(0.025, 0.045)}" fromto="0 0 0 0 0 {-length}"/>'
        )
        place = np.array([0, 0, -length])
    return opened + "</body>" * len(names)


def _numbers(values: NDArray[np.float64]) -> str:
    return " ".join(map(str, values))


def random_controls(seed: int, model: mujoco.MjModel) -> Any:
    """Yields controls without end: float32[nu]."""
    rng = np.random.default_rng(seed)
    while True:
        yield rng.uniform(-1, 1, model.nu).astype(np.float32)


def copy_state(start: mujoco.MjData, to: mujoco.MjData) -> None:
    """Copies all that a step's acceleration depends on."""
    to.time = start.time
    for name in ("qpos", "qvel", "ctrl", "qacc_warmstart"):
        getattr(to, name)[:] = getattr(start, name)


def difference(found: NDArray[np.float64], expected: NDArray[np.float64]) -> float:
    """Returns the largest difference of two accelerations, in proportion to the largest acceleration."""
    return float(np.abs(found - expected).max() / (1 + np.abs(expected).max()))


def save(path: str, seeds: int = 100) -> None:
    """Saves the states of robots before three of 30 steps, with contacts and accelerations."""
    states: dict[str, Any] = {}
    for seed in range(seeds):
        model = mujoco.MjModel.from_xml_string(robots(seed, spheres=True))
        data = mujoco.MjData(model)
        for step, control in zip(range(30), random_controls(seed, model), strict=False):
            data.ctrl[:] = control
            if step in (0, 9, 29):
                states[f"{seed} {step} state"] = np.concatenate((data.qpos, data.qvel, data.ctrl, data.qacc_warmstart))
                mujoco.mj_forward(model, data)
                states[f"{seed} {step} distances"] = np.sort(data.contact.dist)
                states[f"{seed} {step} acceleration"] = data.qacc.copy()
            mujoco.mj_step(model, data)
    np.savez(path, **states)


def compare(path: str, *, dense_only: bool = False) -> tuple[int, int, float]:
    """Computes the accelerations of saved states where this MuJoCo finds the same contacts.

    Args:
      path: What `save` wrote.
      dense_only: Whether to leave out models for which MuJoCo takes sparse matrices.

    Returns:
      The number of states compared, the number of those with contacts, and the largest difference.
    """
    saved = np.load(path)
    compared, in_contact, worst = 0, 0, 0.0
    for name in [each.removesuffix(" state") for each in saved.files if each.endswith(" state")]:
        model = mujoco.MjModel.from_xml_string(robots(int(name.split()[0]), spheres=True))
        if dense_only and mujoco.mj_isSparse(model):
            continue
        data = mujoco.MjData(model)
        parts = np.split(saved[f"{name} state"], np.cumsum([model.nq, model.nv, model.nu]))
        data.qpos[:], data.qvel[:], data.ctrl[:], data.qacc_warmstart[:] = parts
        mujoco.mj_forward(model, data)
        distances = saved[f"{name} distances"]
        if data.ncon != len(distances) or not np.allclose(np.sort(data.contact.dist), distances, rtol=0, atol=1e-9):
            continue
        compared, in_contact = compared + 1, in_contact + (data.ncon > 0)
        worst = max(worst, difference(data.qacc, saved[f"{name} acceleration"]))
    return compared, in_contact, worst


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["save", file]:
            save(file)
        case ["compare" | "compare_dense" as command, file]:
            print(*compare(file, dense_only=command == "compare_dense"))
        case other:
            sys.exit(f"expected save, compare or compare_dense, and FILE, found {other}")
