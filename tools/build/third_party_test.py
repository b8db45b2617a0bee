"""Imports every Python package, and checks that the locked interpreter runs."""

import sys
from pathlib import Path

import flatbuffers
import gymnasium
import matplotlib
import mujoco
import numpy as np


def test_interpreter_is_the_one_named_in_the_workspace() -> None:
    """The base interpreter of the virtual environment is that of tools/build/python_interpreter."""
    named = Path("tools/build/python_interpreter").read_text(encoding="utf-8").strip()
    assert Path(sys.executable).resolve() == Path(named).resolve()


def test_packages_can_be_imported() -> None:
    """A small model is compiled by MuJoCo."""
    model = mujoco.MjModel.from_xml_string("<mujoco><worldbody/></mujoco>")
    assert np.isfinite(model.opt.timestep)
    assert gymnasium.__version__ == "1.4.0"
    assert flatbuffers.Builder(0) is not None
    assert matplotlib.__version__
