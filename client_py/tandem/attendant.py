"""`Attendant`: calls an engine's services in addition to its client."""

import os
import sys

from tandem._native import MAX_LABEL_BYTES, NativeAttendant
from tandem.arguments import seconds, text
from tandem.handles import ClosesOnExit, NotPicklable
from tandem.regions import region_to_attach
from tandem.services.of_engine import EngineServices


class Attendant(ClosesOnExit, NotPicklable, EngineServices):
    """Calls the services of an engine in another process, also while the engine's client steps: a GUI, a monitor.

    An engine has up to four attendants in addition to its client. They read, draw, stream, pause, move entities and
    switch services. While there is a client, `agent.set_contract` and `mujoco.send_control` raise `AlreadyAttached`. A
    pause ends when the attendant that made it resumes, closes or dies. During the pause, the client's deadlines do not
    run.

    Any number of threads may call an attendant. It belongs to the process that made it; it cannot be pickled or used in
    a forked child. It does not find an engine that was started again: after `PeerGone`, close it and make another.

    >>> import tandem
    >>> with tandem.launch_engine("HalfCheetah-v5", num_envs=4) as engine:
    ...     with tandem.SharedMemoryClient(engine.name), tandem.Attendant(engine.name, label="panel") as panel:
    ...         panel.scene.pause()
    ...         print(panel.scene.paused(), panel.mujoco.joint_state().positions.shape)
    True (9,)
    """

    _instead = "it has a slot of its engine, in this process; make one where it is used: Attendant({self.name!r})"

    def __init__(
        self,
        name: str | None = None,
        *,
        pid: int | None = None,
        label: str | None = None,
        timeout: float = 10.0,
        attach_timeout: float | None = None,
    ) -> None:
        """Takes a free slot of the engine that serves the region; waits for an engine to appear.

        `label` is text for people, at most 55 bytes of UTF-8: tandem-inspect and errors show it; None: the program's.
        The other arguments, and errors besides these, are those of `SharedMemoryClient`.

        Raises:
          AlreadyAttached: All slots are taken; the text names their attendants.
          Unsupported: The engine has no slots: it serves no RPCs, or is of an older version.
        """
        label = _program() if label is None else text("label", label)
        timeout = seconds("timeout", timeout)
        attach_timeout = timeout if attach_timeout is None else seconds("attach_timeout", attach_timeout)
        self._name = region_to_attach(name, pid, attach_timeout)
        self._native = NativeAttendant(self._name, label, attach_timeout)
        self._native.set_timeout(timeout)
        EngineServices.__init__(self, self._native)

    def close(self) -> None:
        """Leaves the slot: ends this attendant's streams, and a pause that it made. A second call has no effect."""
        self._native.close()

    @property
    def name(self) -> str:
        """The region's name."""
        return self._name

    @property
    def num_envs(self) -> int:
        """Number of environments."""
        return self._native.num_envs

    @property
    def engine_pid(self) -> int:
        """The engine's process id as the engine wrote it: a label, wrong across containers."""
        return self._native.engine_pid

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._native.closed


def _program() -> str:
    name = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] not in ("", "-c", "-m") else "python"
    return name.encode("utf-8", "replace")[:MAX_LABEL_BYTES].decode("utf-8", "ignore")
