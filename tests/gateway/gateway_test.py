"""The gateway's calls on real engines, with stubs made of schema/protos/hazel.

tests/gateway/luckyrobots_test.py has the calls of the real package.
"""

import os
import re
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import numpy as np
import pytest
import schema.protos.hazel.agent_pb2 as agent_pb2
import schema.protos.hazel.contract_pb2 as contract_pb2

import tandem
from tandem._native import remove_if_dead
from tandem.engine.process import launch_engine
from tandem.testing.engines import (  # noqa: F401, the fixtures
    nothing_left_behind,
    unique_name,
    watchdog,
)
from tandem.testing.gateways import GATEWAY, Gateway
from tests.gateway.stubs import SECS, SERVER, ZEROS, Stubs, attach_when_free, connected, engine, refused


def test_a_program_resets_and_steps() -> None:
    """Sizes, names and values are those of the task."""
    name = unique_name()
    with engine(name), Gateway(name) as gateway, connected(gateway) as stubs:
        assert (stubs.schema().observation_size, stubs.schema().action_size) == (17, 6)
        assert stubs.reset().success
        first = stubs.step(ZEROS)
        second = stubs.step([0.5] * 6)
    assert first.success and second.success
    assert len(second.observation.observations) == 17
    assert list(second.observation.actions) == [0.5] * 6
    assert second.observation.frame_number == first.observation.frame_number + 1
    assert list(second.reward_signals) == ["reward"]
    # LuckyEnv adds all signals; the parts of the reward are infos.
    parts = second.info["reward_forward"] + second.info["reward_ctrl"]
    assert second.reward_signals["reward"] == pytest.approx(parts, rel=1e-5)
    assert second.info["x_position"] != first.info["x_position"]
    assert dict(second.termination_flags) == {"terminated": False, "time_out": False}


_CART = """
<mujoco>
  <worldbody><body><joint name="slide" type="slide"/><geom size="0.1"/></body></worldbody>
  <actuator><motor joint="slide"/></actuator>
</mujoco>
"""


def test_an_engine_without_rewards_has_no_reward_signal(tmp_path: Path) -> None:
    """A model has none: neither steps nor the manifest name one, and a contract cannot select it."""
    model = tmp_path / "cart.xml"
    model.write_text(_CART, "utf-8")
    name = unique_name()
    with launch_engine(name=name, server=SERVER, model=model), Gateway(name) as gateway, connected(gateway) as stubs:
        assert stubs.reset().success
        answer = stubs.step([0.5])
        assert answer.success and not answer.reward_signals
        manifest = stubs.agent.GetCapabilityManifest(contract_pb2.GetCapabilityManifestRequest(), timeout=SECS).manifest
        assert not manifest.rewards
        request = contract_pb2.NegotiateTaskRequest(contract=_contract("reward"))
        refusal = stubs.agent.NegotiateTask(request, timeout=SECS)
        assert not refusal.success and "task's 0 rewards" in refusal.message
        assert stubs.agent.NegotiateTask(contract_pb2.NegotiateTaskRequest(), timeout=SECS).success
        assert not stubs.step([0.5]).reward_signals


def test_an_episode_equals_the_one_over_shared_memory() -> None:
    """Each number, bit for bit, to the step that truncates the episode."""
    actions = np.random.default_rng(3).uniform(-1, 1, (1000, 6)).astype(np.float32)
    name = unique_name()
    with engine(name, seed=7), Gateway(name) as gateway, connected(gateway) as stubs:
        assert stubs.reset().success
        over_grpc = [stubs.step(row.tolist()) for row in actions]
    with engine(name, seed=7), tandem.SharedMemoryClient(name, autoreset_mode=tandem.AutoresetMode.DISABLED) as client:
        client.reset()
        for row, answer in zip(actions, over_grpc, strict=True):
            client.step(row[np.newaxis])
            assert np.array_equal(client.obs[0], np.float32(answer.observation.observations))
            assert client.rewards[0] == np.float32(answer.reward_signals["reward"])
            assert bool(client.truncateds[0]) == answer.truncated
    assert [answer.truncated for answer in over_grpc] == [False] * 999 + [True]


def _set_group(stubs: Stubs, agent: str, name: str, index: int) -> None:
    """Calls SetActionGroup."""
    group = agent_pb2.ActionGroupEntry(group_name=name, actions=[0.5], action_indices=[index])
    stubs.agent.SetActionGroup(agent_pb2.SetActionGroupRequest(agent_name=agent, group=group), timeout=SECS)


def test_an_invalid_action_group_refuses_one_step() -> None:
    """With a short text; the next step is without the group."""
    name = unique_name()
    with engine(name), Gateway(name) as gateway, connected(gateway) as stubs:
        assert stubs.reset().success
        _set_group(stubs, "", "n" * 20000, index=99)
        with refused(grpc.StatusCode.INVALID_ARGUMENT, "indices below 6", "of 20000 bytes"):
            stubs.step(ZEROS)
        assert stubs.step(ZEROS).success


def test_action_groups_end_with_the_programs() -> None:
    """The next program's step is without them."""
    name = unique_name()
    with engine(name), Gateway(name, "--release_after=1h") as gateway:
        with connected(gateway) as stubs:
            assert stubs.reset().success
            _set_group(stubs, "agent_0", "legs", index=2)
        attach_when_free(name).close()
        with connected(gateway) as stubs:
            assert stubs.reset().success
            assert list(stubs.step(ZEROS).observation.actions) == ZEROS


def test_refused_action_groups_are_not_kept() -> None:
    """The gateway's memory does not grow by their names."""
    name = unique_name()
    with Gateway(name) as gateway, connected(gateway) as stubs:

        def resident_mib() -> int:
            return int(Path(f"/proc/{gateway.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20

        for number in range(64):
            _set_group(stubs, "", f"group_{number}", index=0)
        before = resident_mib()
        for number in range(100):
            with refused(grpc.StatusCode.RESOURCE_EXHAUSTED):
                _set_group(stubs, f"{number}".ljust(1 << 20, "n"), "legs", index=0)
        assert resident_mib() - before < 50


def _contract(*rewards: str) -> contract_pb2.TaskContract:
    contract = contract_pb2.TaskContract()
    for name in rewards:
        contract.rewards.engine_terms.add(name=name, weight=1)
    return contract


def test_a_negotiated_contract_selects_the_reward_signals() -> None:
    """Of its own connection; an invalid contract changes nothing, and names the nearest term."""
    name = unique_name()
    with engine(name), Gateway(name) as gateway, connected(gateway) as stubs, connected(gateway) as other:
        manifest = stubs.agent.GetCapabilityManifest(contract_pb2.GetCapabilityManifestRequest(), timeout=SECS).manifest
        assert {term.name for term in manifest.rewards} == {"reward", "reward_forward", "reward_ctrl"}
        assert len(manifest.observations) == 17 and len(manifest.actions) == 6
        request = contract_pb2.NegotiateTaskRequest(contract=_contract("reward_ctrl", "reward"))
        answer = stubs.agent.NegotiateTask(request, timeout=SECS)
        assert answer.success and answer.session.session_id, answer
        assert [slot.offset for slot in answer.session.observation_layout] == list(range(17))
        wrong = contract_pb2.NegotiateTaskRequest(contract=_contract("reward_foward"))
        invalid = stubs.agent.NegotiateTask(wrong, timeout=SECS)
        assert not invalid.success and "did you mean 'reward_forward'?" in invalid.message
        assert stubs.reset().success
        step = stubs.step([0.5] * 6)
        assert set(step.reward_signals) == {"reward", "reward_ctrl"}
        assert step.reward_signals["reward_ctrl"] == pytest.approx(step.info["reward_ctrl"])
        assert list(other.step(ZEROS).reward_signals) == ["reward"]


def test_agents_step_at_once() -> None:
    """Each agent gets its own row. A step of one agent alone fails, and names the agent that did not step."""
    name = unique_name()
    with (
        engine(name, num_envs=2, seed=7),
        Gateway(name) as gateway,
        connected(gateway) as stubs,
        ThreadPoolExecutor(2) as threads,
    ):
        assert stubs.reset("agent_0").success and stubs.reset("agent_1").success
        rows = np.random.default_rng(5).uniform(-1, 1, (20, 2, 6)).astype(np.float32)
        over_grpc = []
        for row in rows:
            steps = [threads.submit(stubs.step, row[env].tolist(), agent_name=f"agent_{env}") for env in range(2)]
            over_grpc.append([step.result() for step in steps])
        alone = stubs.step(ZEROS, agent_name="agent_1", timeout_s=0.1)
        assert not alone.success and "agent_0" in alone.message
        with refused(grpc.StatusCode.INVALID_ARGUMENT, "agent_0 to agent_1"):
            stubs.step(ZEROS, agent_name="agent_2")
        waiting = threads.submit(stubs.step, ZEROS)
        with refused(grpc.StatusCode.INVALID_ARGUMENT, "found nan at 0"):
            stubs.step([float("nan")] * 6, agent_name="agent_1")
        assert stubs.step(ZEROS, agent_name="agent_1").success and waiting.result().success
    with (
        engine(name, num_envs=2, seed=7),
        tandem.SharedMemoryClient(name, autoreset_mode=tandem.AutoresetMode.DISABLED) as client,
    ):
        client.reset([0])
        client.reset([1])
        for row, answers in zip(rows, over_grpc, strict=True):
            client.step(row)
            for env, answer in enumerate(answers):
                assert answer.success and answer.observation.agent_name == f"agent_{env}"
                assert np.array_equal(client.obs[env], np.float32(answer.observation.observations))
                assert client.rewards[env] == np.float32(answer.reward_signals["reward"])


def test_a_trainer_keeps_its_engine() -> None:
    """The gateway answers all other calls, and takes the slot when it is free."""
    name = unique_name()
    with engine(name), Gateway(name) as gateway, connected(gateway) as stubs:
        with tandem.SharedMemoryClient(name) as trainer:
            trainer.reset()
            with refused(grpc.StatusCode.FAILED_PRECONDITION, "pid"):
                stubs.reset()
            with refused(grpc.StatusCode.FAILED_PRECONDITION, "pid"):
                stubs.step(ZEROS)
            assert stubs.mujoco_info().success
            trainer.step(np.zeros((1, 6), np.float32))
        assert stubs.reset().success


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "unix"])
def test_the_slot_is_released_when_the_last_program_that_stepped_ends(host: str, tmp_path: Path) -> None:
    """Not by a program that has not stepped, and not before the last."""
    name = unique_name()
    path = f"{tmp_path}/socket"
    flags = ["--listen=none", f"--socket={path}"] if host == "unix" else [f"--listen={host}:0"]
    with engine(name), Gateway(name, *flags) as gateway:
        with connected(gateway) as first, connected(gateway) as second:
            assert first.reset().success
            assert second.reset().success
            with connected(gateway) as reader:
                assert reader.mujoco_info().success
            second.channel.close()
            assert first.step(ZEROS).success
            with pytest.raises(tandem.AlreadyAttached):
                tandem.SharedMemoryClient(name)
        attach_when_free(name).close()
    if host == "unix":
        assert not Path(path).exists()


def test_the_unix_socket_is_for_its_user_alone(tmp_path: Path) -> None:
    """Whatever the umask is."""
    path = tmp_path / "socket"
    with Gateway(unique_name(), "--listen=none", f"--socket={path}"):
        assert path.stat().st_mode & 0o777 == 0o600


def test_the_slot_is_released_after_a_time_without_steps() -> None:
    """A trainer then gets it, while the program stays connected."""
    name = unique_name()
    with engine(name), Gateway(name, "--release_after=0s") as gateway, connected(gateway) as stubs:
        assert stubs.reset().success
        attach_when_free(name).close()
        assert stubs.reset().success


def test_a_missing_engine_is_not_ready_yet_and_then_found() -> None:
    """Also after the engine's end, without a restart of the gateway."""
    name = unique_name()
    with Gateway(name) as gateway, connected(gateway) as stubs:
        for _ in range(2):
            info = stubs.mujoco_info()
            assert not info.success and "not ready yet" in info.message
            reset = stubs.reset()
            assert not reset.success and "not ready yet" in reset.message
            with refused(grpc.StatusCode.UNAVAILABLE, "not ready yet"):
                stubs.step(ZEROS)
            with refused(grpc.StatusCode.UNAVAILABLE, "not ready yet"):
                stubs.schema()
            with engine(name):
                assert stubs.mujoco_info().success
                assert stubs.reset().success
                assert stubs.step(ZEROS).success


@pytest.mark.parametrize(
    "path",
    [
        "hazel.rpc.AgentService/SetPolicyActive",
        "hazel.rpc.AgentService/StreamPolicySlotState",  # streams
        "hazel.rpc.LidarService/GetLidarScan",  # of a service without any counterpart
        "another.Service/Call",
    ],
)
@pytest.mark.parametrize("kind", ["unary_unary", "unary_stream", "stream_stream"])
def test_an_rpc_that_the_gateway_does_not_serve_is_refused_at_once(path: str, kind: str) -> None:
    """The text names the RPC and the next action."""
    with Gateway(unique_name()) as gateway, connected(gateway) as stubs:
        request = iter([b""]) if kind == "stream_stream" else b""
        with refused(grpc.StatusCode.UNIMPLEMENTED, path.split("/")[1], "--list_rpcs"):
            answer = getattr(stubs.channel, kind)(f"/{path}")(request, timeout=SECS)
            next(answer)


def _address_in(log: str) -> str:
    found = re.search(r"tandem-gateway: serves engine '.*' at (\S+)", log)
    assert found, log
    return found[1]


def _running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_an_engine_starts_and_ends_its_gateway(end: signal.Signals) -> None:
    """By the flag --grpc; also if the engine is killed."""
    name = unique_name()
    command = [SERVER, "--task=HalfCheetah-v5", f"--name={name}", "--grpc=127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        address = _address_in(server.stderr.readline())
        (gateway,) = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text(encoding="ascii").split()
        with grpc.insecure_channel(address) as channel:
            while not Stubs(channel).reset().success:
                pass  # until the engine serves; the watchdog ends it
            assert Stubs(channel).step(ZEROS).success
        server.send_signal(end)
    while _running(int(gateway)):
        pass
    remove_if_dead(name)  # a killed engine leaves its region


def test_an_address_in_use_is_the_engines_error() -> None:
    """The text is the gateway's; launch_engine names its own keyword for an invalid one."""
    with Gateway(unique_name()) as gateway:
        with pytest.raises(tandem.EngineStartFailed, match=str(gateway.port)):
            engine(unique_name(), grpc=gateway.address)
    with pytest.raises(tandem.InvalidArgument, match="grpc: .*nonsense"):
        engine(unique_name(), grpc="nonsense")


def test_programs_look_at_the_environments_of_make_vec() -> None:
    """The trainer has the client slot."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    options = tandem.EngineOptions(server=SERVER, grpc=address)
    envs = tandem.make_vec("HalfCheetah-v5", num_envs=2, engine=options)
    try:
        envs.reset(seed=0)
        with grpc.insecure_channel(address) as channel:
            assert Stubs(channel).mujoco_info().success
            with refused(grpc.StatusCode.FAILED_PRECONDITION, f"pid {os.getpid()}"):
                Stubs(channel).step(ZEROS)
    finally:
        envs.close()


def test_wrong_command_lines_exit_with_code_2() -> None:
    """And one line that says what was expected."""
    for flags in (
        [],
        ["--name=a/b"],
        ["--name=x", "--release_after=soon"],
        ["--name=x", "--listen=0.0.0.0:0"],
        ["--nonsense"],
    ):
        ended = subprocess.run([GATEWAY, *flags], capture_output=True, text=True, timeout=SECS, check=False)
        assert ended.returncode == 2 and "expected" in ended.stderr, (flags, ended)
