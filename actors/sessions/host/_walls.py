"""Limits that the operating system keeps for an engine process: best effort, and what holds is reported."""

import sys
from pathlib import Path
from typing import Final

_MIB: Final = 1024 * 1024
BEYOND_HEAP_BYTES: Final = 512 * _MIB
"""Room for array buffers, code and the engine itself, over the heap and what the process has at its start."""
_OPEN_FILES: Final = 64
_FILE_BYTES: Final = 16 * _MIB  # Not 0: deno keeps a cache of its own, and would be ended by a signal for it.


def confine(pid: int, heap_bytes: int) -> tuple[str, ...]:
    """Bound a process that is ready to run cells; returns the names of the limits that now hold."""
    if sys.platform != "linux":
        return ()
    import resource  # It exists on this platform only.

    limits = [
        ("core", resource.RLIMIT_CORE, 0),
        ("file size", resource.RLIMIT_FSIZE, _FILE_BYTES),
        ("open files", resource.RLIMIT_NOFILE, _OPEN_FILES),
    ]
    if (data := _data_bytes(pid)) is not None:
        limits.append(("data", resource.RLIMIT_DATA, data + heap_bytes + BEYOND_HEAP_BYTES))
    held: list[str] = []
    for name, kind, value in limits:
        try:
            resource.prlimit(pid, kind, (value, value))
        except (OSError, ValueError):
            continue
        held.append(name)
    return tuple(held)


def _data_bytes(pid: int) -> int | None:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    for line in status.splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    return None


def resident_bytes(pid: int) -> int:
    """Say how much memory a process takes now; 0 where that is not known."""
    try:
        with open(f"/proc/{pid}/statm", "rb") as statm:
            return int(statm.read().split()[1]) * 4096
    except OSError:
        return 0
