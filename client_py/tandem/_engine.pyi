from collections.abc import Callable, Sequence

from tandem.serving.adaptor import Adaptor

# engine_bindings/serving.h documents both.
def serve(
    adaptor: Adaptor,
    *,
    name: str,
    seed: int | None,
    wait: str,
    services: str,
    group_access: bool,
    stopping: Callable[[], bool],
) -> None: ...
def serve_by_command_line(
    arguments: Sequence[str],
    usage: str,
    flags: Sequence[tuple[str, float]],
    make: Callable[[int, list[float]], Adaptor],
) -> int: ...
