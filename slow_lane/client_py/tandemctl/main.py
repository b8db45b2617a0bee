"""The program `tandemctl`: from the command line to its exit code."""

import contextlib
import os
import signal
import sys

from tandemctl.command_line import ExitCode, WrongUsage, parse
from tandemctl.output import WATCH_SIGNALS, Failed, check_standard_files, complain, show
from tandemctl.part_file import remove_on_signals


def main() -> None:
    """Runs the command of sys.argv, and exits with an `ExitCode`."""
    # All output is written: `show` has no buffer. A normal exit waits for gRPC's threads and was seen to hang there.
    os._exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Runs a command line, prints its error if it fails, and returns an `ExitCode`."""
    # As of other programs: a signal ends this process. Python would print a traceback.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return _run(arguments)
    except (Failed, WrongUsage) as error:
        complain(_printable(str(error)))
        return ExitCode.FAILED if isinstance(error, Failed) else ExitCode.WRONG_USAGE


def _run(arguments: list[str]) -> int:
    check_standard_files()
    _enter_callers_folder()
    options = parse(arguments, os.environ.get("TANDEM_DAEMON", ""))
    if options.help:
        show(options.help)
        return ExitCode.DONE
    # Before an import starts a thread.
    if options.command == "watch" or getattr(options, "watch", False):
        signal.pthread_sigmask(signal.SIG_BLOCK, WATCH_SIGNALS)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    elif options.command == "export":
        remove_on_signals()
    try:
        from tandemctl import commands

        return commands.run(options)
    except ModuleNotFoundError as error:
        packages = "pip install grpcio protobuf rich"
        raise Failed(
            f"expected the packages of tandem-shm[telemetry], found no module {error.name}\nNext: {packages}"
        ) from error


def _printable(text: str) -> str:
    """A message may repeat what a command line, a daemon or a run says."""
    if text.replace("\n", "").isprintable() and text.isascii():
        return text
    from tandem.printable import printable_lines

    return printable_lines(text)


def _enter_callers_folder() -> None:
    """Makes relative paths the caller's: `bazel run` starts a program among its own files."""
    folder = os.environ.get("BUILD_WORKING_DIRECTORY")
    with contextlib.suppress(FileNotFoundError):
        if folder and ".runfiles/" in os.getcwd():
            os.chdir(folder)
