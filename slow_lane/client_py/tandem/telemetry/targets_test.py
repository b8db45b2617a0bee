"""Targets of `TrainerClient`: valid and invalid ones, and the error without a daemon."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import tandem
from tandem.telemetry import DaemonUnreachable, TrainerClient
from tandem.telemetry.connection import DEFAULT_TARGET
from tandem.testing.daemons import DAEMON, Daemon, running_daemon
from tandem.testing.engines import watchdog  # noqa: F401, a fixture


@pytest.fixture(scope="module")
def shared_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon that the tests leave unchanged."""
    with running_daemon(tmp_path_factory.mktemp("data")) as daemon:
        yield daemon


@pytest.mark.parametrize(
    "target",
    ["host:99999", "host:65536", "127.0.0.1:0", "[::1]:70000", "host:-1", "host:", "host:5x", "host:٣", "host:5\n"]
    + ["dns:host:65537", "dns:///host:65537", "dns://8.8.8.8/host:65537", "ipv4:127.0.0.1:5,127.0.0.1:65536"]
    + ["ipv4:127.0.0.1:65536", "ipv4:127.0.0.1:5x", "ipv4:127.0.0.1:0", "ipv6:[::1]:65536"],
)
def test_port_that_does_not_exist_is_refused(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the target's source; gRPC would use another port, or fail later without a reason."""
    with pytest.raises(tandem.InvalidArgument, match=r"^target: expected .* 1 \.\. 65535, .*found '"):
        TrainerClient(target)
    monkeypatch.setenv("TANDEM_DAEMON", target)
    with pytest.raises(tandem.InvalidArgument, match=r"^target, from TANDEM_DAEMON: expected .*65535"):
        TrainerClient()


@pytest.mark.parametrize(
    "target",
    ["host:1", "host:65535", "host", "[::1]:50055", "::1", "dns:///host:50055", "dns:host:5", "ipv4:127.0.0.1:50055"]
    + ["unix:99999", "unix:a:99999", "unix:///run/a:99999", "unix-abstract:99999", "ipv6:[::1]:5,[::2]:6"],
)
def test_other_targets_are_passed_to_grpc(target: str) -> None:
    """For example, the name of a Unix socket has no port."""
    with TrainerClient(target) as client:
        assert client.target == target


@pytest.mark.parametrize("bad", ["unix:a\0b", "unix:a\ud800"])
def test_texts_that_cannot_be_sent_are_refused(bad: str) -> None:
    """The error names the target or the request's field."""
    with pytest.raises(tandem.InvalidArgument, match="^target: expected a str without NULs and lone surrogates"):
        TrainerClient(bad)
    with TrainerClient("host:1") as client, pytest.raises(tandem.InvalidArgument, match="^CancelRun: run_id: expected"):
        client.cancel(bad)


def test_every_form_of_a_target_reaches_the_daemon(shared_daemon: Daemon) -> None:
    """The client connects by the daemon's port and by its Unix socket."""
    host, port = shared_daemon.address.split(":")
    socket = shared_daemon.data_dir / "daemon.sock"
    for target in (f"ipv4:{host}:{port}", f"dns:///localhost:{port}", f"localhost:{port}", f"unix:{socket}"):
        with TrainerClient(target) as client:
            assert client.health().pid == shared_daemon.pid


def test_missing_daemon_is_reported_with_the_next_action(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls and subscriptions raise DaemonUnreachable, which is also a ConnectionError."""
    target = f"unix:{tmp_path}/no.sock"
    monkeypatch.setenv("TANDEM_DAEMON", target)
    with TrainerClient() as client, TrainerClient(timeout=0.3) as hurried:
        assert client.target == target
        for call in (client.runs, client.health, lambda: next(hurried.steps("x"))):
            with pytest.raises(DaemonUnreachable, match="TANDEM_DAEMON") as caught:
                call()
            assert isinstance(caught.value, ConnectionError)
    monkeypatch.delenv("TANDEM_DAEMON")
    with TrainerClient() as client:
        assert client.target == "127.0.0.1:50055"


def test_default_target_is_where_the_daemon_listens_by_default() -> None:
    """The daemon's --help has the default address."""
    text = subprocess.run([DAEMON, "--help"], capture_output=True, text=True, check=False).stdout
    assert re.search(rf"--listen\n(?: .*\n)+? +default: {re.escape(DEFAULT_TARGET)}\n", text), text
