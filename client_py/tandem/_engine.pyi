from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

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
    frames: tuple[int, int, float, bool, list[int]] | None,
    stopping: Callable[[], bool],
) -> None: ...
def serve_by_command_line(
    arguments: Sequence[str],
    usage: str,
    flags: Sequence[tuple[str, float]],
    make: Callable[[int, list[float]], Adaptor],
) -> int: ...

# engine_bindings/native_supervisor.h documents it.
class NativeSupervisor:
    def __init__(
        self,
        name: str,
        num_envs: int,
        num_workers: int,
        obs_size: int,
        act_size: int,
        task: str,
        # role, type, shape, path
        fields: Sequence[tuple[str, str, Sequence[int], str]],
        *,
        frame_width: int = 0,
        frame_height: int = 0,
        # 0: no frames
        frame_slots: int = 0,
        metadata_bytes: int = 0,
        # memory, nodes, model_file, program
        scene: tuple[NDArray[np.uint8], int, str, str] | None = None,
    ) -> None: ...
    def open(self) -> None: ...
    def next(self, timeout: float, input: int) -> str: ...
    def reset_workers(self) -> None: ...
    def message_workers(self) -> None: ...
    def stop_workers(self) -> None: ...
    def replace_worker(self, worker: int) -> bool: ...
    def worker_text(self, worker: int) -> str: ...
    def end(self, text: str) -> None: ...
    def close(self) -> None: ...
    def frames_watched(self) -> bool: ...
    def publish_frame(
        self,
        frame: NDArray[np.uint8],
        last_reward: float,
        rolling_return: float,
        step_rate_hz: float,
        metadata: str,
    ) -> None: ...
    def answer_frame(self) -> None: ...
    dead_worker: Final[int]
    fd: Final[int]
    answered_at: Final[int]
    steps: Final[int]
