"""A /dev/shm of a given size and state for one command."""

import subprocess

import pytest


def with_shared_memory(options: str) -> tuple[str, ...]:
    """Returns the prefix of a command that gives it its own /dev/shm; skips the test where mount is not permitted.

    Args:
      options: Options of mount, such as "-o size=64m".

    Returns:
      The words to put before the command.
    """
    script = f'mount -t tmpfs {options} none /dev/shm && exec "$@"'
    command = ("unshare", "--mount", "--map-root-user", "sh", "-c", script, "sh")
    if subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("this machine does not let its user mount a tmpfs in a namespace of their own (unshare, mount)")
    return command
