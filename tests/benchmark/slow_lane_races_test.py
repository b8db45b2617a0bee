"""ThreadSanitizer's reports that count. The samples are shortened real reports."""

from pathlib import Path

import pytest

from tests.benchmark.slow_lane_races import races_in, races_of
from tools.testing import pytest_main

_OURS = "    #0 tandem::slow_lane::Run::Write() /proc/self/cwd/slow_lane/daemon/stream_calls.h:93:37 (t+0x1)"
_HEADER = "    #0 operator() /usr/bin/../lib/gcc/x86_64-linux-gnu/12/../../include/c++/12/bits/move.h:5:9 (t+0x1)"
_FREE = "    #0 free <null> (tandem-daemon+0xdddd4) (BuildId: 5759)"
_GRPC = "    #1 grpc_core::Combiner::Run(grpc_closure*) <null> (tandem-daemon+0x30) (BuildId: 5759)"
_GRPC_HEADER = "    #0 grpc::internal::Call::call() /proc/self/cwd/external/grpc/include/call.h:70:36 (t+0x1)"
_PROTOBUF = "    #1 tandem::slow_lane::v1::Hello::Clear() /proc/self/cwd/schema/protos/slow_lane.pb.cc:1:2 (t+0x2)"
_CALLER = "    #1 tandem::slow_lane::ProxyCall::OnRead(bool) /proc/self/cwd/slow_lane/daemon/proxy_call.cc:94:3 (t+0x1)"


def _race(here: str, there: str) -> str:
    line = "=" * 18
    return (
        f"{line}\nWARNING: ThreadSanitizer: data race (pid=1)\n  Read of size 8 at 0x7b by thread T11:\n{here}\n\n"
        f"  Previous write of size 8 at 0x7b by thread T12 (mutexes: write M0):\n{there}\n\n"
        f"  Location is heap block of size 2103 allocated by thread T12:\n    #0 malloc <null> (t+0x1)\n\n"
        f"SUMMARY: ThreadSanitizer: data race somewhere\n{line}\n"
    )


@pytest.mark.parametrize(
    "here", [_OURS, f"{_HEADER}\n{_CALLER}", f"{_FREE}\n{_CALLER}", "    [failed to restore the stack]"]
)
def test_races_of_our_own_code_count(here: str) -> None:
    """Also if the access is in std or in the sanitizer's functions, called by Tandem's code."""
    assert len(races_of(_race(here, _OURS) + _race(_OURS, here))) == 2


@pytest.mark.parametrize(
    "there", [f"{_FREE}\n{_GRPC}\n{_CALLER}", f"{_GRPC_HEADER}\n{_CALLER}", f"{_HEADER}\n{_PROTOBUF}\n{_CALLER}"]
)
def test_races_with_a_library_do_not_count(there: str) -> None:
    """Also if Tandem's code is among the library's callers."""
    assert races_of(_race(_OURS, there) + _race(there, _OURS)) == []


def test_other_kinds_count(tmp_path: Path) -> None:
    """Reports of other kinds count for any code; all files of the folder are read."""
    line = "=" * 18
    text = f"{line}\nWARNING: ThreadSanitizer: lock-order-inversion (pid=1)\n{_GRPC}\n{line}\n"
    (tmp_path / "of.1").write_text(text, "utf-8")
    (tmp_path / "of.2").write_text(_race(_OURS, _OURS), "utf-8")
    assert len(races_in(tmp_path)) == 2


if __name__ == "__main__":
    pytest_main.run(__file__)
