"""Names of engines by process id, waits for them, and their warnings."""

import os
import uuid
from contextlib import closing
from pathlib import Path

import pytest

import tandem
from tandem._native import check_region_name
from tandem.engine.default_name import default_name


def test_the_process_id_stands_in_the_name_and_finds_the_engine() -> None:
    """A client attaches by the pid alone, or by the name with its placeholder; an unknown pid is not ready."""
    name = f"names_test_{uuid.uuid4().hex}_{{pid}}"
    with tandem.launch_engine("CartPole-v1", name=name) as engine:
        assert engine.name == name.replace("{pid}", str(engine.pid))
        for arguments in ((None,), (name,)):
            with tandem.SharedMemoryClient(*arguments, pid=engine.pid) as client:
                assert (client.name, client.engine_pid) == (engine.name, engine.pid)
        with tandem.Attendant(pid=engine.pid) as attendant:
            assert attendant.name == engine.name
        with pytest.raises(tandem.InvalidArgument, match="expected none beside pid"):
            tandem.SharedMemoryClient("demo", pid=engine.pid)
        with pytest.raises(tandem.InvalidArgument, match="expected the engine's process id"):
            tandem.SharedMemoryClient(name)
    with pytest.raises(tandem.NotReady, match=f"process {engine.pid} serves, found none in 0.1 s"):
        tandem.SharedMemoryClient(pid=engine.pid, attach_timeout=0.1)


def test_a_process_id_of_another_namespace_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """A region whose engine has this process's id in a PID namespace of its own is not this process's region."""
    with tandem.launch_engine("CartPole-v1"):
        monkeypatch.setattr("tandem._native.engine_pid", lambda region: os.getpid())
        with pytest.raises(tandem.NotReady, match=f"process {os.getpid()} serves, found none"):
            tandem.SharedMemoryClient(pid=os.getpid(), attach_timeout=0.1)


def test_a_time_out_of_an_attach_says_how_long_it_waited() -> None:
    """The error of a name that no engine serves ends with the seconds."""
    with pytest.raises(tandem.NotReady, match=r"; waited 0\.[12]\d* s"):
        tandem.SharedMemoryClient(f"names_test_{uuid.uuid4().hex}", attach_timeout=0.1)


def test_warnings_of_the_engine_reach_python(tmp_path: Path) -> None:
    """A model with keyframes that starts in none of them, with a joint out of its range."""
    path = tmp_path / "arm.xml"
    path.write_text(
        '<mujoco><worldbody><body><joint name="knee" axis="0 1 0" range="20 90" limited="true"/>'
        '<geom size=".1"/></body>'
        '</worldbody><actuator><motor joint="knee"/></actuator>'
        '<keyframe><key name="home" qpos="1"/></keyframe></mujoco>'
    )
    with pytest.warns(UserWarning) as warned, closing(tandem.make_vec(model=path, num_envs=2)) as envs:
        envs.reset(seed=0)
    assert ["home" in str(warned[0].message), "knee at 0" in str(warned[1].message)] == [True, True]
    with closing(tandem.make_vec(model=path, num_envs=2, keyframe="home")) as envs:
        assert envs.reset(seed=0)[0][:, 0].tolist() == [1, 1]


def test_a_new_name_leads_with_the_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a region's name whatever the script is called, and another one each time."""
    for script, lead in (("/x/train ppo.py", "train_ppo-"), ("-c", "c-"), ("", "tandem-"), ("ü" * 99, "tandem-")):
        monkeypatch.setattr("sys.argv", [script])
        assert default_name().startswith(f"{lead}{os.getpid()}-") and default_name() != default_name()
    monkeypatch.setattr("sys.argv", ["a" * 300])
    check_region_name(default_name())


def test_engines_of_a_job_have_frames_if_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the variables of the daemon alone; a program's own choice is stronger."""
    for variable, asks in (("", False), ("off", False), ("grid", True)):
        monkeypatch.setenv("TANDEM_RUN_ID", "job")
        monkeypatch.setenv("MOSAIC_FASTLANE_VIDEO_MODE", variable or "off")
        with closing(tandem.make_vec("CartPole-v1", 2)) as envs:
            assert envs.client.has_frames == asks
    monkeypatch.delenv("TANDEM_RUN_ID")
    with closing(tandem.make_vec("CartPole-v1", 2)) as envs:
        assert not envs.client.has_frames
