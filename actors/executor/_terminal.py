"""Pseudo terminals: open one of a given size, and start a program as the leader of a session that has it.

Making a terminal the controlling one needs a step between fork and exec. That step cannot be Python in our own
forked image (unsafe beside threads), so a fresh interpreter takes it and then becomes the program; about 15 ms,
only with a terminal.
"""

import fcntl
import os
import shutil
import struct
import sys
import termios

from actors.executor._errors import SpawnFailed
from actors.executor._launching import LaunchSpec, Terminal

__all__ = ["open_terminal", "terminal_command"]

# The interpreter may set LC_CTYPE for itself (PEP 538); the program gets what was asked for.
_BECOME = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
given, program, *argv = map(os.fsencode, sys.argv[1:])
variables = {**os.environb}
variables.pop(b"LC_CTYPE", None)
if given:
    variables[b"LC_CTYPE"] = given[1:]
try:
    os.execvpe(program, argv, variables)
except OSError as error:
    sys.exit(f"{sys.argv[2]}: {error.strerror}")
"""


def open_terminal(size: Terminal) -> tuple[int, int]:
    """Open a pseudo terminal; our end and the program's end.

    Raises:
        OSError: The system has none to give; nothing is open.
    """
    controller, child = os.openpty()
    try:
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.columns, 0, 0))
    except OSError:
        os.close(controller)
        os.close(child)
        raise
    return controller, child


def terminal_command(spec: LaunchSpec) -> tuple[str, ...]:
    """Build the command that takes the terminal and then becomes the program.

    Raises:
        SpawnFailed: There is no such program; found out here, because later only the terminal would tell.
    """
    program = spec.argv[0]
    _refuse_missing(program, spec)
    given = f"={spec.variables['LC_CTYPE']}" if "LC_CTYPE" in spec.variables else ""
    argv = (spec.arg0 if spec.arg0 is not None else program, *spec.argv[1:])
    return (sys.executable, "-I", "-S", "-c", _BECOME, given, program, *argv)


def _refuse_missing(program: str, spec: LaunchSpec) -> None:
    if not os.path.isdir(spec.cwd):
        return  # The launch itself says what is wrong with the folder.
    path = os.path.join(spec.cwd, program) if "/" in program else program
    search = spec.variables.get("PATH", os.defpath)
    if shutil.which(path, path=search) is None:
        present = "/" in program and os.path.exists(path)
        kind = PermissionError(13, "", program) if present else FileNotFoundError(2, "", program)
        raise SpawnFailed.from_os_error(kind)
