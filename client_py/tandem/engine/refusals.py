"""An engine's warnings, and its refusal of an argument in terms of Python's keywords.

An engine that refuses an argument ends with exit code 2, and with exit code 1 after other errors; its last line has a
fixed form (engine_adapter/host/server_main.h).
"""

import difflib
import re
from collections.abc import Sequence
from dataclasses import fields

from tandem.engine.options import EngineOptions, FrameOptions, ImageOptions

EXIT_CODE = 2

# The keywords of `make_vec`. A misspelled one arrives among the task's options, and the engine refuses it there.
KEYWORDS = (
    "task",
    "num_envs",
    "backend",
    "num_workers",
    "restart_workers",
    "batch_size",
    "env_kwargs",
    "threads",
    "autoreset_mode",
    "copy",
    "dtype",
    "max_episode_steps",
    "model",
    "reward",
    "terminated",
    "observation",
    "render_mode",
    "frames",
    "images",
    "grpc",
    "engine",
    "width",
    "height",
)

# Of a group of options: what its flags begin with (EngineOptions has none), the class, the keyword of `make_vec`.
_GROUPS = (("frame_", FrameOptions, "frames"), ("image_", ImageOptions, "images"), ("", EngineOptions, "engine"))

# Flag -> its name in Python. Other flags came with flags=(...).
_FLAGS = {name: name for name in (*KEYWORDS, "name", "seed", "task_options")} | {
    f"{prefix}{field.name}": f"{group.__name__}.{field.name}"
    for prefix, group, _ in _GROUPS
    if prefix
    for field in fields(group)
}

# Names of a keyword in other libraries, or in other parts of this one -> what to write instead.
_WRITE_INSTEAD = {
    f"{prefix}{field.name}": f"{keyword}=tandem.{group.__name__}({'size, ' if prefix else ''}{field.name}=...)"
    for prefix, group, keyword in _GROUPS
    for field in fields(group)
} | {
    "env_id": "task",
    "id": "task",
    "n_envs": "num_envs",
    "num_threads": "threads",
    "num_workers": "threads",
    "seed": "envs.reset(seed=...)",
    "vector_kwargs": "autoreset_mode=...",
}

_ERROR_LINE = re.compile(r"error: (\w+): (.*)")
_WARNING_LINE = re.compile(r"^tandem [0-9:.]+ warning: (.*)", re.MULTILINE)
_QUOTED_OR_FLAG = re.compile(r"'[^']*'|--([a-z_]+)")
_UNKNOWN_FLAG = re.compile(r"expected one of the flags .*, found '--(\w+)=(.*)'; --help explains them")
_UNKNOWN = re.compile(r"unknown (task|option): expected (?:one of (.*?)|none), found '(.*)'")


def last_error(log_tail: str) -> tuple[str, str] | None:
    """Returns the class name and text of the error in the last line of a log; None if that line is no error."""
    error = _ERROR_LINE.search(log_tail.rsplit("\n", 1)[-1])
    return (error[1], error[2]) if error else None


def warnings_in(log_tail: str) -> list[str]:
    """Returns the texts of an engine's warnings, which LogLine writes as `tandem TIME warning: TEXT`."""
    return _WARNING_LINE.findall(log_tail)


def in_keywords(refusal: str) -> str:
    """Replaces flags in an engine's text by keywords, and adds the nearest name where a name is unknown.

    >>> in_keywords("--frame_hz: expected 0 to 1000, found 2000")
    'FrameOptions.hz: expected 0 to 1000, found 2000'
    >>> in_keywords("--task: unknown task: expected one of Ant-v5, Hopper-v5, found 'Ant-v4'")
    "task: unknown task: expected one of Ant-v5, Hopper-v5, found 'Ant-v4'; did you mean 'Ant-v5'?"
    >>> in_keywords("--task_options: unknown option: expected one of g, found 'num_threads'")
    "num_threads: unknown option: expected one of g, found 'num_threads'; use threads"
    >>> in_keywords("expected one of the flags --gravity --name, found '--task=Ant-v5'; --help explains them")[:76]
    "task: expected none, found 'Ant-v5': the engine's program has no flag --task"
    """
    if (flag := _UNKNOWN_FLAG.fullmatch(refusal)) is not None:
        return _without_flag(refusal, *flag.groups())
    text = _QUOTED_OR_FLAG.sub(lambda match: _FLAGS.get(match[1], match[0]), refusal)
    unknown = _UNKNOWN.search(text)
    if unknown is None:
        return text
    kind, names, found = unknown.groups()
    if kind == "option":
        text = text.replace("task_options", found, 1)
        return text + advice(found, names.split(", ") if names else [])
    return text + nearest(found, names.split(", "))


def _without_flag(refusal: str, flag: str, value: str) -> str:
    """Returns the text for a flag that the engine's program has not: an argument's, or one of the user's own."""
    if flag not in _FLAGS:
        return refusal
    option = re.match(r'\{"(\w+)": ([^,]*)[,}]', value) if flag == "task_options" else None
    name, found, own = _FLAGS[flag], f"'{value}'", "NAME=VALUE"
    if option is not None:
        name, found = option.groups()
        own = f"{name}={found}"
    return (
        f"{name}: expected none, found {found}: the engine's program has no flag --{flag}; omit it, or pass flags of "
        f"the program by EngineOptions(flags=('--{own}',)); its --help lists them"
    )


def advice(option: str, known: Sequence[str] = ()) -> str:
    """Returns what to write instead of an unknown option; "": it resembles no keyword, and none of the known ones."""
    if option in _WRITE_INSTEAD:
        return f"; use {_WRITE_INSTEAD[option]}"
    return nearest(option, [*known, *KEYWORDS])


def nearest(name: str, known: Sequence[str]) -> str:
    """Returns the end of an error text, with the known name that an unknown one resembles; "": it resembles none."""
    found = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {found[0]!r}?" if found else ""
