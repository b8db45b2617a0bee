"""Runs whose workers are on another machine: a daemon with TLS, and what Ray would do on the other machine.

That is to start `tandem.telemetry.ray_job node`; tests/ray has it with Ray itself. The daemon's own process for a run,
which would submit the job to Ray, is a program that only waits.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tandem.telemetry import Run, TrainerClient
from tandem.telemetry.tls_files import TLS_VARIABLES
from tandem.testing.certificates import make_certificate
from tandem.testing.daemons import DAEMON, DEADLINE_SECS, Daemon, await_worker, is_forked_worker, run_config, wait_until
from tests.ray.hosts import TwoHosts

_WAITS = "#!/bin/sh\necho $$ >> '{pids}'\nexec sleep 100000\n"
# Before a program that gets a /dev/shm of its own; needs root.
_OWN_MEMORY = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs /dev/shm && exec "$@"', "sh"]


class Remote:
    """A daemon with TLS, and runs on another machine.

    Attributes:
      daemon: The daemon.
      client: A client of the daemon, by its socket.
    """

    def __init__(
        self, folder: Path, hosts: TwoHosts | None = None, *, python: str = "", own_memory: bool = False
    ) -> None:
        """Starts the daemon, on the first host.

        Args:
          folder: The daemon's folder, and that of the other machine's files, are made there.
          hosts: None: both machines are this one.
          python: What the daemon takes for a Python with Ray; empty: the program that waits.
          own_memory: Whether the other machine has a /dev/shm of its own.
        """
        self._folder = folder
        self._prefix = [*(hosts.on(1) if hosts else []), *(_OWN_MEMORY if own_memory else [])]
        address = hosts.addresses[0] if hosts else "127.0.0.1"
        for name in ("server", "client"):
            make_certificate(folder, name, address)
        waits = folder / "waits"
        waits.write_text(_WAITS.format(pids=folder / "waiting"), "utf-8")
        waits.chmod(0o755)
        program = DAEMON
        if hosts:
            program = folder / "daemon"
            program.write_text(f'#!/bin/sh\nexec {" ".join(hosts.on(0))} "{DAEMON}" "$@"\n', "utf-8")
            program.chmod(0o755)
        flags = [f"--listen={address}:0", "--allow_remote", "--tls_cert", str(folder / "server.pem")]
        flags += ["--tls_key", str(folder / "server.key.pem"), "--tls_client_ca", str(folder / "client.pem")]
        self.daemon = Daemon(
            folder / "data", *flags, program=program, environment={"TANDEM_RAY_PYTHON": python or str(waits)}
        )
        self.daemon.flags = (f"--listen={self.daemon.address}", *flags[1:])  # of a restarted one
        self.client = TrainerClient(f"unix:{folder}/data/daemon.sock")
        self._nodes: list[subprocess.Popen[Any]] = []

    def submit(self, *arguments: str, **metadata: Any) -> str:
        """Submits a run of a Python program on Ray, and returns its run_id when the daemon has made its folder."""
        config = run_config(sys.executable, *arguments)
        config["metadata"] = {"tandem": {"ray": {"address": "http://127.0.0.1:1"}, **metadata}}
        run_id = self.client.submit(config).run_id
        plan = self.daemon.data_dir / "runs" / run_id / "launch.json"
        wait_until(plan.exists, "the run's folder")
        return run_id

    def start_node(self, run_id: str) -> "subprocess.Popen[Any]":
        """Starts the job of a run on the other machine."""
        plan = self.daemon.data_dir / "runs" / run_id / "launch.json"
        files = ("server.pem", "client.pem", "client.key.pem")
        variables = {name: str(self._folder / file) for name, file in zip(TLS_VARIABLES, files, strict=True)} | {
            "TANDEM_DAEMON": self.daemon.address,
            "TANDEM_REMOTE_TOKEN": json.loads(plan.read_text("utf-8"))["token"],
            "TANDEM_DAEMON_PROGRAM": str(DAEMON.absolute()),
            "XDG_STATE_HOME": str(self._folder / "state"),
        }
        command = [*self._prefix, sys.executable, "-m", "tandem.telemetry.ray_job", "node", run_id]
        node = subprocess.Popen(command, env={**os.environ, **variables}, start_new_session=True)
        self._nodes.append(node)
        return node

    def folder_of(self, run_id: str) -> Path:
        """Returns the run's folder on the other machine."""
        return self._folder / "state" / "tandem" / "runs" / run_id

    def worker(self, run_id: str) -> int:
        """Waits until the run has a worker, and returns its pid."""
        return await_worker(self.folder_of(run_id))

    def proxies(self, run_id: str) -> list[int]:
        """Returns the pids of the run's proxies on the other machine."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                words = path.read_bytes().split(b"\0")
                is_of_run = b"--remote" in words and f"--run_id={run_id}".encode() in words
                if is_of_run and not is_forked_worker(path.parent):
                    found.append(int(path.parent.name))
        return found

    def await_end(self, run_id: str, secs: float = DEADLINE_SECS) -> Run:
        """Waits until the run has ended."""

        def ended() -> Run | None:
            (run,) = (run for run in self.client.runs() if run.run_id == run_id)
            return run if run.status.final else None

        run: Run = wait_until(ended, f"the end of {run_id}", secs)
        return run

    def close(self) -> None:
        """Ends everything."""
        for node in self._nodes:
            node.terminate()
        for node in self._nodes:
            node.wait(DEADLINE_SECS)
        self.client.close()
        self.daemon.stop()
        waiting = self._folder / "waiting"
        for pid in waiting.read_text("ascii").split() if waiting.exists() else []:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
