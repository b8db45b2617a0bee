"""The memory of tandem-view stays constant while 200 runs come and go, watched by a page.

By hand: bazel test //tests/web:memory_test --test_output=all --test_arg=-s. It takes 70 minutes;
--test_env=MINUTES=4 shortens it.
"""

import os
import statistics
import time

import numpy as np

import tandem
from tandem.testing.engines import unique_name
from tests.web.page_fixture import pss_kib, running_view
from tests.web.socket_client import SocketClient, cookie_of

_SECS = 60 * float(os.environ.get("MINUTES", "70"))
_WARM_UP_SECS = _SECS / 7  # ten minutes of seventy
_RUNS = 200
_AT_ONCE = 8
_HZ = 20.0
_LARGEST_GROWTH_KIB = 5_000  # 5 MB
_SAMPLES = 50


class _Run:
    """A run with frames, which the page watches."""

    def __init__(self, client: SocketClient, view: int) -> None:
        self.name = unique_name()
        self._client, self._view, self._steps = client, view, 0
        self._writer = tandem.fastlane.FastLaneWriter.create(
            self.name, tandem.fastlane.FastLaneConfig(width=160, height=120, capacity=8)
        )
        self._frame = np.random.default_rng(view).integers(0, 255, (120, 160, 3), np.uint8)
        client.send(do="watch", view=view, run=self.name, width=160)
        client.send(do="panel", region=self.name)

    def publish(self) -> None:
        """Publishes another image."""
        self._steps += 1
        self._frame = np.roll(self._frame, 1, axis=1)
        metrics = tandem.fastlane.FastLaneMetrics(1.0, float(self._steps), _HZ)
        self._writer.publish(self._frame, metrics=metrics, metadata=b'{"step":%d}' % self._steps)

    def close(self) -> None:
        """Ends the run; the page closes its tile."""
        self._writer.close()
        self._client.send(do="unwatch", view=self._view)


def test_memory_stays_constant() -> None:
    """The median at the end is at most 5 MB above that after the warm-up."""
    with running_view() as view:
        client = SocketClient(view.address, cookie_of(view.address))
        runs: list[_Run] = []
        begun, samples, begin = 0, [], time.monotonic()
        while (passed := time.monotonic() - begin) < _SECS:
            if passed >= begun * _SECS / _RUNS:
                begun += 1
                runs.append(_Run(client, begun))
                if len(runs) > _AT_ONCE:
                    runs.pop(0).close()
            for run in runs:
                run.publish()
            assert client.take()
            samples.append((passed, pss_kib(view.process.pid)))
            time.sleep(1 / _HZ)
        warm = statistics.median(kib for at, kib in samples if abs(at - _WARM_UP_SECS) < _SECS / _SAMPLES)
        end = statistics.median(kib for at, kib in samples if at > _SECS - _SECS / _SAMPLES)
        print(f"\n{begun} runs in {_SECS / 60:g} min, {client.pictures} pictures: PSS {warm} KiB, then {end} KiB")
        assert end - warm < _LARGEST_GROWTH_KIB
        for run in runs:
            run.close()
        client.close()
