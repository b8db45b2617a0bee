"""Films the page's scene, for README: tools/bazel run //tools/docs_site:scene_animation -- $PWD/docs/scene.webp.

train_ars.py, until the robots run -> the last seconds, frozen and gone through by the page's slider -> an animation
"""

import base64
import contextlib
import io
import sys
import time
from pathlib import Path

import PIL.Image

import tandem
from tandem.testing.engines import start_python, unique_name
from tests.web.page_fixture import Page, running_view, wait_for
from tests.web.scene_samples import freeze, open_run_in_3d

_TRAINING = Path(__file__).parents[2] / "client_py/examples/train_ars.py"
_TRAINED_SECS, _SHOWN_MS, _FRAME_MS = 60, 4000, 100
_PACE = 0.5  # so slow that a browser which draws by software gets each snapshot
_SHOT = """
const [back, done] = arguments;
const slider = document.querySelector("input[type=range]");
slider.value = Number(slider.max) - back;
slider.dispatchEvent(new Event("input"));
setTimeout(() => {
  const { panel } = document.querySelector("canvas.scene");
  panel.draw(performance.now());
  done(panel.canvas.toDataURL().split(",")[1]);
}, 300); // until the answer has come
"""

name = unique_name()
training = start_python(_TRAINING, "--num_envs=16", "--seconds=3600", f"--watch={name}", "--out=/tmp")
frames = []
with contextlib.ExitStack() as ended, running_view() as view, contextlib.closing(Page(1280, 800)) as page:
    ended.callback(training.kill)
    time.sleep(_TRAINED_SECS)
    tandem.Attendant(name).scene.set_simulation_mode(tandem.services.SimulationMode.REALTIME, realtime_factor=_PACE)
    page.open(view.address)
    open_run_in_3d(page, name)
    wait_for(lambda: page.all("canvas.scene"), "a scene")
    page.click("article .open")
    time.sleep(1.5 * _SHOWN_MS / 1000 / _PACE)
    freeze(page)
    for at_ms in range(_SHOWN_MS, 0, -_FRAME_MS):
        png = base64.b64decode(page.driver.execute_async_script(_SHOT, at_ms / _PACE))
        frames.append(PIL.Image.open(io.BytesIO(png)).convert("RGB"))
frames[0].save(sys.argv[1], save_all=True, append_images=frames[1:], duration=_FRAME_MS, loop=0, quality=60, method=2)
