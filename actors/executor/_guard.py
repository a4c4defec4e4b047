"""Kill what we started when we ourselves are killed without a chance to do it.

A parent-death signal would be the system's own means, but it is tied to the *thread* that started the child, which may
be one that retires; setting it also needs code between fork and exec, which is unsafe beside threads. So one small
shell, in a session of its own, reads from a pipe that only we hold. The end of that pipe is our death: it then kills
every group it was told of and not told to forget, and everyone who was left running by a command that has ended: these
by their number and their start, since the number of an empty group may be somebody else's. Until they were looked for,
their group is watched: its number stays its own while it has members, and is passed over if there is a process with
that number again. See ``test_processes_die_with_an_executor_that_is_killed``.

A child has no number before it is started, so before that the guard is told of its output pipe. A child holds our
end of the guard's pipe until it executes its program, so when the guard sees the end, the child has its output pipe
and is found by it (where there is ``/proc``). A wrapper that waits until it is watched would cost a second program.
"""

import contextlib
import os
import signal
import subprocess
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import trio

from actors.executor._launching import Sighting

__all__ = ["Guard", "open_guard"]

LEFT_MAX: Final = 4096
"""So many of those that were left running are watched; of more, the newest."""

# A program's name, the second field of its line, may hold anything: the fields behind it are counted from its end.
_SCRIPT = """
set -f
trap '' HUP INT QUIT TERM
live=' ' orphans=' ' left=' ' starting=
look_at() {
  line=''
  while read -r part; do line="$line $part"; done <"/proc/$1/stat"
  set -- ${line##*) }
  group=$3 start=${20}
}
while read -r sign what; do
  case "$sign" in
    '?') starting=$what ;;
    +) live="$live$what " starting= ;;
    -|'~')
      case "$live" in *" $what "*) live="${live%% $what *} ${live#* $what }" ;; esac
      case "$orphans" in *" $what "*) orphans="${orphans%% $what *} ${orphans#* $what }" ;; esac
      [ "$sign" = - ] || orphans="$orphans$what " ;;
    =) left="$left$what " ;;
    /) case "$left" in *" $what "*) left="${left%% $what *} ${left#* $what }" ;; esac ;;
  esac
done
for group in $live; do kill -s KILL -- "-$group"; done
for group in $orphans; do kill -s 0 "$group" || kill -s KILL -- "-$group"; done
for one in $left; do
  look_at "${one%:*}"
  [ "$start" = "${one#*:}" ] && kill -s KILL "${one%:*}"
done
[ "$starting" ] || exit
set +f
ls -l /proc/[0-9]*/fd/[12] | while read -r held; do
  case "$held" in *" -> $starting")
    held=${held##*/proc/}
    look_at "${held%%/*}"
    [ "$group" ] && kill -s KILL -- "-$group" ;;
  esac
done
"""


class Guard:
    """Knows which process groups must not outlive us."""

    def __init__(self, pipe: int) -> None:
        self._pipe: int | None = pipe
        self._left: deque[str] = deque()
        self.lost: bool = False
        """Whether the guard itself is gone; groups then outlive us if we are killed."""

    def expect(self, output: str) -> None:
        """A process that writes to this pipe is about to start, one at a time: kill it when we die before `watch`."""
        self._tell(f"? {output}\n")

    def watch(self, group: int) -> None:
        """Kill this group when we die."""
        self._tell(f"+ {group}\n")

    def forget(self, group: int) -> None:
        """This group ended; its number may soon be somebody else's."""
        self._tell(f"- {group}\n")

    def orphan(self, group: int) -> None:
        """The leader of this group ended and others did not: kill them when we die, until they were looked for."""
        self._tell(f"~ {group}\n")

    def watch_left(self, sighted: Sighting) -> None:
        """Kill exactly this process when we die; of those whose command has ended."""
        self._left.append(f"{sighted.pid}:{sighted.started_ticks}")
        self._tell(f"= {self._left[-1]}\n")
        if len(self._left) > LEFT_MAX:
            self._tell(f"/ {self._left.popleft()}\n")

    def _tell(self, line: str) -> None:
        if self._pipe is None or self.lost:
            return
        try:
            os.write(self._pipe, line.encode())
        except OSError:  # It was killed, or stopped until its pipe was full. Nothing that runs suffers.
            self.lost = True

    def release(self) -> None:
        """Let the guard go; what it still watches is killed."""
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None


@asynccontextmanager
async def open_guard() -> AsyncGenerator[Guard, None]:
    """Keep a guard for the duration of a block."""
    reading, writing = os.pipe()
    try:
        os.set_blocking(writing, False)
        process = await trio.lowlevel.open_process(
            ["/bin/sh", "-c", _SCRIPT],
            stdin=reading,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
            env={},
        )
    except BaseException:
        os.close(writing)
        raise
    finally:
        os.close(reading)
    guard = Guard(writing)
    try:
        yield guard
    finally:
        guard.release()
        with trio.move_on_after(2.0, shield=True) as waiting:
            await process.wait()
        if waiting.cancelled_caught:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
            process.poll()
