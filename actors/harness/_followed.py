"""One process as a harness follows it: its backlog, who waits for it, and how following it ended."""

import trio

from actors.harness._backlog import Backlog, Skipped, Unread
from actors.harness._errors import HarnessError, OutputLost, ReaderBusy
from actors.harness._flow import ReadValve
from actors.harness._limits import HarnessLimits
from actors.protocol import OutputGap, ProcessEvent, ReadResult


class Followed:
    """A process, between the connection that brings its events and the task that reads them."""

    def __init__(self, process_id: str, *, limits: HarnessLimits, valve: ReadValve) -> None:
        self.process_id = process_id
        self.backlog: Backlog = Backlog(process_id, held_bytes_max=limits.held_bytes)
        self.started = False
        """The executor said that it runs."""
        self.failure: HarnessError | None = None
        """Why there is nothing more to follow, when it is not the process's own end."""
        self.refetching = False
        """Someone asks the executor for what is missing."""
        self._valve = valve
        self._unread_bytes_max = limits.unread_bytes
        self._counts_as_full = False
        self._reading = False
        self._has_reader = False
        self._lot = trio.lowlevel.ParkingLot()

    @property
    def over(self) -> bool:
        """Nothing more will come."""
        return self.backlog.closed is not None or self.failure is not None

    def accept(self, event: ProcessEvent) -> None:
        """Take one event; raises `EventRefused`."""
        if self.failure is None and self.backlog.accept(event):
            self._changed()

    def recover(self, answer: ReadResult) -> None:
        """Take the answer to a read after the last event that came; raises `RecoveryRefused`."""
        if self.failure is None and self.backlog.recover(answer):
            self._changed()

    def fail(self, error: HarnessError) -> None:
        """End following for a reason, unless the process has ended by itself."""
        if not self.over:
            self.failure = error
            self._changed()

    def stop_reading(self) -> None:
        """Want only the end from now on."""
        self.backlog.discard()
        self._has_reader = False
        self._changed()

    def forget(self) -> None:
        """Stop counting: nobody will read this output."""
        self._count_full(False)
        self._lot.unpark_all()

    async def take(self) -> Unread | None:
        """Give the next piece of output, or None at the end.

        Raises:
            HarnessError: Following ended without the process's own end, and all output that came was given.

        Cancelled:
            Nothing is lost: the next call gives it.
        """
        if self._reading:
            raise ReaderBusy(self.process_id)
        self._has_reader = self._reading = True
        try:
            await trio.lowlevel.checkpoint()
            while (unread := self.backlog.take()) is None:
                if self.backlog.closed is not None:
                    return None
                if self.failure is not None:
                    raise self.failure
                with self._valve.someone_waits():
                    await self._lot.park()
        finally:
            self._reading = False
        self._count_full(self.backlog.held_bytes > self._unread_bytes_max)
        return unread

    def put_back(self, skipped: Skipped, answer: ReadResult) -> None:
        """Put in the place of a skipped range what the executor still had."""
        self.backlog.put_back(skipped, answer)
        self._changed()

    async def wait_over(self) -> None:
        """Return when nothing more will come."""
        await trio.lowlevel.checkpoint()
        while not self.over:
            # With a reader it is the reader who decides how fast output is taken.
            if self._has_reader:
                await self._lot.park()
            else:
                with self._valve.someone_waits():
                    await self._lot.park()

    def _changed(self) -> None:
        self._count_full(self.backlog.held_bytes > self._unread_bytes_max)
        self._lot.unpark_all()

    def _count_full(self, is_full: bool) -> None:
        if is_full and not self._counts_as_full:
            self._valve.grew_full()
        elif self._counts_as_full and not is_full:
            self._valve.has_room()
        self._counts_as_full = is_full


def output_lost(gap: OutputGap) -> OutputLost:
    """Give the error for output that is gone."""
    return OutputLost(gap.process_id, gap.first_seq, gap.last_seq)
