"""The users whose connections the daemon accepts, and its answers to other users."""

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
from slow_lane.testing.daemon_fixture import (
    OTHER,
    Lane,
    lane_fixture,  # noqa: F401, a fixture
    needs_users,
    running_lane,
    watchdog,  # noqa: F401, a fixture
)
from tandem.telemetry import TrainerClient
from tandem.testing.daemons import DAEMON, DEADLINE_SECS, await_stopped, run_config, running_daemon, wait_until

CTL = (sys.executable, "-m", "tandemctl")
WITHOUT_OWNERS = Path("slow_lane/testing/without_socket_owners.py").absolute()

THIRD = OTHER + 1
TOKEN = "0123456789abcdef-not-a-secret"

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


@pytest.fixture(name="programs")
def programs_fixture() -> Iterator[Path]:
    """Makes a folder with a copy of the daemon that every user can read."""
    folder = Path(tempfile.mkdtemp(prefix="tandem-users-"))
    folder.chmod(0o755)
    shutil.copy(DAEMON, folder / DAEMON.name)
    yield folder
    shutil.rmtree(folder)


@contextlib.contextmanager
def as_user(uid: int) -> Iterator[None]:
    """Gives this process, and sockets of its threads, another effective user."""
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
    """Runs a command, and returns its exit code and output."""
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
    """Returns GetHealth's answer on a new connection, or raises the server's status."""
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
    """Starts a daemon whose folder and sockets every user can open; only its own check refuses. Yields its targets."""
    with running_lane(starts=False) as lane:
        more = lane.scratch / "more.sock"
        lane.flags = (f"--socket={more}", *flags)
        lane.start()
        own = lane.data_dir / "daemon.sock"
        for path in (lane.data_dir.parent, lane.scratch, lane.data_dir, more, own):
            path.chmod(0o777)
        yield lane, [lane.address, f"unix:{more}", f"unix:{own}"]


@needs_users
def test_another_users_call_is_refused_and_has_no_effect(tmp_path: Path) -> None:
    """Holds by TCP and by both sockets; the text has the next action."""
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
    """Calls of each kind at once on one connection get PERMISSION_DENIED; TrainerClient raises AccessDenied."""
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
    """Users are allowed by name or by uid; other users are refused."""
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
    """The umask has no effect; for a user refused by the socket's mode, the error is not "found none"."""
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
    """Root is refused, since root's programs forward other users' connections."""
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
    """A host name is served on each of its addresses."""
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


@pytest.fixture(name="without_owners")
def without_owners_fixture(tmp_path: Path) -> Path:
    """A daemon to which the kernel names no owner of TCP connections."""
    program = tmp_path / "daemon-without-owners"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{WITHOUT_OWNERS}" "{DAEMON}" "$@"\n', "utf-8")
    program.chmod(0o755)
    return program


def test_unknown_user_is_refused_by_tcp_but_not_by_the_socket(tmp_path: Path, without_owners: Path) -> None:
    """No access token is configured; the error names the socket."""
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
            code, message = ctl(*CTL, "--daemon", own, "submit", "--watch", "--", "true")
            assert code == 0, message
        finally:
            daemon.terminate()


def test_token_admits_an_unknown_user(tmp_path: Path, without_owners: Path) -> None:
    """Each call with the token is accepted, of any client; a wrong or missing token is refused."""
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
    """A further connection is accepted when another one ends; the socket still serves the daemon's user."""
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
                assert one.recv(1)  # gRPC's first bytes: the daemon passed the connection to gRPC
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
    """The token is only for clients whose user the kernel does not name."""
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
    """The daemon and both clients refuse it, with the file's name."""
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


def test_calls_of_a_closed_connection_are_refused(lane: Lane) -> None:
    """The daemon ignores its calls: another user may have the ports by now."""
    os.kill(lane.pid, signal.SIGSTOP)
    await_stopped(lane.pid)
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
    """Many silent connections of another user use few descriptors, for a short time, and few lines of the log."""
    with lane_of_all_sockets() as (lane, _):
        host, port = lane.address.split(":")
        assert lane.healthy()  # opens a connection that stays open
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
    """Clients wait meanwhile, and the log has the reason."""
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
    """A silent connection is closed as well; the port is free at once."""
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


def test_port_in_use_at_one_address_of_a_name_is_refused(tmp_path: Path) -> None:
    """Otherwise clients that use the name would reach one of two programs by chance."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        code, text = ctl(DAEMON, f"--data_dir={tmp_path}/data", f"--listen=localhost:{port}")
    assert code == 1 and "Address already in use" in text, text
