"""What the benchmark measures: sizes, rows, and one group of exchanges of one row."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.benchmark.json_program import answer_of, timeout_of

ROUND_TRIP = Path(__file__).with_name("round_trip")
BASELINE = "spin"
UNAVAILABLE = 69  # row.h: kUnavailable


class RowUnavailable(subprocess.SubprocessError):
    """A row cannot be measured here; the text says what is missing, and what to do next."""


@dataclass(frozen=True)
class Size:
    """Sizes of a payload.

    Attributes:
      envs: Environments.
      obs: float32 values of an observation.
      act: float32 values of an action.
      exchanges: How many make a group.
    """

    envs: int
    obs: int
    act: int
    exchanges: int

    def __str__(self) -> str:
        """Says it as the tables do."""
        return f"{self.envs} × {self.obs} × {self.act}"

    def flags(self) -> list[str]:
        """Says it as round_trip's command line."""
        return [f"--envs={self.envs}", f"--obs={self.obs}", f"--act={self.act}"]


SIZES = (Size(1, 4, 1, 20000), Size(64, 32, 8, 10000), Size(4096, 100, 12, 400))


@dataclass(frozen=True)
class Row:
    """One way of stepping an engine.

    Attributes:
      key: Its name in the JSON; for rows in C++ also round_trip's --row, and for peers in Python peer_client's.
      label: Its name in tables and pictures.
      tandem: Whether it is Tandem; else it is what Tandem is compared with.
      python: Whether the client is a Python program.
      interpreter: Which of tools/extra_env's Pythons its client runs in; None: that of this process.
      most_envs: It does not exist at sizes of more environments; None: it exists at all.
    """

    key: str
    label: str
    tandem: bool = False
    python: bool = False
    interpreter: str | None = None
    most_envs: int | None = None

    def exists_at(self, size: Size) -> bool:
        """Whether it can be measured at a size."""
        return self.most_envs is None or size.envs <= self.most_envs


# Names of wait strategies, as Tandem's API takes them.
WAITS = ("spin", "adaptive", "block")

ROWS = (
    Row("alone", "no second process, C++"),
    Row(BASELINE, "bare spin, in place, C++"),
    Row("spin_copied", "bare spin, copied both ways, C++"),
    Row("futex", "futex, in place, C++"),
    Row("socket", "Unix socket, C++"),
    Row("grpc", "gRPC, C++"),
    Row("iceoryx_spin", "iceoryx, C++, polling"),
    Row("iceoryx_block", "iceoryx, C++, WaitSet"),
    Row("sides_spin", "Tandem, C++, spin", tandem=True),
    Row("sides_adaptive", "Tandem, C++, adaptive", tandem=True),
    Row("sides_block", "Tandem, C++, block", tandem=True),
    Row("host_spin", "Tandem, C++ EngineHost, spin", tandem=True),
    Row("host_adaptive", "Tandem, C++ EngineHost, adaptive", tandem=True),
    Row("host_block", "Tandem, C++ EngineHost, block", tandem=True),
    Row("python_bare_spin", "bare spin, in place, Python to C++", python=True),
    Row("python_spin", "Tandem, Python, spin", tandem=True, python=True),
    Row("python_adaptive", "Tandem, Python, adaptive", tandem=True, python=True),
    Row("python_block", "Tandem, Python, block", tandem=True, python=True),
    Row("python_make_vec", "Tandem, Python, make_vec", tandem=True, python=True),
    Row("python_socket", "Unix socket, Python to C++", python=True),
    Row("python_pipe", "multiprocessing.Pipe, Python to Python", python=True),
    Row("python_grpc", "gRPC, Python to C++", python=True, interpreter="peers"),
    Row("python_iceoryx2", "iceoryx2, Python to Python, polling", python=True, interpreter="peers"),
    Row("python_zeromq", "ZeroMQ ipc, Python to Python", python=True, interpreter="peers"),
    # A process for each environment is not measured with thousands: what it would show is the scheduler.
    Row(
        "python_async_vector_env",
        "Gymnasium AsyncVectorEnv, Python to Python",
        python=True,
        interpreter="peers",
        most_envs=64,
    ),
    Row(
        "python_subproc_vec_env",
        "SB3 SubprocVecEnv, Python to Python",
        python=True,
        interpreter="torch",
        most_envs=64,
    ),
)

LADDER = (
    Row("spin", "bare spin"),
    Row("ladder_0", "the same on the words of the LRBC header"),
    Row("ladder_1", "+ doorbells: fence, look for sleepers"),
    Row("ladder_2", "+ the clock, read while waiting and after each store"),
    Row("ladder_3", "+ phases, stored twice by each side"),
    Row("ladder_4", "+ step times, recorded by each side"),
    Row("ladder_5", "+ guard against a second thread"),
    Row("ladder_6", "+ finite actions checked, resets cleared"),
    Row("sides_spin", "Tandem, C++, spin", tandem=True),
    Row("host_spin", "Tandem, C++ EngineHost, spin", tandem=True),
)


@dataclass(frozen=True)
class Group:
    """What one group of exchanges took. Nanoseconds; CPU time is that of one exchange, on average.

    Attributes:
      exchanges: How many were measured.
      step_mean: From handing over the actions to having the results.
      step_p50: The same.
      step_p99: The same.
      cycle_p50: Until the client has read every value of the results as well.
      client_cpu: CPU time of the client, its reading included.
      engine_cpu: CPU time of the engine's process.
    """

    exchanges: int
    step_mean: float
    step_p50: float
    step_p99: float
    cycle_p50: float
    client_cpu: float
    engine_cpu: float

    @staticmethod
    def of(found: Mapping[str, Any]) -> "Group":
        """Takes it from what round_trip printed."""
        return Group(
            exchanges=found["exchanges"],
            step_mean=found["step"]["mean"],
            step_p50=found["step"]["p50"],
            step_p99=found["step"]["p99"],
            cycle_p50=found["cycle"]["p50"],
            client_cpu=found["client_cpu"],
            engine_cpu=found["engine_cpu"],
        )


def measure_cpp(row: Row, size: Size, seconds: float, region: str) -> Group:
    """Measures a row whose two sides are C++ programs.

    Args:
      row: The row.
      size: The payload.
      seconds: End the group after that long.
      region: A name for the region, for Tandem's rows.

    Returns:
      What one group took.

    Raises:
      RowUnavailable: The machine forbids what it needs.
      subprocess.SubprocessError: It failed; its own message is on stderr.
    """
    command = [str(ROUND_TRIP), *options_of(row, size, seconds, region), f"--warmup={warmup_of(size)}"]
    return run_client(row, command, seconds)


def options_of(row: Row, size: Size, seconds: float, region: str) -> list[str]:
    """Says what round_trip and peer_client need for a group, as their command line."""
    return [
        f"--row={row.key}",
        *size.flags(),
        f"--exchanges={size.exchanges}",
        f"--seconds={seconds}",
        f"--region={region}",
    ]


def run_client(row: Row, command: list[str], seconds: float, variables: dict[str, str] | None = None) -> Group:
    """Runs a program that measures one group of a row and prints what it found.

    Args:
      row: The row.
      command: The program and its arguments.
      seconds: How long the group may take.
      variables: The program's environment variables; None: those of this process.

    Returns:
      What the group took.

    Raises:
      RowUnavailable: The machine forbids what the row needs.
      subprocess.SubprocessError: It failed; its own message is on stderr.
    """
    try:
        return Group.of(answer_of(command, timeout_secs=timeout_of(seconds), variables=variables))
    except subprocess.CalledProcessError as error:
        if error.returncode != UNAVAILABLE:
            raise
        raise RowUnavailable(f"{row.label}: not measured here; the line above says why.") from error


def warmup_of(size: Size) -> int:
    """How many exchanges come before those that are measured."""
    return max(10, size.exchanges // 10)
