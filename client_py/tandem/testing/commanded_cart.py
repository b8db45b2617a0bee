"""A cart whose observation ends with its velocity command: the number that the engine drew from a contract."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tandem.services.contract import SimulationContract

_MODEL = """
<mujoco>
  <worldbody>
    <body>
      <joint name="slide" type="slide" axis="1 0 0"/>
      <geom size="0.1" mass="1"/>
    </body>
  </worldbody>
  <actuator><motor joint="slide" ctrlrange="-1 1"/></actuator>
</mujoco>
"""


def arguments(folder: Path) -> dict[str, Any]:
    """Returns the arguments of `make_vec` for carts; the folder gets the model's file."""
    path = folder / "cart.xml"
    path.write_text(_MODEL, "utf-8")
    return {"model": path, "velocity_command": True}


@functools.cache
def commanding(least: float, most: float | None = None) -> SimulationContract:
    """Returns a contract that draws forward velocities from a range; one number: always this one."""
    return SimulationContract(vel_command_x_range=(least, least if most is None else most))


def commands_of(obs: Any) -> NDArray[np.float64]:
    """Returns the forward velocities of observations [..., obs_size]."""
    return np.asarray(obs, np.float64)[..., -3]
