"""Two hosts on this machine: network namespaces with a cable between them. Needs root and iproute2."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_ADDRESSES = ("10.213.77.1", "10.213.77.2")


class TwoHosts:
    """Processes in the namespaces share files, /dev/shm and process ids; not addresses.

    Attributes:
      addresses: Of the two hosts.
    """

    addresses = _ADDRESSES

    def __init__(self) -> None:
        """Names the namespaces after this process."""
        self._names = [f"tandem-{os.getpid()}-{index}" for index in range(2)]
        self._cables = [f"tnd{os.getpid() % 10**6}-{index}" for index in range(2)]

    def start(self, host: int, command: list[str], **options: Any) -> "subprocess.Popen[str]":
        """Starts a program on a host, in a process group of its own."""
        return subprocess.Popen([*self.on(host), *command], text=True, start_new_session=True, **options)

    def on(self, host: int) -> list[str]:
        """Returns the words before a program that runs it on a host."""
        return ["ip", "netns", "exec", self._names[host]]

    def set_cable(self, plugged: bool) -> None:
        """Cuts the connection, so that packets disappear without an error, or restores it."""
        _ip("-n", self._names[1], "link", "set", self._cables[1], "up" if plugged else "down")

    def limit(self, host: int, line: str) -> None:
        """Limits what a host sends, by the kernel's tbf, such as "rate 1mbit burst 5kb latency 300ms"."""
        command = [
            "tc",
            "-n",
            self._names[host],
            "qdisc",
            "add",
            "dev",
            self._cables[host],
            "root",
            "tbf",
            *line.split(),
        ]
        # Debian has tc where the PATH of tests does not look.
        subprocess.run(command, check=True, env={**os.environ, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})

    def sent_bytes(self, host: int) -> int:
        """Returns the bytes that a host has sent over the cable."""
        path = f"/sys/class/net/{self._cables[host]}/statistics/tx_bytes"
        command = [*self.on(host), "cat", path]
        return int(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)

    @contextlib.contextmanager
    def up(self) -> Iterator[None]:
        """Makes the hosts, and removes them."""
        with contextlib.ExitStack() as made:
            for name in self._names:
                _ip("netns", "add", name)
                made.callback(_ip, "netns", "del", name)
            ends = zip(self._names, self._cables, strict=True)
            (one, cable), (other, its_cable) = ends
            _ip("link", "add", cable, "netns", one, "type", "veth", "peer", "name", its_cable, "netns", other)
            for name, end, address in zip(self._names, self._cables, _ADDRESSES, strict=True):
                _ip("-n", name, "address", "add", f"{address}/24", "dev", end)
                _ip("-n", name, "link", "set", "lo", "up")
                _ip("-n", name, "link", "set", end, "up")
            yield


def can_make_hosts() -> bool:
    """Returns whether this process may make network namespaces."""
    return os.geteuid() == 0 and any(Path(folder, "ip").exists() for folder in os.get_exec_path())


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)
