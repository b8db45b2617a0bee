"""A /dev/shm of a test's own, as small or full as it wants it."""

import subprocess

import pytest


def with_shared_memory(options: str) -> tuple[str, ...]:
    """Makes the start of a command that has a /dev/shm of its own; skips the test where that cannot be.

    Args:
      options: Of mount, such as "-o size=64m".

    Returns:
      The words before the command.
    """
    script = f'mount -t tmpfs {options} none /dev/shm && exec "$@"'
    command = ("unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh")
    if subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("this machine does not let its user mount a tmpfs in a namespace of their own (unshare, mount)")
    return command
