"""`failure`: an engine's exception as an error for the client. The binding calls it (engine_bindings/python_adaptor.h).

try:
    engine.step(envs, arrays)
except BaseException as error:
    code, text = failure(error, log=True, again=False)
"""

import contextlib
import sys
import traceback

from tandem.errors import EngineFailed, OutOfSharedMemory, TandemError

_last_logged = ""


def failure(error: BaseException, log: bool, again: bool) -> tuple[int, str]:
    """Returns the number of the error's class in the table, and its text: the last line of its traceback.

    A `TandemError` is an answer to a caller, such as `Unsupported`: its class and text are kept, and it is not logged.
    `log`: whether to write the traceback to standard error. `again`: whether the call before failed, too: equal
    tracebacks in a row are logged once.
    """
    if isinstance(error, TandemError) and error.code > 0:
        return error.code, _utf8(str(error))
    if log:
        _log("".join(traceback.format_exception(error)), again)
    code = OutOfSharedMemory.code if isinstance(error, MemoryError) else EngineFailed.code
    return code, _utf8("".join(traceback.format_exception_only(error)).strip())


def _utf8(text: str) -> str:
    """Returns the text with each lone surrogate as its escape, so that C++ can read it."""
    return text.encode("utf-8", "backslashreplace").decode()


def _log(text: str, again: bool) -> None:
    global _last_logged
    if again and text == _last_logged:
        return
    _last_logged = text
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):  # its reader has closed it, or the program has
            sys.stderr.write(text)
            sys.stderr.flush()
