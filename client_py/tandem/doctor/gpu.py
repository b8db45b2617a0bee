"""Checks of GPUs: the driver, the devices, and the paths that regions offer."""

import json
import os

from tandem.doctor.child import run_python
from tandem.doctor.finding import Findings, ok, warn
from tandem.regions import own_regions


def check_gpu() -> Findings:
    """Can tensors be on a GPU, and which path do the regions offer?"""
    about = "GPU"
    outcome = run_python("-m", "tandem.doctor.probes", "gpu", *own_regions())
    if outcome.trouble:
        yield warn(about, f"unknown: {outcome.trouble}", "fix the failures of the extension")
        return
    found = json.loads(outcome.output)
    for name, path in found["paths"].items():
        yield ok("GPU path", f"region {name}: {path or 'none, the engine writes in the region only'}")
    for name, error in found["path_errors"].items():
        yield warn("GPU path", f"region {name}: {error}", "as the text says")
    if "error" not in found:
        devices = ", ".join(f"{number} {name} ({uuid})" for number, name, uuid in found["devices"])
        yield ok(about, f"CUDA driver {found['version']} ({found['library']}): {devices}")
    elif found["error"] == "GpuDriverMissing" and os.environ.get("TANDEM_CUDA") != "require":
        yield ok(about, f"none: {found['text']}")
    else:
        yield warn(about, f"{found['error']}: {found['text']}", "as the text says; without a GPU Tandem runs, too")
