"""`how_it_ended`: a process's exit code as text, for error messages."""

import signal


def how_it_ended(code: int) -> str:
    """Returns text for an exit code; `subprocess` and `os.waitstatus_to_exitcode` have negative ones for signals.

    >>> how_it_ended(3), how_it_ended(-9)
    ('ended with exit code 3', 'was killed by SIGKILL')
    """
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:  # a real-time signal
        return f"was killed by signal {-code}"
