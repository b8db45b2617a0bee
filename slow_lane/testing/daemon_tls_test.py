"""The daemon for clients on other machines: TLS, and the certificates of its clients."""

import contextlib
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

import tandem
from schema.protos import trainer_pb2 as trainer
from schema.protos import trainer_pb2_grpc as trainer_grpc
from tandem.telemetry import DaemonUnreachable, TlsFiles, TrainerClient
from tandem.telemetry.tls_files import TLS_VARIABLES
from tandem.testing.certificates import expire, make_certificate, postpone
from tandem.testing.daemons import DAEMON, DEADLINE_SECS, Daemon, run_config, running_daemon
from tandem.testing.engines import watchdog  # noqa: F401, a fixture

_CTL = (sys.executable, "-m", "tandemctl")
_STEP = '{"event_type": "step", "episode": 0, "step_index": 0, "reward": 1}'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates of servers and clients; the time of `old` and `new` ones is not now, `stranger` is unknown."""
    made = tmp_path_factory.mktemp("certificates")
    for name in ("server", "client", "stranger", "old_server", "old_client", "new_client"):
        cert, key = make_certificate(made, name)
        if name.startswith("old"):
            expire(cert, key)
        if name.startswith("new"):
            postpone(cert, key)
    known = [(made / name).read_bytes() for name in ("client.pem", "old_client.pem", "new_client.pem")]
    (made / "clients.pem").write_bytes(b"".join(known))
    return made


def flags_of(folder: Path, server: str = "server") -> list[str]:
    """Returns the flags of a daemon that knows `client` and `old_client`."""
    return [
        f"--tls_cert={folder / f'{server}.pem'}",
        f"--tls_key={folder / f'{server}.key.pem'}",
        f"--tls_client_ca={folder / 'clients.pem'}",
    ]


def files_of(folder: Path, client: str = "client", server: str = "server") -> TlsFiles:
    """Returns the files of a client that knows `server`."""
    return TlsFiles(
        authorities=folder / f"{server}.pem", certificate=folder / f"{client}.pem", key=folder / f"{client}.key.pem"
    )


@pytest.fixture(name="daemon")
def daemon_fixture(folder: Path, tmp_path: Path) -> Iterator[Daemon]:
    """A daemon with TLS at its port."""
    with running_daemon(tmp_path / "data", *flags_of(folder), tls=files_of(folder)) as daemon:
        yield daemon


def test_a_client_with_a_certificate_is_served(daemon: Daemon, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By arguments, by options of tandemctl, and by the environment; streams and calls."""
    with TrainerClient(daemon.address, tls=files_of(folder)) as client:
        run_id = client.submit(run_config("echo", _STEP)).run_id
        assert next(client.steps(run_id)).reward == 1
    paths = [str(folder / name) for name in ("server.pem", "client.pem", "client.key.pem")]
    options = zip(("--tls_ca", "--tls_cert", "--tls_key"), paths, strict=True)
    words = [*_CTL, "--daemon", daemon.address, "health"]
    subprocess.run([*words, *(word for option in options for word in option)], check=True, timeout=DEADLINE_SECS)
    for name, path in zip(TLS_VARIABLES, paths, strict=True):
        monkeypatch.setenv(name, path)
    subprocess.run(words, check=True, timeout=DEADLINE_SECS)
    with TrainerClient(daemon.address) as client:
        assert client.health().listen_address == daemon.address


def health(address: str, credentials: grpc.ChannelCredentials | None) -> Any:
    """Calls GetHealth by a channel of its own."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    insecure = credentials is None
    with (
        grpc.insecure_channel(address, options) if insecure else grpc.secure_channel(address, credentials, options)
    ) as channel:
        stub = trainer_grpc.TrainerServiceStub(channel)
        return stub.GetHealth(trainer.HealthCheckRequest(), timeout=DEADLINE_SECS)


def test_other_clients_are_refused(daemon: Daemon, folder: Path) -> None:
    """Without TLS, without a certificate, with an unknown one, with an expired one; the next client is served."""
    anonymous = grpc.ssl_channel_credentials((folder / "server.pem").read_bytes())
    for credentials in (None, anonymous):
        with pytest.raises(grpc.RpcError) as caught:
            health(daemon.address, credentials)
        assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
    reasons = {"stranger": "is valid until", "old_client": "expired on", "new_client": "is not valid before"}
    for name, dates in reasons.items():
        files = files_of(folder, name)
        text = f"refused this client's certificate, which {dates} 2.*UTC.*{name}.pem"
        with TrainerClient(daemon.address, tls=files) as client:
            with pytest.raises(DaemonUnreachable, match=f"GetHealth at .*{text}"):
                client.health()
        words = ["--tls_ca", str(files.authorities), "--tls_cert", str(files.certificate), "--tls_key", str(files.key)]
        command = [*_CTL, "--daemon", daemon.address, "list", *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECS, check=False)
        assert done.returncode == 1 and re.search(text, done.stderr), done
    code = subprocess.run(
        [*_CTL, "--daemon", daemon.address, "list"], capture_output=True, text=True, timeout=DEADLINE_SECS, check=False
    )
    assert code.returncode == 1 and "--tls_cert" in code.stderr, code
    with TrainerClient(daemon.address, tls=files_of(folder)) as client:
        assert client.health().pid == daemon.pid


def test_foreign_clients_make_one_line_of_the_log(folder: Path, tmp_path: Path) -> None:
    """In the daemon's format, with what can be said: connections without TLS, and those of refused certificates."""
    log = tmp_path / "log"
    daemon = Daemon(tmp_path / "data", *flags_of(folder), log=log)
    try:
        host, _, port = daemon.address.partition(":")
        for _ in range(50):
            with socket.create_connection((host, int(port))) as foreign:
                foreign.sendall(b"GET / HTTP/1.1\r\n\r\n")
                foreign.recv(1)  # the daemon has answered or disconnected
        for _ in range(3):
            with TrainerClient(daemon.address, tls=files_of(folder, "stranger")) as client:
                with pytest.raises(DaemonUnreachable):
                    client.health()
        with TrainerClient(daemon.address, tls=files_of(folder)) as client:
            assert client.health().healthy
    finally:
        assert daemon.stop() == 0
    lines = log.read_text("utf-8").splitlines()
    assert all(line.startswith("tandem-daemon: ") for line in lines), lines
    assert len([line for line in lines if "Handshake failed" in line]) == 1, lines


def test_a_refused_certificate_is_explained_in_the_log(folder: Path, tmp_path: Path) -> None:
    """The daemon's line has all that gRPC gives."""
    log = tmp_path / "log"
    daemon = Daemon(tmp_path / "data", *flags_of(folder), log=log)
    try:
        with TrainerClient(daemon.address, tls=files_of(folder, "stranger")) as client:
            with pytest.raises(DaemonUnreachable):
                client.health()
    finally:
        assert daemon.stop() == 0
    text = log.read_text("utf-8")
    assert "certificate verify failed" in text and "no authority of --tls_client_ca has signed it" in text, text


def test_a_client_refuses_other_daemons(daemon: Daemon, folder: Path, tmp_path: Path) -> None:
    """One that another authority has signed, and one whose certificate is expired."""
    unknown = files_of(folder, server="stranger")
    with TrainerClient(daemon.address, tls=unknown) as client, pytest.raises(DaemonUnreachable):
        client.health()
    old = Daemon(tmp_path / "old", *flags_of(folder, "old_server"))
    try:
        with TrainerClient(old.address, tls=files_of(folder, server="old_server")) as client:
            with pytest.raises(DaemonUnreachable):
                client.health()
    finally:
        assert old.stop() == 0


def test_programs_of_this_machine_use_the_socket(daemon: Daemon, folder: Path, tmp_path: Path) -> None:
    """In plaintext, with certificates in the environment or without; a worker gets its address."""
    with TrainerClient(f"unix:{daemon.data_dir}/daemon.sock", tls=files_of(folder)) as client:
        assert client.health().pid == daemon.pid
        out = tmp_path / "address"
        run_id = client.submit(run_config("sh", "-c", f'echo "$TANDEM_DAEMON" > {out}')).run_id
        for run in client.watch():
            if run.run_id == run_id and run.status.final:
                break
    assert out.read_text("utf-8").strip() == f"unix:{daemon.data_dir}/daemon.sock"


def test_other_machines_reach_it_by_tls_only(folder: Path, tmp_path: Path) -> None:
    """--allow_remote opens every address, and needs the files."""
    flags = ("--listen=0.0.0.0:0", "--allow_remote", *flags_of(folder))
    daemon = Daemon(tmp_path / "data", *flags)
    try:
        host, _, port = daemon.address.rpartition(":")
        assert host == "0.0.0.0"
        with TrainerClient(f"localhost:{port}", tls=files_of(folder)) as client:
            assert client.health().pid == daemon.pid
    finally:
        assert daemon.stop() == 0


def test_wrong_flags_and_files_are_named(folder: Path, tmp_path: Path) -> None:
    """Each with the flags that are missing, or the file that is wrong; no data folder is made."""
    cert, key, authority = flags_of(folder)
    token = tmp_path / "token"
    cases = [
        (2, ["--listen=0.0.0.0:0", "--allow_remote"], "--tls_client_ca"),
        (2, [cert, key], "found 2"),
        (2, [cert, key, authority, "--listen=none"], "--listen: expected HOST:PORT"),
        (2, [cert, key, authority, f"--token_file={token}"], "--token_file"),
        (1, [cert, key, authority, "--listen=0.0.0.0:0"], "--allow_remote"),
        (1, [cert, f"--tls_key={folder / 'client.key.pem'}", authority], "client.key.pem"),
        (1, [cert, key, "--tls_client_ca=/dev/null"], "/dev/null"),
        (1, [cert, key, f"--tls_client_ca={folder / 'none.pem'}"], "none.pem"),
    ]
    for code, flags, text in cases:
        command = [str(DAEMON), f"--data_dir={tmp_path}/data", "--listen=127.0.0.1:0", *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECS, check=False)
        assert (done.returncode, text in done.stderr) == (code, True), (flags, done)
    assert not (tmp_path / "data").exists()


def test_a_clients_wrong_files_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing file, one that is no PEM file, and variables that are not all set."""
    client, text = str(folder / "client.pem"), folder / "text"
    text.write_text("no certificate\n", "utf-8")
    for wrong, fact in ((folder / "none.pem", "none.pem"), (text, "PEM")):
        files = TlsFiles(authorities=client, certificate=client, key=wrong)
        with pytest.raises(tandem.InvalidArgument, match=f"^tls: .*{fact}"):
            TrainerClient("h:1", tls=files)
    with pytest.raises(tandem.InvalidArgument, match="^TlsFiles.key: expected a path"):
        TlsFiles(authorities=client, certificate=client, key="")
    monkeypatch.setenv("TANDEM_TLS_CA", client)
    with pytest.raises(tandem.InvalidArgument, match="^tls: .*TANDEM_TLS_CERT"):
        TrainerClient("h:1")
    with contextlib.closing(TrainerClient("unix:x")):
        pass  # needs no files
