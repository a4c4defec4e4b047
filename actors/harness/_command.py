"""Running a command to its end: start, feed, collect, wait, and kill when it takes too long."""

import math
from typing import Final

import attrs
import trio

from actors.harness._errors import Failed, HarnessError, MayHaveRun, StdinUnavailable
from actors.harness._followed import output_lost
from actors.harness._groups import plainly
from actors.harness._process import Process, ProcessExit
from actors.harness._processes import StartingProcess
from actors.harness._wording import duration_text
from actors.protocol import OutputChunk, OutputGap, Stream, Survivor

OUTPUT_BYTES_MAX: Final = 64 * 1024 * 1024
"""How much output of a command is kept unless asked otherwise."""


LAST_WORDS_BYTES_MAX: Final = 500
"""How much of a failed command's standard error its own error shows."""


@attrs.frozen(kw_only=True)
class CompletedCommand:
    """A command that was run, and what came of it.

    Attributes:
        argv: Program and arguments.
        exit_code: 128 + n after signal n; None when the end was not seen before the limit.
        stdout: What it wrote to standard output, or to its terminal.
        stderr: What it wrote to standard error.
        left_out_bytes: Output beyond the limit that was not kept.
        drain_limited: A descendant still held the output when the executor stopped waiting for its end.
        survivors: Descendants left alive.
    """

    argv: tuple[str, ...]
    exit_code: int | None
    stdout: bytes
    stderr: bytes
    left_out_bytes: int = 0
    drain_limited: bool = False
    survivors: tuple[Survivor, ...] = ()

    @property
    def stdout_text(self) -> str:
        """Standard output as text."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def stderr_text(self) -> str:
        """Standard error as text."""
        return self.stderr.decode("utf-8", "replace")


def _last_words(stderr: bytes) -> str:
    """The end of what a command said on standard error, on one line; nothing if it said nothing."""
    told = stderr.rstrip()
    if not told:
        return ""
    # Decoded after it is cut: what is left of a character at the cut is shown as such.
    end = ascii(told[-LAST_WORDS_BYTES_MAX:].decode("utf-8", "replace"))
    left_out = len(told) - LAST_WORDS_BYTES_MAX
    return f"; its standard error ends with {end}" if left_out > 0 else f"; its standard error: {end}"


class CommandFailed(Failed):
    """A checked command ended with another exit code than 0; ``completed`` has all that it wrote."""

    def __init__(self, completed: CompletedCommand) -> None:
        said = _last_words(completed.stderr)
        super().__init__(f"{list(completed.argv)!r} ended with exit code {completed.exit_code}{said}")
        self.completed = completed


class CommandTimedOut(MayHaveRun, TimeoutError):
    """A command took too long; its group was told to die. Holds what it wrote until then."""

    def __init__(self, completed: CompletedCommand, timeout_s: float, *, killed: bool) -> None:
        end = "its process group was killed" if killed else "its executor did not confirm the kill"
        super().__init__(f"{list(completed.argv)!r} did not end within {duration_text(timeout_s)}; {end}")
        self.completed: CompletedCommand = completed
        self.timeout_s: float = timeout_s
        self.killed: bool = killed


class _Kept:
    """Output up to a limit, both streams together."""

    def __init__(self, bytes_max: int) -> None:
        self._room = bytes_max
        self._parts: dict[Stream, list[bytes]] = {stream: [] for stream in Stream}
        self.left_out_bytes = 0

    def add(self, chunk: OutputChunk) -> None:
        kept = chunk.chunk[: self._room]
        self._parts[chunk.stream].append(kept)
        self._room -= len(kept)
        self.left_out_bytes += len(chunk.chunk) - len(kept)

    def of(self, *streams: Stream) -> bytes:
        return b"".join(part for stream in streams for part in self._parts[stream])


async def run_command(
    starting: StartingProcess,
    argv: tuple[str, ...],
    *,
    stdin: bytes | None,
    timeout_s: float | None,
    drain_s: float,
    check: bool,
    output_bytes_max: int,
) -> CompletedCommand:
    """Carry a command to its end, or to its time limit."""
    kept = _Kept(output_bytes_max)
    ended: ProcessExit | None = None
    killed = False
    with trio.move_on_after(math.inf if timeout_s is None else timeout_s) as limit:
        async with starting as process:
            try:
                await _carry(process, kept, stdin)
            finally:
                if limit.cancel_called and process.exit is None:
                    killed = await _kill(process, kept, drain_s)
                ended = process.exit
    completed = CompletedCommand(
        argv=argv,
        exit_code=ended.code if ended else None,
        stdout=kept.of(Stream.STDOUT, Stream.PTY),
        stderr=kept.of(Stream.STDERR),
        left_out_bytes=kept.left_out_bytes,
        drain_limited=ended is not None and ended.drain_limited,
        survivors=ended.survivors if ended else (),
    )
    if limit.cancelled_caught:
        raise CommandTimedOut(completed, timeout_s or 0.0, killed=killed)
    if check and completed.exit_code != 0:
        raise CommandFailed(completed)
    return completed


async def _carry(process: Process, kept: _Kept, stdin: bytes | None) -> None:
    if stdin is None:
        await _collect(process, kept)
    else:
        with plainly():
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_feed, process, stdin)
                await _collect(process, kept)
                nursery.cancel_scope.cancel()
    await process.wait()


async def _feed(process: Process, data: bytes) -> None:
    try:
        await process.stdin.write(data)
        await process.stdin.aclose()
    except StdinUnavailable:
        pass  # It stopped reading, as a closed pipe would tell it: its exit code says whether that is a failure.


async def _collect(process: Process, kept: _Kept) -> None:
    async for piece in process.chunks():
        if isinstance(piece, OutputGap):
            raise output_lost(piece)
        kept.add(piece)


async def _kill(process: Process, kept: _Kept, drain_s: float) -> bool:
    """Kill the group and take what it wrote until then, within a bound; tell whether the kill was confirmed."""
    killed = False
    with trio.move_on_after(drain_s) as scope:
        scope.shield = True
        try:
            await process.terminate()
            killed = True
            await _collect(process, kept)
        except HarnessError:
            pass  # The time limit is what the caller hears of; `killed` says how it ended here.
    return killed
