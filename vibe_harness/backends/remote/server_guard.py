"""Runs a server's command until its parent has gone: `python -I server_guard.py COMMAND...`.

The parent holds the other end of standard input. When that closes, be it because the parent wants so or because it was
killed, the command and all processes of its group are ended. Only the standard library is imported.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading

GRACE_S = 15.0  # between SIGTERM and SIGKILL


def main(command: list[str]) -> int:
    """Run the command. Returns its exit code; 128 and the signal's number where a signal ended it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # the parent is the one to say when to stop
    server = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, preexec_fn=_restore_signals)
    threading.Thread(target=_end_with_parent, args=(server,), daemon=True).start()
    code = server.wait()
    _signal(server, signal.SIGKILL)  # what it has left of its group
    return code if code >= 0 else 128 - code


def _restore_signals() -> None:
    """An ignored signal stays ignored in a new program."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def _end_with_parent(server: subprocess.Popen[bytes]) -> None:
    while os.read(0, 1):  # not sys.stdin, which the interpreter could not close at its end while it is being read
        pass
    _signal(server, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        server.wait(GRACE_S)
    _signal(server, signal.SIGKILL)


def _signal(server: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(server.pid, number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
