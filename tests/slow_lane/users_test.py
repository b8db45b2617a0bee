"""Which users' connections the daemon takes, and what it answers to all others."""

import contextlib
import os
import pwd
import re
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

import tandem
from schema.protos import trainer_pb2 as trainer
from schema.protos import trainer_pb2_grpc as trainer_grpc
from tandem.telemetry import TrainerClient
from tandem.testing.daemons import DAEMON, DEADLINE_SECS, process_state, run_config, running_daemon, wait_until
from tests.slow_lane.daemon_fixture import (
    OTHER,
    Lane,
    lane_fixture,  # noqa: F401, a fixture
    needs_users,
    running_lane,
    watchdog,  # noqa: F401, a fixture
)
from tools.testing import pytest_main

CTL = (sys.executable, "-m", "tandemctl")
WITHOUT_OWNERS = Path("tests/slow_lane/without_socket_owners.py").absolute()

THIRD = OTHER + 1
TOKEN = "0123456789abcdef-not-a-secret"

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


@pytest.fixture(name="programs")
def programs_fixture() -> Iterator[Path]:
    """A folder with the daemon, which every user can read."""
    folder = Path(tempfile.mkdtemp(prefix="tandem-users-"))
    folder.chmod(0o755)
    shutil.copy(DAEMON, folder / DAEMON.name)
    yield folder
    shutil.rmtree(folder)


@contextlib.contextmanager
def as_user(uid: int) -> Iterator[None]:
    """Makes this process another user's; so are sockets that its threads make meanwhile."""
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


def as_other(*command: str | Path, uid: int = OTHER) -> list[str]:
    """Returns the command that runs a command as another user."""
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *map(str, command)]


def ctl_as_other(*words: str | Path) -> list[str]:
    """Returns the command that runs tandemctl as another user, with its modules already imported."""
    program = f"""
import os, tandem.telemetry, tandemctl.commands, tandemctl.run_config
from tandemctl.main import main
tandem.telemetry.TrainerClient("unix:none").close()
os.setgroups([])
os.setgid({OTHER})
os.setuid({OTHER})
main()
"""
    return [sys.executable, "-c", program, *map(str, words)]


def ctl(*command: str | Path, **environment: str) -> tuple[int, str]:
    """Runs a command and returns its exit code and what it wrote."""
    done = subprocess.run(
        [str(word) for word in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd="/",
        env=os.environ | environment,
        timeout=DEADLINE_SECS,
        check=False,
    )
    return done.returncode, done.stdout


def health_of(target: str, metadata: Any = None) -> Any:
    """Returns GetHealth's answer, by a connection of its own; the server's code as an exception."""
    with grpc.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        stub = trainer_grpc.TrainerServiceStub(channel)
        return stub.GetHealth(trainer.HealthCheckRequest(), timeout=DEADLINE_SECS, metadata=metadata)


def refusal_of(call: Callable[[], Any]) -> str:
    """Returns the text with which a call is refused."""
    with pytest.raises(grpc.RpcError) as refused:
        call()
    assert refused.value.code() is grpc.StatusCode.PERMISSION_DENIED, refused.value
    return str(refused.value.details())


@contextlib.contextmanager
def lane_of_all_sockets(*flags: str) -> Iterator[tuple[Lane, list[str]]]:
    """A daemon whose folder and sockets every user reaches, so that only the daemon itself refuses; and its targets."""
    with running_lane(starts=False) as lane:
        more = lane.scratch / "more.sock"
        lane.flags = (f"--socket={more}", *flags)
        lane.start()
        own = lane.data_dir / "daemon.sock"
        for path in (lane.data_dir.parent, lane.scratch, lane.data_dir, more, own):
            path.chmod(0o777)
        yield lane, [lane.address, f"unix:{more}", f"unix:{own}"]


@needs_users
def test_another_user_is_refused_and_nothing_of_the_call_is_done(tmp_path: Path) -> None:
    """By TCP and by both sockets, with a text that says what to do."""
    mark = tmp_path / "mark"
    with lane_of_all_sockets() as (lane, targets):
        for target in targets:
            code, text = ctl(*ctl_as_other("--daemon", target, "submit", "--", "touch", mark))
            assert code == 1
            assert f"uid {OTHER}" in text and "root (uid 0)" in text and "--allow_users" in text, text
            assert ctl(*CTL, "--daemon", target, "health")[0] == 0
        assert not lane.daemon_state().runs
        assert not mark.exists()
        assert f"uid {OTHER}" in lane.log()


@needs_users
def test_another_users_grpc_gets_permission_denied() -> None:
    """Calls of every kind, made at once by one connection; the client's errors name it, too."""
    with lane_of_all_sockets() as (lane, targets):
        for target in targets:
            options = [("grpc.use_local_subchannel_pool", 1)]
            with as_user(OTHER), grpc.insecure_channel(target, options=options) as channel:
                stub = trainer_grpc.TrainerServiceStub(channel)
                calls = [
                    stub.GetHealth.future(trainer.HealthCheckRequest(), timeout=DEADLINE_SECS),
                    stub.SubmitRun.future(trainer.SubmitRunRequest(config_json="x" * 300_000), timeout=DEADLINE_SECS),
                    stub.PublishRunSteps.future(iter([trainer.RunStep()] * 10), timeout=DEADLINE_SECS),
                ]
                streams = [
                    stub.WatchRuns(trainer.WatchRunsRequest(), timeout=DEADLINE_SECS),
                    stub.ControlStream(iter([trainer.ControlEvent()]), timeout=DEADLINE_SECS),
                ]
                for call in calls:
                    assert f"uid {OTHER}" in refusal_of(call.result)
                for stream in streams:
                    assert f"uid {OTHER}" in refusal_of(lambda stream=stream: list(stream))  # type: ignore[misc]
            with TrainerClient(target) as client, as_user(OTHER):
                with pytest.raises(tandem.AccessDenied, match="--allow_users"):
                    client.runs()
                with pytest.raises(tandem.AccessDenied, match="--allow_users"):
                    next(client.watch())
            assert health_of(target).pid == lane.pid


@needs_users
def test_allowed_users_may_connect() -> None:
    """By name and by uid, and no others."""
    with lane_of_all_sockets(f"--allow_users=daemon,{OTHER}") as (lane, targets):
        for target in targets:
            for uid in (pwd.getpwnam("daemon").pw_uid, OTHER, 0):
                with as_user(uid):
                    assert health_of(target).pid == lane.pid
            with as_user(THIRD):
                assert f"uid {THIRD}" in refusal_of(lambda target=target: health_of(target))  # type: ignore[misc]


@needs_users
@pytest.mark.parametrize("is_allowed", [False, True])
def test_socket_admits_allowed_users(programs: Path, is_allowed: bool) -> None:
    """Whatever the umask; where its mode keeps a user out, tandemctl does not say that there is no daemon."""
    more = programs / "more.sock"
    flags = [f"--allow_users={OTHER}"] if is_allowed else []
    before = os.umask(0o077)
    try:
        with running_daemon(programs / "data", f"--socket={more}", *flags):
            code, text = ctl(*ctl_as_other("--daemon", f"unix:{more}", "health"))
    finally:
        os.umask(before)
    if is_allowed:
        assert code == 0, text
    else:
        assert code == 1 and "Permission denied" in text and "--allow_users" in text, text
        assert "found none" not in text, text


@needs_users
def test_root_is_refused_by_another_users_daemon(programs: Path) -> None:
    """Programs of root forward connections of other users."""
    folder = programs / "own"
    folder.mkdir()
    os.chown(folder, OTHER, OTHER)
    command = as_other(programs / DAEMON.name, f"--data_dir={folder}/data", "--listen=127.0.0.1:0")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd="/") as daemon:
        try:
            assert daemon.stdout is not None
            (address,) = re.findall(r"listening on (\S+)", daemon.stdout.readline())
            assert "uid 0" in refusal_of(lambda: health_of(address))
            code, text = ctl(*ctl_as_other("--daemon", address, "health"))
            assert code == 0, text
        finally:
            daemon.terminate()


@pytest.mark.parametrize("listen", ["localhost:0", "[::1]:0", "[::ffff:127.0.0.1]:0", "127.1.2.3:0"])
def test_every_loopback_address_serves_its_own_user(tmp_path: Path, listen: str) -> None:
    """A name as well, by each of its addresses."""
    command = [str(DAEMON), f"--data_dir={tmp_path}/data", f"--listen={listen}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as daemon:
        try:
            assert daemon.stdout is not None and daemon.stderr is not None
            line = daemon.stdout.readline()
            if not line and "::1" in listen and "Cannot assign" in daemon.stderr.read():
                pytest.skip("no IPv6")
            (address,) = re.findall(r"listening on (\S+)", line)
            assert health_of(f"dns:///{address}").pid == daemon.pid
            if listen.startswith("localhost"):
                assert health_of(f"127.0.0.1:{address.rpartition(':')[2]}").pid == daemon.pid
        finally:
            daemon.terminate()


@pytest.mark.parametrize("host", ["0.0.0.0", "no-such-host.invalid"])
def test_addresses_of_other_machines_are_refused(tmp_path: Path, host: str) -> None:
    """With the next step, and before anything is made."""
    code, text = ctl(DAEMON, f"--data_dir={tmp_path}/data", f"--listen={host}:50055")
    assert code == 1 and "--listen" in text and "127.0.0.1:50055" in text, text
    assert ("ssh -N -L" in text) == (host != "no-such-host.invalid"), text
    assert not (tmp_path / "data").exists()


def test_unknown_users_are_refused_at_the_start(tmp_path: Path) -> None:
    """With the name, and before anything is made."""
    code, text = ctl(DAEMON, f"--data_dir={tmp_path}/data", "--listen=none", "--allow_users=root,no-such-user")
    assert code == 1 and "--allow_users" in text and "'no-such-user'" in text, text
    assert not (tmp_path / "data").exists()


@pytest.fixture(name="without_owners")
def without_owners_fixture(tmp_path: Path) -> Path:
    """A daemon that gets no answer of the kernel about TCP."""
    program = tmp_path / "daemon-without-owners"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{WITHOUT_OWNERS}" "{DAEMON}" "$@"\n', "utf-8")
    program.chmod(0o755)
    return program


def test_unknown_user_is_refused_by_tcp_and_known_by_a_socket(tmp_path: Path, without_owners: Path) -> None:
    """Where no token was configured; the text names the socket."""
    daemon = subprocess.Popen(
        [without_owners, f"--data_dir={tmp_path}/data", "--listen=127.0.0.1:0"], stdout=subprocess.PIPE, text=True
    )
    with daemon:
        try:
            assert daemon.stdout is not None
            (address,) = re.findall(r"listening on (\S+)", daemon.stdout.readline())
            own = f"unix:{tmp_path}/data/daemon.sock"
            text = refusal_of(lambda: health_of(address))
            assert own in text and "--token_file" in text, text
            assert health_of(own).pid == daemon.pid
            # A run's proxy uses the socket.
            code, said = ctl(*CTL, "--daemon", own, "submit", "--watch", "--", "true")
            assert code == 0, said
        finally:
            daemon.terminate()


def test_token_admits_an_unknown_user(tmp_path: Path, without_owners: Path) -> None:
    """In each call, of tandemctl's, of TrainerClient's and of any client's; not with another one, nor with none."""
    token_file, other_file = tmp_path / "token", tmp_path / "other"
    for path, token in ((token_file, TOKEN), (other_file, TOKEN[:-1] + "x")):
        path.touch(0o600)
        path.write_text(f"{token}\n", "utf-8")
    with running_daemon(
        tmp_path / "data", f"--token_file={token_file}", program=without_owners, token_file=token_file
    ) as daemon:
        address = daemon.address
        assert health_of(address, [("authorization", f"Bearer {TOKEN}")]).pid == daemon.pid
        for wrong in (
            None,
            [("authorization", TOKEN)],
            [("authorization", f"Bearer {TOKEN}x")],
            [("authorization", "Bearer ")],
            [("authorization", f"Bearer {TOKEN[:-1]}x")],
        ):
            text = refusal_of(lambda wrong=wrong: health_of(address, wrong))  # type: ignore[misc]
            assert "TANDEM_TOKEN_FILE" in text and TOKEN not in text, text

        for flags in ((), ("--token_file", str(other_file))):
            code, text = ctl(*CTL, "--daemon", address, *flags, "submit", "--", "true")
            assert code == 1 and "token" in text, text
        code, text = ctl(*CTL, "--daemon", address, "--token_file", token_file, "submit", "--watch", "--", "true")
        assert code == 0, text
        (run_id,) = re.findall(r"^\w{26}$", text, re.MULTILINE)
        for words in (["list"], ["watch", run_id], ["cancel", run_id], ["export", run_id], ["delete", run_id]):
            code, text = ctl(*CTL, "--daemon", address, *words, TANDEM_TOKEN_FILE=str(token_file))
            assert code == 0, text

        with TrainerClient(address) as client, pytest.raises(tandem.AccessDenied, match="token"):
            client.runs()
        with TrainerClient(address, token_file=token_file) as client:
            run_id = client.submit(
                run_config("echo", '{"event_type": "step", "episode": 0, "step_index": 0, "reward": 1}')
            ).run_id
            assert next(client.steps(run_id)).reward == 1
            next(client.watch())
            with client.control() as control:
                control.grant(run_id, 5)
            client.cancel(run_id)


def test_one_connection_too_many_of_unknown_users_is_refused(tmp_path: Path, without_owners: Path) -> None:
    """Until another one ends; the text names the socket, which stays open to the daemon's user."""
    most = 64
    token_file = tmp_path / "token"
    token_file.touch(0o600)
    token_file.write_text(TOKEN, "utf-8")
    bearer = [("authorization", f"Bearer {TOKEN}")]
    with running_daemon(
        tmp_path / "data", f"--token_file={token_file}", program=without_owners, token_file=token_file
    ) as daemon:
        host, port = daemon.address.split(":")
        with contextlib.ExitStack() as silent:
            for _ in range(most):
                one = silent.enter_context(socket.create_connection((host, int(port)), timeout=DEADLINE_SECS))
                assert one.recv(1)  # gRPC's first bytes: the connection is handed on
            text = refusal_of(lambda: health_of(daemon.address, bearer))
            own = f"unix:{tmp_path}/data/daemon.sock"
            assert str(most) in text and own in text, text
            assert health_of(own).pid == daemon.pid

        def is_taken() -> bool:
            with contextlib.suppress(grpc.RpcError):
                return bool(health_of(daemon.address, bearer).pid == daemon.pid)
            return False

        wait_until(is_taken, "a connection that is taken since others ended")


@needs_users
def test_token_does_not_admit_a_known_other_user(tmp_path: Path) -> None:
    """The token is for clients whose user the kernel does not state."""
    token_file = tmp_path / "token"
    token_file.touch(0o600)
    token_file.write_text(TOKEN, "utf-8")
    with lane_of_all_sockets(f"--token_file={token_file}") as (lane, targets):
        for target in targets:
            with as_user(OTHER):
                bearer = [("authorization", f"Bearer {TOKEN}")]
                assert f"uid {OTHER}" in refusal_of(lambda t=target, b=bearer: health_of(t, b))  # type: ignore[misc]
            assert health_of(target).pid == lane.pid


@pytest.mark.parametrize(("content", "mode"), [("short", 0o600), (TOKEN, 0o644), (None, 0o600)])
def test_bad_token_files_are_refused_at_the_start(tmp_path: Path, content: str | None, mode: int) -> None:
    """By the daemon and by both clients, which say which file it is."""
    token_file = tmp_path / "token"
    if content is not None:
        token_file.write_text(content, "utf-8")
        token_file.chmod(mode)
    code, text = ctl(DAEMON, f"--data_dir={tmp_path}/data", "--listen=none", f"--token_file={token_file}")
    assert code == 1 and "--token_file" in text and str(token_file) in text, text
    assert not (tmp_path / "data").exists()
    code, text = ctl(*CTL, "list", TANDEM_TOKEN_FILE=str(token_file))
    assert code == 1 and "TANDEM_TOKEN_FILE" in text and str(token_file) in text, text
    with pytest.raises(tandem.TandemError, match="token_file: .*") as caught:
        TrainerClient(token_file=token_file)
    assert str(token_file) in str(caught.value)


def test_client_that_has_closed_has_no_user(lane: Lane) -> None:
    """What it sent before is not done: its ports may be another user's by now."""
    os.kill(lane.pid, signal.SIGSTOP)
    wait_until(lambda: process_state(lane.pid) == "T", "the daemon to stop")
    host, port = lane.address.split(":")
    with socket.create_connection((host, int(port))) as client:
        client.sendall(_PREFACE)
    os.kill(lane.pid, signal.SIGCONT)
    wait_until(lambda: "whose user the kernel does not name" in lane.log(), "the refusal")
    assert lane.healthy()


def _descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


@needs_users
def test_refused_clients_do_not_block_others() -> None:
    """Many that stay connected and say nothing hold few descriptors, for a short time, and few lines of the log."""
    with lane_of_all_sockets() as (lane, _):
        host, port = lane.address.split(":")
        assert lane.healthy()  # by a connection that stays
        before = _descriptors(lane.pid)
        with contextlib.ExitStack() as open_clients:
            clients = []
            for _ in range(300):
                with as_user(OTHER):
                    client = open_clients.enter_context(socket.create_connection((host, int(port)), DEADLINE_SECS))
                clients.append(client)
            assert lane.healthy()
            assert _descriptors(lane.pid) <= before + 20
            for client in clients:
                with contextlib.suppress(ConnectionResetError):
                    assert client.recv(1) == b""
        wait_until(lambda: _descriptors(lane.pid) <= before, "the descriptors to be closed")
        assert lane.log().count("refused a connection") <= 2


def test_daemon_without_descriptors_recovers(lane: Lane) -> None:
    """Clients wait meanwhile, and the log says why."""
    limits = resource.prlimit(lane.pid, resource.RLIMIT_NOFILE)
    few = _descriptors(lane.pid) + 8
    resource.prlimit(lane.pid, resource.RLIMIT_NOFILE, (few, limits[1]))
    host, port = lane.address.split(":")
    with contextlib.ExitStack() as clients:
        for _ in range(30):
            clients.enter_context(socket.create_connection((host, int(port)), DEADLINE_SECS))
        wait_until(lambda: "Too many open files" in lane.log(), "the line in the log")
        (waiting,) = re.findall(r"tandem-daemon: new clients wait.*", lane.log())
        assert "ulimit -n" in waiting
    for target in (lane.address, f"unix:{lane.data_dir}/daemon.sock"):
        wait_until(lambda target=target: _answers(target, lane.pid), f"an answer by {target}")  # type: ignore[misc]


def _answers(target: str, pid: int) -> bool:
    try:
        return bool(health_of(target).pid == pid)
    except grpc.RpcError:
        return False


def test_stopping_ends_connections_and_removes_the_sockets(lane: Lane) -> None:
    """Also one that says nothing; the port is free at once."""
    host, port = lane.address.split(":")
    with socket.create_connection((host, int(port)), DEADLINE_SECS) as client:
        client.sendall(_PREFACE)
        assert client.recv(1)
        assert lane.stop() == 0
        with contextlib.suppress(ConnectionResetError):
            while client.recv(4096):
                pass
    assert not (lane.data_dir / "daemon.sock").exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))
    lane.start()
    assert stat.S_ISSOCK((lane.data_dir / "daemon.sock").stat().st_mode)
    assert lane.healthy()


def test_port_that_one_of_a_names_addresses_has_taken_is_refused(tmp_path: Path) -> None:
    """Clients of that name would reach either program by chance."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, text = ctl(DAEMON, f"--data_dir={tmp_path}/data", f"--listen=localhost:{port}")
    assert code == 1 and "Address already in use" in text, text


if __name__ == "__main__":
    pytest_main.run(__file__)
