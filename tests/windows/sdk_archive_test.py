"""The SDK's archive for Windows, and what the wheel has of it: a part of `tools/test --with windows`."""

import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np

import tandem

# Where tools/testing/with.sh has unpacked it, and has built an engine by the commands of its README.
(SDK,) = (Path(sys.executable).parents[1] / "archive").glob("*/")


def test_an_engine_in_c_built_from_it_serves_steps() -> None:
    """launch_engine starts it and ends it."""
    with (
        tandem.launch_engine(server=SDK / "engine.exe", num_envs=3) as engine,
        tandem.SharedMemoryClient(engine.name) as client,
    ):
        client.reset(seed=1)
        for _ in range(10):
            obs, rewards, *_ = client.step(np.zeros_like(client.actions))
        assert np.isfinite(obs).all()
        assert rewards.shape == (3,)


def test_has_all_that_its_readme_names() -> None:
    """And the library twice: for C#, under the name that Tandem.dll looks for."""
    files = {path.relative_to(SDK).as_posix() for path in SDK.rglob("*") if path.is_file()}
    assert {"include/tandem.h", "include/tandem.hpp", "lib/libtandem.dll.a", "lib/tandem.def", "LICENSE"} <= files
    assert {"csharp/Tandem.dll", "share/tandem/hazel_rpc.fbs", "docs/lrbc_v1.txt"} <= files
    library = (SDK / "lib/libtandem-1.dll").read_bytes()
    assert (SDK / "csharp/libtandem.so.1.dll").read_bytes() == library
    assert not [path for path in files if path.endswith((".so", ".so.1", ".nupkg"))]


def test_the_wheel_names_its_header_and_library() -> None:
    """`python -m tandem.sdk --cflags --libs`; CMake's files are of Linux."""
    command = [sys.executable, "-m", "tandem.sdk"]
    named = subprocess.run([*command, "--cflags", "--libs"], capture_output=True, text=True, check=True)
    words = shlex.split(named.stdout)
    assert Path(words[0].removeprefix("-I"), "tandem.h").exists()
    assert [Path(word).name for word in words[1:]] == ["libtandem.dll.a"]
    refused = subprocess.run([*command, "--cmake"], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "found none" in refused.stderr
