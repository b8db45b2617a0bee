"""The page of tandem-view in Debian's headless Chromium, driven by selenium, and a real run to show."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

import tandem

# Debian's package python3-selenium is for the interpreter that the tests' virtual environment comes from.
sys.path.append("/usr/lib/python3/dist-packages")
from selenium import webdriver  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402

VIEW = Path(os.environ.get("TANDEM_VIEW", Path(__file__).parents[2] / "viz/web/tandem-view"))

# The limit of each wait. A page that needs more time hangs.
DEADLINE_SECS = 120.0

# Returns a number for the pixels of the first image.
_PIXELS = """
const canvas = document.querySelector("article .picture");
const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
const pixel = (i) => data[i] + 256 * data[i + 1] + 65536 * data[i + 2];
let sum = 0;
for (let i = 0; i < data.length; i += 4) sum = (sum * 31 + pixel(i)) % 4294967291;
return sum;
"""


def wait_for(is_so: Callable[[], Any], what: str) -> Any:
    """Waits until a function returns a true value, and returns that.

    Raises:
      AssertionError: It did not within DEADLINE_SECS.
    """
    deadline = time.monotonic() + DEADLINE_SECS
    while not (value := is_so()):
        assert time.monotonic() < deadline, f"expected {what} within {DEADLINE_SECS:g} s"
        time.sleep(0.02)
    return value


def pss_kib(pid: int) -> int:
    """Returns the memory of a process, its share of what it shares with others, in KiB."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    return int(rollup.split("\nPss:")[1].split()[0])


class View:
    """A running tandem-view.

    Attributes:
      address: The printed address, with its token if it has a port.
      process: The program.
    """

    def __init__(
        self, *flags: str, listen: str = "127.0.0.1:0", path: Path | None = None, before: Sequence[str] = ()
    ) -> None:
        """Starts it at a free port, without a daemon unless a flag names one.

        Args:
          flags: More flags.
          listen: Of --listen.
          path: Of --socket, in place of a port.
          before: Words before the program.
        """
        door = f"--socket={path}" if path else f"--listen={listen}"
        self.process = subprocess.Popen(
            [*before, VIEW, door, "--daemon_target=", *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        lines = [self.process.stdout.readline().strip() for _ in range(4 if path else 1)]
        self.address = lines[-1]
        expected = "http://localhost:8900/" if path else r"https?://[\w.]+:\d+/\?token=[0-9a-f]{32}"
        assert re.fullmatch(expected, self.address), lines

    def connect(self) -> socket.socket:
        """Connects to its port."""
        return socket.create_connection(("127.0.0.1", urlsplit(self.address).port or 0), timeout=DEADLINE_SECS)

    def end(self) -> str:
        """Ends the program by SIGTERM, and returns what it has logged."""
        self.process.terminate()
        _, log = self.process.communicate(timeout=DEADLINE_SECS)
        assert self.process.returncode == 0, log
        return log


@contextlib.contextmanager
def running_view(*flags: str, **options: Any) -> Iterator[View]:
    """Runs tandem-view, with the options of View; kills it after a failed test."""
    view = View(*flags, **options)
    try:
        yield view
        if view.process.poll() is None:
            view.end()
    finally:
        view.process.kill()
        view.process.wait()


class Trainer:
    """An engine with frames, and a thread that steps it with random actions.

    Attributes:
      client: The client; other threads may call its services.
      name: The region's name.
    """

    def __init__(self, name: str, task: str | None = "HalfCheetah-v5", **options: Any) -> None:
        """Starts both. `options` are those of launch_engine."""
        options = {"num_envs": 4, "frames": (160, 120), "flags": ("--wait=block",), **options}
        self._engine = tandem.launch_engine(task, name=name, **options)
        self.name = self._engine.name
        self.client = tandem.SharedMemoryClient(self.name, wait="block", timeout=DEADLINE_SECS)
        self.steps = 0
        self._over = False
        self._thread = threading.Thread(target=self._train)
        self._thread.start()

    def _train(self) -> None:
        rng = np.random.default_rng(0)
        try:
            self.client.reset(seed=0)
            while not self._over:
                actions = rng.uniform(-1, 1, (self.client.num_envs, self.client.act_size))
                self.client.step(actions.astype(np.float32))
                self.steps += 1
                time.sleep(0.005)  # leaves the cores to the browser
        except tandem.PeerGone:
            if not self._over:
                raise

    def kill_engine(self) -> None:
        """Kills the engine, which ends the training. The next trainer may have its name."""
        self._over = True
        os.kill(self._engine.pid, signal.SIGKILL)
        self.close()

    def close(self) -> None:
        """Ends the training and the engine."""
        self._over = True
        self._thread.join(DEADLINE_SECS)
        self.client.close()
        self._engine.close()


class Page:
    """The page in a browser.

    Attributes:
      driver: Selenium's.
    """

    def __init__(self, width: int = 1280, height: int = 900, *, accepts_any_certificate: bool = False) -> None:
        """Starts Chromium without a window."""
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for argument in (
            "--headless=new",
            "--no-sandbox",  # root has none
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--hide-scrollbars",
            f"--window-size={width},{height}",
        ):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        options.accept_insecure_certs = accepts_any_certificate
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)

    def open(self, address: str) -> None:
        """Opens an address, and waits until the page is connected. The page is dark, whatever the machine prefers.

        It shows images; tests/web/scene_samples.py, open_run_in_3d, shows scenes.
        """
        self.driver.get(address)
        wait_for(lambda: self.text("#link") == "connected", "a connected page")
        self.driver.execute_script("localStorage.setItem('dimension', 'images')")
        if self.theme() != "dark":
            self.press("t")

    def close(self) -> None:
        """Ends the browser."""
        self.driver.quit()

    def all(self, selector: str) -> list[Any]:
        """Returns all elements of a CSS selector."""
        return list(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def text(self, selector: str) -> str:
        """Returns the visible text of the first element; "" if there is none."""
        script = "return document.querySelector(arguments[0])?.innerText ?? ''"
        return str(self.driver.execute_script(script, selector))

    def click(self, selector: str) -> None:
        """Clicks the first element."""
        wait_for(lambda: self.all(selector), selector)[0].click()

    def click_at(self, selector: str, right: float, down: float) -> None:
        """Clicks the first element at a distance from its middle, in parts of its width and height."""
        element = wait_for(lambda: self.all(selector), selector)[0]
        size = element.size
        offset = (int(right * size["width"]), int(down * size["height"]))
        ActionChains(self.driver).move_to_element_with_offset(element, *offset).click().perform()

    def press(self, keys: str) -> None:
        """Presses keys in the page, outside of its fields."""
        self.driver.execute_script("document.activeElement.blur()")
        self.all("body")[0].send_keys(keys)

    def run_button(self, name: str) -> Any:
        """Returns the button of a run in the list; waits for it."""
        # One script: the list changes whenever a run of the machine begins or ends.
        script = """
        const buttons = [...document.querySelectorAll("#runs button")];
        return buttons.find((button) => button.innerText.includes(arguments[0])) ?? null;
        """
        return wait_for(lambda: self.driver.execute_script(script, name), f"the run {name} in the list")

    def open_run(self, name: str) -> None:
        """Opens a run, and waits for its first image."""
        self.run_button(name).click()
        wait_for(lambda: self.all("article .picture:not([hidden])"), "an image")

    def pixels(self) -> int:
        """Returns a number that the first image's pixels determine."""
        return int(self.driver.execute_script(_PIXELS))

    def step(self) -> int:
        """Returns the step of the first image."""
        script = "return Number(document.querySelector('article .picture').dataset.step)"
        return int(self.driver.execute_script(script))

    def theme(self) -> str:
        """Returns "dark" or "light"."""
        return str(self.driver.execute_script("return document.documentElement.dataset.theme"))

    def save_downloads_in(self, folder: Path) -> None:
        """Makes the browser save files in a folder, without a question."""
        arguments = {"behavior": "allow", "downloadPath": str(folder)}
        self.driver.execute_cdp_cmd("Browser.setDownloadBehavior", arguments)

    def set_size(self, width: int, height: int) -> None:
        """Sets the size of the page, also below the least size of a window."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )

    def save(self, name: str) -> None:
        """Saves a picture of the page in the folder of the test's outputs, if there is one."""
        if folder := os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR"):
            self.driver.save_screenshot(str(Path(folder) / f"{name}.png"))

    def errors(self) -> list[str]:
        """Returns what the page has reported on the console since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]
