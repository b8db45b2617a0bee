"""`serve`: serves an engine in Python from the caller's thread."""

import atexit
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, Literal

from tandem._native import check_region_name
from tandem.arguments import flag, integer, one_of, shown, text
from tandem.engine.options import FrameOptions, Size, group_of, shown_envs, size_of
from tandem.errors import InvalidArgument
from tandem.serving.adaptor import Adaptor
from tandem.serving.engine import Engine

_LAST_SEED = 2**64 - 1
# timeout(1), or a terminal and a wrapper program, may send two signals at the same time.
_IMPATIENT_SECS = 1.0
_AT_EXIT_SECS = 5.0


def serve(
    engine: Engine,
    *,
    name: str | None = None,
    seed: int | None = None,
    services: Sequence[str] | Literal["all"] = "all",
    wait: Literal["adaptive", "spin", "block"] = "adaptive",
    group_access: bool = False,
    frames: FrameOptions | Size | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Serves an engine to one client after another, until Ctrl-C, SIGTERM or `stop`. Then removes its region.

    A signal ends it after the current step; the same signal a second later ends a step that hangs. A program's own
    handlers of these signals stay in place: what they raise ends the call. In another thread than the main one only
    `stop` ends it. One line for each event, such as a client that attaches, goes to standard error.

    Args:
      engine: The engine, such as `MyEngine(num_envs=64)`.
      name: The region's name, by which clients find it; "{pid}" in it is this process's id. None: the environment
        variable LUCKY_SHM_NAME, else "tandem", or "tandem-2" and so on if a live engine has that name.
      seed: Environment i starts from seed + i; None: the engine chooses.
      services: Names of the services that the engine answers, such as ["scene", "camera"]; "all"; [] for none.
      wait: How to wait for actions: "spin" (lowest latency, needs a core of its own), "adaptive" or "block".
      group_access: Whether users of the same group may attach, too.
      frames: A size, or `FrameOptions`: viewers, and `render` of clients, show the environments by the engine's
        `render`. Its effects and its camera have no effect.
      stop: The call ends within a tenth of a second after this event is set.

    Raises:
      InvalidArgument: An invalid engine or option; the message names the attribute, method or argument.
      Unsupported: A space whose values have no fields.
      AlreadyAttached: Another engine serves the name.
      OutOfSharedMemory: The region has no room.
      Exception: What the engine's first `reset` raised.

    >>> import threading
    >>> import numpy as np
    >>> import tandem
    >>> from gymnasium import spaces
    >>> class Doubler(tandem.Engine):
    ...     num_envs, observation_space, action_space = 2, spaces.Box(-2, 2, (1,)), spaces.Box(-1, 1, (1,))
    ...     def reset(self, envs, seeds, arrays):
    ...         arrays.obs[envs] = 0
    ...     def step(self, envs, arrays):
    ...         arrays.obs[envs] = 2 * arrays.actions[envs]
    >>> stop = threading.Event()
    >>> thread = threading.Thread(target=tandem.serve, args=[Doubler()], kwargs={"name": "doubler", "stop": stop})
    >>> thread.start()
    >>> with tandem.SharedMemoryClient("doubler") as client:
    ...     obs, rewards, dones = client.step(np.float32([[0.5], [1]]))
    ...     obs.ravel().tolist()
    [1.0, 2.0]
    >>> stop.set()
    >>> thread.join()
    """
    from tandem import _engine

    if name is not None:
        check_region_name(text("name", name).replace("{pid}", str(os.getpid())))
    if seed is not None:
        seed = integer("seed", seed, 0, _LAST_SEED)
    one_of("wait", wait, ("adaptive", "spin", "block"))
    if stop is not None and not hasattr(stop, "is_set"):
        raise InvalidArgument(f"stop: expected a threading.Event, found {shown(stop)}")
    adaptor = Adaptor(engine)
    with _stop_requests() as requests:
        _engine.serve(
            adaptor,
            name=name or "",
            seed=seed,
            wait=wait,
            services=_services(services),
            group_access=flag("group_access", group_access, after=""),
            frames=_frames(frames, adaptor.schema.num_envs),
            stopping=lambda: requests.is_set() or (stop is not None and stop.is_set()),
        )


def _frames(given: FrameOptions | Size | None, num_envs: int) -> tuple[int, int, float, bool, list[int]] | None:
    """Returns width, height, rate, whether it is kept, and environments; None: there are no frames."""
    if given is None:
        return None
    options = group_of("frames", given, FrameOptions)
    envs = shown_envs(options, num_envs)
    width, height = size_of("frames", options.size)
    if envs is None:
        return None
    shown = list(range(num_envs) if envs == "all" else envs)
    return width, height, options.hz, options.priority == "complete", shown


def _services(services: object) -> str:
    if services == "all":
        return "all"
    if isinstance(services, str) or not isinstance(services, Sequence):
        raise InvalidArgument(f"services: expected a list of names, or 'all', found {shown(services)}")
    return ",".join(text("services", each) for each in services) or "none"


@contextlib.contextmanager
def _stop_requests() -> Iterator[threading.Event]:
    """Yields an event that the first signal sets, and the interpreter's exit."""
    requested, ended = threading.Event(), threading.Event()
    first: list[float] = []

    def on_signal(number: int, frame: FrameType | None) -> None:
        if not first:
            first.append(time.monotonic())
            requested.set()
        elif time.monotonic() - first[0] > _IMPATIENT_SECS:
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            raise SystemExit(128 + number)

    def at_exit() -> None:  # of a daemon thread: Python would end it in the middle of a call
        requested.set()
        ended.wait(_AT_EXIT_SECS)

    earlier: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        defaults: dict[int, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
        if sys.platform == "win32":
            defaults[signal.SIGBREAK] = signal.SIG_DFL
        else:
            defaults[signal.SIGHUP] = signal.SIG_DFL
        for signal_number, default in defaults.items():
            if signal.getsignal(signal_number) is default:
                earlier[signal_number] = signal.signal(signal_number, on_signal)
    else:
        atexit.register(at_exit)
    try:
        yield requested
    finally:
        ended.set()
        for number, handler in earlier.items():
            signal.signal(number, handler)
        atexit.unregister(at_exit)
