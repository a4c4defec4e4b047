"""Read the system's table of processes (Linux), to find who outlived the group they came from.

Knows ``/proc``. Does not decide what happens to those it finds. Where there is no ``/proc`` it finds nobody, and
says so by :data:`CAN_READ`.
"""

import contextlib
import errno
import os
import signal
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import attrs
import trio

from actors.executor._launching import Sighting
from actors.executor._threads import NoThread, in_thread

__all__ = [
    "CAN_READ",
    "Entry",
    "SharedTable",
    "kill_exactly",
    "look_until_it_can",
    "read_table",
    "relatives_of",
    "writers_of",
]

T = TypeVar("T")

# We ourselves can open nothing at the moment: not a word about what is to be read.
_SHORT = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_RETRY_S = 0.02

CAN_READ = os.path.isdir("/proc/self/fd")
"""Whether this system shows its processes under ``/proc``."""


@attrs.frozen
class Entry:
    """One line of the table."""

    pid: int
    """Its number."""
    name: str
    """Short name of its program."""
    state: str
    """One letter, Z for a zombie."""
    parent: int
    """Number of its parent."""
    group: int
    """Its process group."""
    session: int
    """Its session."""
    started_ticks: int
    """When it started."""

    @property
    def alive(self) -> bool:
        """Whether it can still do something."""
        return self.state not in {"Z", "X", "x"}

    def as_sighting(self) -> Sighting:
        """Tell who it is."""
        return Sighting(pid=self.pid, name=self.name, started_ticks=self.started_ticks, group=self.group)


def read_table() -> dict[int, Entry]:
    """Read every process this user may see; about 15 us each.

    Raises:
        OSError: We have no descriptor left to read it with.
    """
    if not CAN_READ:
        return {}
    entries = (_read_entry(name) for name in os.listdir("/proc") if name.isdigit())
    return {entry.pid: entry for entry in entries if entry is not None}


def _read_entry(pid: str) -> Entry | None:
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            line = file.read(4096)
    except OSError as error:
        if error.errno in _SHORT:
            raise
        return None  # It ended while we looked.
    # The name may hold spaces and parentheses: it ends at the last one.
    head, _, tail = line.rpartition(b")")
    name = head.partition(b"(")[2].decode(errors="replace")
    fields = tail.split()
    return Entry(int(pid), name, fields[0].decode(), int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def relatives_of(leader: int, table: Mapping[int, Entry]) -> dict[int, Entry]:
    """Find the living members of a leader's group and session, and all descendants of any of these."""
    children: dict[int, list[Entry]] = {}
    for entry in table.values():
        children.setdefault(entry.parent, []).append(entry)
    found: dict[int, Entry] = {}
    ahead = [e for e in table.values() if leader in {e.group, e.session, e.parent}]
    while ahead:
        entry = ahead.pop()
        if entry.pid not in found and entry.pid != leader:
            found[entry.pid] = entry
            ahead.extend(children.get(entry.pid, ()))
    return {pid: entry for pid, entry in found.items() if entry.alive}


def writers_of(pipes: Iterable[str], table: Mapping[int, Entry]) -> dict[int, Entry]:
    """Find who holds a writing end of one of these pipes (names as ``/proc`` shows them: ``pipe:[123]``)."""
    wanted = frozenset(pipes)
    me = os.getpid()
    return {
        pid: entry
        for pid, entry in table.items()
        if wanted and pid != me and entry.alive and _holds_a_writing_end(pid, wanted)
    }


def _holds_a_writing_end(pid: int, wanted: frozenset[str]) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        numbers = os.listdir(folder)
    except OSError as error:
        if error.errno in _SHORT:
            raise
        return False  # Not ours to look into, or gone.
    else:
        for number in numbers:
            with contextlib.suppress(OSError):
                path = f"{folder}/{number}"
                # A child of ours that has not yet executed its program still holds our *reading* ends.
                if os.readlink(path) in wanted and os.lstat(path).st_mode & 0o200:
                    return True
    return False


def kill_exactly(sighted: Sighting, number: int = signal.SIGKILL) -> bool:
    """Send a signal to the process that was seen, and to no other that has its number by now."""
    try:
        handle = os.pidfd_open(sighted.pid)
    except (OSError, AttributeError):
        return False
    try:
        # The handle is fixed to one process; if the start time agrees after it was opened, it is the one we saw.
        entry = _read_entry(str(sighted.pid))
        if entry is None or entry.started_ticks != sighted.started_ticks or not entry.alive:
            return False
        signal.pidfd_send_signal(handle, number)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


class SharedTable:
    """One reading of the table for all who asked while the last one was being made."""

    def __init__(self, read: Callable[[], dict[int, Entry]] = read_table) -> None:
        self._read = read
        self._lock = trio.Lock()
        self._latest: tuple[int, dict[int, Entry]] = (0, {})
        self._asked = 0
        self.readings = 0

    async def fresh(self) -> dict[int, Entry]:
        """Return a table that was begun after this call; while the system has no descriptor for that, wait for it.

        Cancelled:
            The reading goes on in its thread and its result is dropped.
        """
        self._asked += 1
        mine = self._asked
        async with self._lock:
            if self._latest[0] < mine:
                covers = self._asked
                self.readings += 1
                table = await look_until_it_can(self._read)
                self._latest = (covers, table)
            return self._latest[1]


async def look_until_it_can(look: Callable[[], T]) -> T:
    """Look at the system in a thread; again while it has no descriptor for that.

    Cancelled:
        A look goes on in its thread and what it finds is dropped.
    """
    while True:
        try:
            try:
                return await in_thread(look, abandon_on_cancel=True)
            except NoThread:  # It holds everybody up for some milliseconds, but whom it looks for is to be killed.
                return look()
        except OSError:
            await trio.sleep(_RETRY_S)
