"""Prints the services' methods as the table of docs/methods.md: `python -m tandem.services`."""

import inspect
from collections.abc import Callable
from typing import Any

from tandem.services.agent import Agent
from tandem.services.camera import Camera
from tandem.services.debug import Debug
from tandem.services.mujoco import Mujoco
from tandem.services.own import Own
from tandem.services.scene import Scene
from tandem.services.states import States
from tandem.services.telemetry import Telemetry
from tandem.services.viewport import Viewport


def table() -> str:
    """Returns a row for each method: how it is called, without `timeout`, and its docstring's first line."""
    rows = ["| method | effect |", "|---|---|"]
    for service in (Agent, States, Mujoco, Telemetry, Scene, Camera, Viewport, Debug, Own):
        for name, method in _methods(service).items():
            arguments = [
                f"{each.name}=" if each.kind is each.KEYWORD_ONLY else each.name
                for each in inspect.signature(method).parameters.values()
                if each.name not in ("self", "timeout")
            ]
            effect = (method.__doc__ or "").partition("\n")[0]
            rows.append(f"| `{service.__name__.lower()}.{name}({', '.join(arguments)})` | {effect} |")
    return "\n".join(rows) + "\n"


def _methods(service: type) -> dict[str, Callable[..., Any]]:
    """Returns the public methods, in the order of their definitions; a base class's last."""
    found = {
        name: member
        for owner in service.__mro__
        for name, member in vars(owner).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }
    return {name: getattr(service, name) for name in found}


if __name__ == "__main__":
    print(table(), end="")
