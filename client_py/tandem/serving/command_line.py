"""`serve_program`: an engine in Python as a program."""

import inspect
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from tandem.arguments import shown
from tandem.errors import InvalidArgument
from tandem.serving.adaptor import Adaptor
from tandem.serving.engine import Engine

Number = bool | int | float


def serve_program(engine_class: type[Engine], arguments: Sequence[str] | None = None) -> NoReturn:
    """Serves an engine by a command line, and ends the program; `launch_engine(server="engine.py")` starts it.

    The flags are those of every engine's program, such as --name, --num_envs and --seed, and one for each argument of
    the class that has a number as default. The class is called with num_envs and these numbers.

    Args:
      engine_class: The class, such as `MyEngine`.
      arguments: The words of the command line; None: those of the program.

    Raises:
      SystemExit: At the end: 0 stopped, 1 failed, 2 a wrong flag, or InvalidArgument from the class.
      InvalidArgument: The class has an argument without a default, or one with the name of a standard flag.
    """
    from tandem._engine import serve_by_command_line

    defaults = flags_of(engine_class)
    program = os.path.basename(sys.argv[0]) or engine_class.__name__

    def make(num_envs: int, values: list[float]) -> Adaptor:
        given = {
            name: _as_type_of(name, default, value)
            for (name, default), value in zip(defaults.items(), values, strict=True)
        }
        return Adaptor(engine_class(num_envs, **given))  # type: ignore[call-arg]  # of the subclass

    # Python has None for a closed stream, and libraries write to it: Warp's log does.
    sys.stdout, sys.stderr = (stream or open(os.devnull, "w", encoding="utf-8") for stream in (sys.stdout, sys.stderr))
    # A signal ends the program at once until the server has handlers of its own.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    words = [program, *(sys.argv[1:] if arguments is None else arguments)]
    flags = [(name, float(default)) for name, default in defaults.items()]
    sys.exit(serve_by_command_line(words, _usage(engine_class, program, defaults), flags, make))


def flags_of(engine_class: type[Engine]) -> dict[str, Number]:
    """Returns the arguments of a class, after num_envs, that have a number as default.

    InvalidArgument: The class does not begin with num_envs, or another argument has no default.
    """
    parameters = list(inspect.signature(engine_class).parameters.values())
    if not parameters or parameters[0].name != "num_envs":
        raise InvalidArgument(
            f"{engine_class.__name__}: expected num_envs as first argument, found {shown(parameters[:1])}; "
            "def __init__(self, num_envs)"
        )
    flags: dict[str, Number] = {}
    for parameter in parameters[1:]:
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        if parameter.default is parameter.empty:
            raise InvalidArgument(
                f"{engine_class.__name__}: expected a default of argument {parameter.name!r}, found none; an "
                "argument whose default is a number becomes a flag"
            )
        if isinstance(parameter.default, bool | int | float):
            flags[parameter.name] = parameter.default
    return flags


def _as_type_of(name: str, default: Number, value: float) -> Number:
    kind = type(default)
    number = kind(value)
    if number != value and value == value:  # not NaN
        expected = "0 or 1" if kind is bool else "an integer"
        raise InvalidArgument(f"--{name}: expected {expected}, found {value:g}")
    return number


def _usage(engine_class: type[Engine], program: str, defaults: dict[str, Number]) -> str:
    about = inspect.getdoc(engine_class) if engine_class.__doc__ else f"Serves {engine_class.__name__}."
    lines = [(about or "").partition("\n\n")[0], "", f"  {program} --num_envs 64 --name demo"]
    if defaults:
        lines += ["", "Flags of this engine:"]
        lines += [f"  --{name} (a number); default: {float(default):g}" for name, default in defaults.items()]
    return "\n".join(lines)
