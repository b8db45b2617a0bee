"""`launch_engine`: an engine in a process of its own, which ends with its launcher."""

import contextlib
import os
import subprocess
import sys
import time
import warnings
import weakref
from collections.abc import Mapping, Sequence
from typing import NoReturn

from tandem import errors
from tandem._native import check_region_name, engine_pid, remove_if_dead
from tandem.arguments import integer, path, seconds, shown, text
from tandem.engine import options, program, refusals
from tandem.engine.default_name import default_name
from tandem.engine.task_options import to_json
from tandem.errors import (
    EngineFailed,
    EngineStartFailed,
    ForkedChild,
    InvalidArgument,
    NotReady,
    PeerGone,
    TandemError,
    how_it_ended,
)
from tandem.handles import ClosesOnExit, NotPicklable
from tandem.printable import printable, printable_lines

if sys.platform == "win32":
    from tandem.engine import child_windows as child
else:
    from tandem.engine import child_linux as child

_LOG_TAIL_BYTES = 8192
_LOG_TAIL_LINES = 20
_POLL_SECS = 0.0005
_GRACE_SECS = 5.0


def launch_engine(
    task: str | None = None,
    *,
    num_envs: int = 1,
    threads: int = 0,
    name: str | None = None,
    model: str | os.PathLike[str] | None = None,
    task_options: Mapping[str, object] | None = None,
    max_episode_steps: int | None = None,
    seed: int | None = None,
    frames: options.FrameOptions | options.Size | None = None,
    images: options.ImageOptions | options.Size | None = None,
    grpc: str | None = None,
    timeout: float = 30.0,
    server: str | os.PathLike[str] | None = None,
    flags: Sequence[str] = (),
) -> "EngineProcess":
    """Starts an engine, waits until a client can attach to it, and returns it, a context manager.

    The engine runs in a session of its own: Ctrl-C in the trainer does not reach it. It ends with `close`, at the end
    of a `with` block, with the last reference to the returned object, and with this process, even if that is killed.

    Args:
      task: The task, such as "HalfCheetah-v5".
      num_envs: Number of environments.
      threads: Threads that step them; 0: the engine chooses.
      name: The region's name, in which "{pid}" stands for the engine's process id; None: a new, unique one.
      model: A model file to simulate in place of the task's own.
      task_options: The task's keyword options, named as Gymnasium names them, such as {"reset_noise_scale": 0}. Values
        may be tuples, paths, infinities, NumPy's numbers and arrays.
      max_episode_steps: Steps that truncate an episode; 0: no limit; None: the task's own number.
      seed: Environment i starts from seed + i.
      frames: A size, such as (320, 240), or `FrameOptions`: some environments are drawn side by side while a viewer is
        open; None: never.
      images: A size, such as (64, 64), or `ImageOptions`: each step also draws every environment, into
        `SharedMemoryClient.images`; None: no images.
      grpc: HOST:PORT, such as "127.0.0.1:50051": serves programs for LuckyEngine there (docs/grpc.md); None: nowhere.
      timeout: Seconds that the engine may take to start.
      server: The engine's program, or a Python file that calls `tandem.serve_program(MyEngine)`; None: the environment
        variable TANDEM_ENGINE_SERVER, else the program in the package, else the one that was built beside the package.
      flags: Further flags for the program.

    Raises:
      InvalidArgument: An unknown task or option, or a value that this function or the engine refuses.
      AlreadyAttached: Another engine, or another program, has a region or a file of that name.
      OutOfSharedMemory: The machine has no room for so many environments.
      TandemError: Another error of the table that the engine met, such as AccessDenied.
      EngineStartFailed: The program is missing, ended or took too long; the message has the end of its log.
    """
    num_envs = integer("num_envs", num_envs, 1)  # the engine has upper limits
    threads = integer("threads", threads, 0)
    timeout = seconds("timeout", timeout)
    if max_episode_steps is not None:  # 0: no limit
        max_episode_steps = integer("max_episode_steps", max_episode_steps, 0, 2**32 - 1)
    if seed is not None:
        seed = integer("seed", seed, 0, 2**64 - 1)
    if name is None:
        name = default_name()
    check_region_name(text("name", name).replace("{pid}", "0"))
    if "{pid}" not in name:
        remove_if_dead(name)  # raises AlreadyAttached: a program has the name
    command = [*program.command(server), f"--name={name}", f"--num_envs={num_envs}", f"--threads={threads}"]
    if task is not None:
        command.append(f"--task={text('task', task)}")
    if model is not None:
        path("model", model)
        command.append(f"--model={os.fsdecode(model)}")
    if task_options:
        command.append(f"--task_options={to_json(task_options)}")
    if max_episode_steps is not None:
        command.append(f"--max_episode_steps={max_episode_steps}")
    if seed is not None:
        command.append(f"--seed={seed}")
    if frames is not None:
        command += options.frame_flags(options.group_of("frames", frames, options.FrameOptions), num_envs)
    if images is not None:
        command += options.image_flags(options.group_of("images", images, options.ImageOptions))
    if grpc is not None:
        command.append(f"--grpc={text('grpc', grpc)}")
    command = [_word(word) for word in (*command, *options.words_of("flags", flags))]
    engine = EngineProcess(name, command)
    try:
        engine._wait_until_served(timeout)
        for warning in refusals.warnings_in(engine.log_tail()):
            warnings.warn(warning, stacklevel=2)
    except BaseException:
        engine.close()
        raise
    return engine


_KEYWORDS = ("task", *(launch_engine.__kwdefaults__ or {}))


def _word(word: str) -> str:
    """Returns an argument for the program's command line; a path may have bytes that are no UTF-8."""
    flag, equals, value = word.partition("=")
    flag, value = (flag.lstrip("-"), value) if equals else ("flags", word)
    try:
        size = len(os.fsencode(word))
    except UnicodeEncodeError:
        size = -1
    if size < 0 or "\0" in word:
        raise InvalidArgument(f"{flag}: expected a str without NULs and lone surrogates, found {shown(value)}")
    if size >= child.MOST_WORD_BYTES:
        raise InvalidArgument(
            f"{flag}: expected at most {child.MOST_WORD_BYTES - 1} bytes with the flag's name, the system's limit on "
            f"an argument of a program, found {size}; write it into a JSON file, and pass flags=('--config=FILE',) to "
            "launch_engine or EngineOptions"
        )
    return word


class EngineProcess(ClosesOnExit, NotPicklable):
    """An engine that `launch_engine` started.

    >>> import tandem
    >>> with tandem.launch_engine("HalfCheetah-v5", num_envs=2) as engine:
    ...     engine.poll() is None
    True
    >>> engine.poll()
    0
    """

    _instead = "pass its name to the other process: {self.name!r}"

    def __init__(self, name: str, command: list[str]) -> None:
        """Starts the program that will serve a region; call `launch_engine` instead.

        The launcher's pipe is added to the command. EngineStartFailed: the program cannot be run.
        """
        self._name = name
        self._command = command
        self._launcher_pid = os.getpid()
        try:
            self._log = Log()
            # `_stop` closes it, too, except in a forked child. Finalizers run in reverse order: this after `_stop`.
            close_log = weakref.finalize(self, self._log.close)
            try:
                pipe = child.LauncherPipe()
            except BaseException:
                close_log()
                raise
        except OSError as error:
            raise EngineStartFailed(
                f"expected room for an engine's log and pipe, found none: {error.strerror}; {child.RAISE_LIMITS}"
            ) from error
        try:
            self._process = pipe.start(command, program.variables(), self._log.file)
        except BaseException as error:
            # Also an interrupt: a started engine ends when the pipe closes.
            pipe.close()
            close_log()
            if not isinstance(error, OSError):
                raise
            if (why := child.too_long(error, command)) is not None:
                hint = "long options fit into a JSON file: flags=('--config=FILE',)"
                raise EngineStartFailed(f"{why}; {hint}") from error
            raise EngineStartFailed(
                f"expected an engine's program at {command[0]}, found that it cannot be run: {error.strerror}; "
                + (child.RAISE_LIMITS if child.met_limit(error) else f"build it, or set {program.VARIABLE}")
            ) from error
        self._name = name = name.replace("{pid}", str(self._process.pid))
        # Runs at the latest when the interpreter ends.
        self._stop = weakref.finalize(self, _stop, self._process, name, pipe, self._log, os.getpid())
        log, pid = self._log, self._launcher_pid

        def add_log(error: TandemError) -> None:
            if isinstance(error, PeerGone) and os.getpid() == pid and (words := log.tail()):
                error.args = (f"{error}\nThe end of the engine's log:\n{words}",)

        errors.details[name] = add_log

    @property
    def name(self) -> str:
        """The region's name, for `SharedMemoryClient`."""
        return self._name

    @property
    def pid(self) -> int:
        """The engine's process id."""
        return self._process.pid

    def poll(self) -> int | None:
        """Returns the engine's exit code, negative for a signal's number; None while it runs.

        Raises:
          ForkedChild: The engine belongs to this process's parent, and only the parent learns its end.
        """
        if os.getpid() != self._launcher_pid:
            raise ForkedChild(
                f"region {self._name!r}: this engine belongs to the parent of this process; poll it there"
            )
        return self._process.poll()

    def log_tail(self) -> str:
        """Returns the last lines of the engine's standard output and standard error, also after `close`."""
        return self._log.tail()

    def close(self) -> None:
        """Asks the engine to end, kills it after five seconds, and waits for its end. A second call has no effect.

        Its region is removed. In a forked child this does nothing.
        """
        self._stop()

    def _wait_until_served(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while _engine_pid(self._name) != self.pid:
            if (code := self.poll()) is not None:
                self._raise_start_failed(how_it_ended(code), code)
            if time.monotonic() >= deadline:
                self._raise_start_failed(
                    f"did not serve region {self._name!r} within {timeout:g} s; raise start_timeout of EngineOptions, "
                    "or timeout of launch_engine",
                    None,
                )
            time.sleep(_POLL_SECS)

    def _raise_start_failed(self, what: str, exit_code: int | None) -> NoReturn:
        words = self.log_tail()
        kind, reason = refusals.last_error(words) or ("", "")
        refusal = refusals.refused(reason, _KEYWORDS)
        # With SIGCHLD ignored each exit code is 0. A failure of the engine itself is EngineStartFailed.
        if exit_code in (0, 1, refusals.EXIT_CODE) and kind in errors.__all__ and kind != EngineFailed.__name__:
            raise refusal if kind == InvalidArgument.__name__ else errors.from_native(kind, str(refusal), self._name)
        earlier = words.rpartition("\n")[0] if reason else words
        said = f"The end of its log:\n{earlier}" if earlier else f"Its log has nothing{' else' if reason else ''}."
        if exit_code == -9:  # SIGKILL, which Windows does not have
            said += f"\nNext: {errors.OUT_OF_MEMORY}."
        if reason:
            what = f"{what}: {refusal}"
        error = EngineStartFailed(f"the engine {what}\n{said}\nIts command: {printable(' '.join(self._command))}")
        error.exit_code, error.log_tail = exit_code, words
        raise error

    def __repr__(self) -> str:
        """Names the region, the process and its state."""
        if os.getpid() != self._launcher_pid:
            state = "of a parent process"
        elif (code := self.poll()) is None:
            state = "running"
        else:
            state = f"ended with {code}"
        return f"<tandem.EngineProcess {self._name!r}: pid={self.pid}, {state}>"


class Log:
    """The standard output and standard error of a process, such as an engine.

    A file rather than a pipe, so that the engine needs no reader.
    """

    def __init__(self) -> None:
        """Makes the file; OSError: as LogFile's."""
        self._file: child.LogFile | None = child.LogFile()
        self._last_tail = ""

    @property
    def file(self) -> "child.LogFile":
        """The file; only before `close`."""
        assert self._file is not None
        return self._file

    def fileno(self) -> int:
        """Returns the descriptor, for a child process."""
        return self.file.fileno()

    def tail(self) -> str:
        """Reads the end. After `close`: the end at that time."""
        if self._file is None:
            return self._last_tail
        text, is_cut = self._file.end(_LOG_TAIL_BYTES)
        lines = printable_lines(text).split("\n")
        if not lines[-1]:
            del lines[-1]
        return "\n".join(lines[1 if is_cut and len(lines) > 1 else 0 :][-_LOG_TAIL_LINES:])

    def close(self) -> None:
        """Closes the file and keeps its end. A second call has no effect."""
        file = self._file
        if file is None:
            return
        try:
            self._last_tail = self.tail()
        finally:
            self._file = None
            file.close()


def _stop(process: "subprocess.Popen[bytes]", name: str, pipe: "child.LauncherPipe", log: "Log", owner: int) -> None:
    """Ends an engine; holds no reference to its EngineProcess, so that it can run when that is collected."""
    if os.getpid() != owner:
        return
    errors.details.pop(name, None)
    try:
        if process.poll() is None:
            pipe.ask_to_stop(process)
            process.wait(_GRACE_SECS)
    except subprocess.TimeoutExpired:
        pass
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        pipe.close()
        log.close()
        with contextlib.suppress(TandemError):  # another engine has the name by now
            remove_if_dead(name)  # a killed engine leaves it


def _engine_pid(name: str) -> int | None:
    try:
        return engine_pid(name)
    except NotReady:
        return None
