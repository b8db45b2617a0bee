"""The gateway for programs on other machines: TLS, and the certificates of its clients."""

import os
import re
import signal
import socket
import subprocess
from pathlib import Path

import grpc
import pytest

from tandem.testing.certificates import make_certificate
from tandem.testing.engines import nothing_left_behind, unique_name, watchdog  # noqa: F401, the fixtures
from tandem.testing.gateways import GATEWAY, Gateway
from tests.gateway.stubs import SECS, ZEROS, Stubs, attach_when_free, connected, engine, refused


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the certificates `server`, `client` and `stranger`."""
    made = tmp_path_factory.mktemp("certificates")
    for name in ("server", "client", "stranger"):
        make_certificate(made, name)
    return made


def server_flags(folder: Path) -> list[str]:
    """Of a gateway that knows `client`."""
    return [
        f"--tls_cert={folder / 'server.pem'}",
        f"--tls_key={folder / 'server.key.pem'}",
        f"--tls_client_ca={folder / 'client.pem'}",
    ]


def credentials(folder: Path, name: str = "") -> grpc.ChannelCredentials:
    """Of a program that trusts `server`, with a certificate of its own or without."""
    server = (folder / "server.pem").read_bytes()
    if not name:
        return grpc.ssl_channel_credentials(server)
    return grpc.ssl_channel_credentials(
        server, (folder / f"{name}.key.pem").read_bytes(), (folder / f"{name}.pem").read_bytes()
    )


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "0.0.0.0:0"])
def test_a_program_with_a_certificate_steps(folder: Path, listen: str) -> None:
    """And the client slot is free when it ends."""
    name = unique_name()
    flags = [f"--listen={listen}", "--release_after=1h", *server_flags(folder)]
    if listen.startswith("0"):
        flags.append("--allow_remote")
    with engine(name), Gateway(name, *flags) as gateway:
        gateway.address = f"127.0.0.1:{gateway.port}"
        with connected(gateway, credentials(folder, "client")) as stubs:
            assert stubs.reset().success
            assert stubs.step(ZEROS).success
        attach_when_free(name).close()


def test_no_thread_takes_a_stop_signal_from_the_one_that_waits(folder: Path) -> None:
    """Also none that gRPC makes with the credentials: SIGTERM would end the process there."""
    with Gateway(unique_name(), *server_flags(folder)) as gateway:
        for thread in Path(f"/proc/{gateway.pid}/task").iterdir():
            blocked = re.search(r"SigBlk:\s*(\w+)", (thread / "status").read_text("ascii"))
            waits = int(thread.name) == gateway.pid  # the mask of a wait is open
            assert waits or (blocked is not None and int(blocked[1], 16) & 1 << (signal.SIGTERM - 1)), thread


def test_other_programs_are_refused(folder: Path) -> None:
    """Without a certificate, with one of another authority, and without TLS; the next one is served."""
    name = unique_name()
    with engine(name), Gateway(name, *server_flags(folder)) as gateway:
        for tls in (credentials(folder), credentials(folder, "stranger"), None):
            with connected(gateway, tls) as stubs, refused(grpc.StatusCode.UNAVAILABLE):
                stubs.mujoco_info()
        with connected(gateway, credentials(folder, "client")) as stubs:
            assert stubs.mujoco_info().success


def test_silent_connections_have_a_limit(folder: Path) -> None:
    """One more than 64 connections is refused; the gateway ends them after seconds, and serves the next."""
    name = unique_name()
    with engine(name), Gateway(name, *server_flags(folder)) as gateway:
        silent = [socket.create_connection((gateway.host, gateway.port)) for _ in range(64)]
        with connected(gateway, credentials(folder, "client")) as stubs, refused(grpc.StatusCode.UNAVAILABLE):
            stubs.mujoco_info()
        for each in silent:
            each.settimeout(SECS)
            assert each.recv(1) == b""
            each.close()
        with connected(gateway, credentials(folder, "client")) as stubs:
            grpc.channel_ready_future(stubs.channel).result(SECS)
            assert stubs.mujoco_info().success


def exit_of(*flags: str) -> tuple[int, str]:
    """Returns the exit code and the error text of a gateway that does not start."""
    done = subprocess.run([GATEWAY, "--name=x", *flags], capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr


def test_wrong_flags_and_files_are_named(folder: Path) -> None:
    """Each with the file that is wrong, or the flags that are missing."""
    cert, key, authority = server_flags(folder)
    cases = [
        (["--allow_remote", "--listen=0.0.0.0:0"], "--tls_client_ca"),
        ([cert, key], "found 2"),
        ([cert, key, authority, "--listen=none", f"--socket={folder / 'socket'}"], "--listen: expected HOST:PORT"),
        ([cert, f"--tls_key={folder / 'client.key.pem'}", authority], "client.key.pem"),
        ([cert, key, "--tls_client_ca=/dev/null"], "/dev/null"),
        ([cert, key, authority, "--listen=0.0.0.0:0"], "this machine alone"),
    ]
    for flags, text in cases:
        code, error = exit_of(*flags)
        assert (code, bool(re.search(text, error))) == (2, True), (flags, error)
    code, error = exit_of(cert, key, f"--tls_client_ca={folder / 'none.pem'}")
    assert code == 1 and "none.pem" in error


def test_a_pipe_may_hold_the_key(folder: Path) -> None:
    """A shell's <(...), whose bytes can be read once only: the gateway reads each file once."""
    cert, _, authority = server_flags(folder)
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb") as pipe:
        pipe.write((folder / "server.key.pem").read_bytes())
    name = unique_name()
    with engine(name), Gateway(name, cert, f"--tls_key=/dev/fd/{reader}", authority, pass_fds=[reader]) as gateway:
        os.close(reader)
        with connected(gateway, credentials(folder, "client")) as stubs:
            assert stubs.mujoco_info().success


def test_programs_by_a_link_local_address_free_the_engine(folder: Path) -> None:
    """Its name for gRPC has the number of the interface."""
    interfaces = Path("/proc/net/if_inet6").read_text().split("\n")
    found = next((line.split() for line in interfaces if line.startswith("fe80")), None)
    if found is None:
        pytest.skip("no interface has a link-local address")
    address = ":".join(found[0][at : at + 4] for at in range(0, 32, 4))
    name = unique_name()
    flags = [f"--listen=[{address}%{found[-1]}]:0", "--allow_remote", "--release_after=1h", *server_flags(folder)]
    with engine(name), Gateway(name, *flags) as gateway:
        options = [("grpc.ssl_target_name_override", "localhost")]
        with grpc.secure_channel(gateway.address, credentials(folder, "client"), options) as channel:
            assert Stubs(channel).reset().success
        attach_when_free(name).close()
