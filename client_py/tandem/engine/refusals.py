"""An engine's warnings, and its refusal of an argument in terms of Python's keywords.

An engine that refuses an argument ends with exit code 2, and with exit code 1 after other errors; its last line has a
fixed form (engine_adapter/server_main.h).
"""

import difflib
import re
from collections.abc import Collection, Sequence
from dataclasses import fields

from tandem.engine.options import EngineOptions, FrameOptions, ImageOptions, ProcessOptions, TaskOptions, WorkerOptions
from tandem.errors import InvalidArgument

EXIT_CODE = 2

# Of a group of options: what its flags begin with, the classes, the keyword of `make_vec`.
_GROUPS = (
    ("frame_", (FrameOptions,), "frames"),
    ("image_", (ImageOptions,), "images"),
    ("", (WorkerOptions, EngineOptions), "engine"),
    ("", (TaskOptions,), "options"),
)

# Names of a keyword in other libraries, or in a group of options -> what to write instead.
WRITE_INSTEAD = (
    {
        f"{prefix}{field.name}": f"{keyword}=tandem.{group.__name__}({'size, ' if prefix else ''}{field.name}=...)"
        for prefix, groups, keyword in _GROUPS
        for group in groups
        for field in fields(group)
    }
    | {
        field.name: f"engine=tandem.EngineOptions({field.name}=...), or WorkerOptions for environments in Python"
        for field in fields(ProcessOptions)
    }
    | {
        "env_id": "task",
        "env_kwargs": "the environment's own keywords",
        "id": "task",
        "n_envs": "num_envs",
        "num_threads": "threads",
        "seed": "envs.reset(seed=...)",
        "vector_kwargs": "autoreset_mode=...",
    }
)

# Flags that stand for a field of a group.
_FLAGS = {
    f"{prefix}{field.name}": f"{group.__name__}.{field.name}"
    for prefix, (group, *_), _ in _GROUPS
    if prefix
    for field in fields(group)
}

_ERROR_LINE = re.compile(r"error: (\w+): (.*)")
_WARNING_LINE = re.compile(r"^tandem [0-9:.]+ warning: (.*)", re.MULTILINE)
_QUOTED_OR_FLAG = re.compile(r"'[^']*'|--([a-z_]+)")
_UNKNOWN_FLAG = re.compile(r"expected one of the flags .*, found '--(\w+)=(.*)'; --help explains them")
_UNKNOWN = re.compile(r"unknown (task|option): expected (?:one of (.*?)|none), found '(.*)'")
_NAMED = re.compile(r"([\w.]+): (.*)", re.DOTALL)


def last_error(log_tail: str) -> tuple[str, str] | None:
    """Returns the class name and text of the error in the last line of a log; None if that line is no error."""
    error = _ERROR_LINE.search(log_tail.rsplit("\n", 1)[-1])
    return (error[1], error[2]) if error else None


def warnings_in(log_tail: str) -> list[str]:
    """Returns the texts of an engine's warnings, which LogLine writes as `tandem TIME warning: TEXT`."""
    return _WARNING_LINE.findall(log_tail)


def refused(text: str, keywords: Collection[str]) -> InvalidArgument:
    """Returns the error for an engine's text, with Python's names for flags, and the nearest name of an unknown one.

    `keywords` are the caller's: flags of these names stand for them. Another flag is the user's own.

    >>> str(refused("--frame_hz: expected 0 to 1000, found 2000", ()))
    'FrameOptions.hz: expected 0 to 1000, found 2000'
    >>> str(refused("--task: unknown task: expected one of Ant-v5, Hopper-v5, found 'Ant-v4'", ("task",)))
    "task: unknown task: expected one of Ant-v5, Hopper-v5, found 'Ant-v4'; did you mean 'Ant-v5'?"
    >>> error = refused("--task_options: unknown option: expected one of g, found 'h'", ("task_options",))
    >>> error.argument, error.reason, error.known
    ('h', "unknown option: expected one of g, found 'h'", ('g',))
    >>> str(refused("expected one of the flags --g --name, found '--task=A'; --help explains them", ("task",)))[:71]
    "task: expected none, found 'A': the engine's program has no flag --task"
    """
    flags = _FLAGS | {name: name for name in keywords}
    if (flag := _UNKNOWN_FLAG.fullmatch(text)) is not None:
        return _named(_without_flag(text, flag[1], flag[2], flags))
    text = _QUOTED_OR_FLAG.sub(lambda match: flags.get(match[1], match[0]), text)
    if (unknown := _UNKNOWN.search(text)) is None:
        return _named(text)
    kind, listed, found = unknown.groups()
    names = tuple(listed.split(", ")) if listed else ()
    if kind == "option":
        text = text.replace("task_options", found, 1)
        error = InvalidArgument.of(found, text.removeprefix(f"{found}: ") + nearest(found, names))
        error.known = names
        return error
    return _named(text + nearest(found, names))


def _named(text: str) -> InvalidArgument:
    found = _NAMED.fullmatch(text)
    return InvalidArgument.of(found[1], found[2]) if found else InvalidArgument(text)


def _without_flag(refusal: str, flag: str, value: str, flags: dict[str, str]) -> str:
    """Returns the text for a flag that the engine's program has not: an argument's, or one of the user's own."""
    if flag not in flags:
        return refusal
    option = re.match(r'\{"(\w+)": ([^,]*)[,}]', value) if flag == "task_options" else None
    name, found, own = flags[flag], f"'{value}'", "NAME=VALUE"
    if option is not None:
        name, found = option.groups()
        own = f"{name}={found}"
    return (
        f"{name}: expected none, found {found}: the engine's program has no flag --{flag}; omit it, or pass flags of "
        f"the program by EngineOptions(flags=('--{own}',)); its --help lists them"
    )


def nearest(name: str, known: Sequence[str]) -> str:
    """Returns the end of an error text, with the known name that an unknown one resembles; "": it resembles none."""
    found = difflib.get_close_matches(name, [other for other in known if other != name], n=1)
    return f"; did you mean {found[0]!r}?" if found else ""
