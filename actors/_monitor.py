"""Be told once that an actor is gone for good."""

from typing import NoReturn, Self

import trio
from outcome import Error, Value
from trio.lowlevel import Abort, RaiseCancelT, Task, checkpoint, current_task, enable_ki_protection, reschedule

from actors._errors import InvalidOption, MonitorNotOpen, WaitsForItself
from actors._messages import Down
from actors._reference import Address, seat_behind

__all__ = ["Monitor", "monitor"]


def monitor(address: Address) -> "Monitor":
    """Watch an actor from `async with` on; its down notice comes exactly once, also if it is gone already.

    A restart is no end: the reference stays valid. Ask `supervision` for events to see restarts.

    Raises:
        InvalidOption: It is not a reference.
    """
    if not isinstance(address, Address):  # pyright: ignore[reportUnnecessaryIsInstance]  # Types can be evaded.
        raise InvalidOption("address", address, "it must be a reference to an actor, which spawn() gives")
    return Monitor(address)


class Monitor:
    """Wait for the down notice of one actor. Made by `monitor`; open as long as any block with it is.

    Cancelled:
        Whoever enters has not opened it, whoever waits only stops waiting.
    """

    __slots__ = ("_address", "_notice", "_opened", "_waiters")

    def __init__(self, address: Address) -> None:
        self._address = address
        self._opened = 0
        self._notice: Down | None = None
        self._waiters: dict[Task, None] = {}

    @property
    def notice(self) -> Down | None:
        """The notice, once it has come."""
        return self._notice

    @enable_ki_protection
    async def wait(self) -> Down:
        """Wait for the notice. Any number of tasks may wait, and waiting again gives the same one.

        Raises:
            MonitorNotOpen: Not inside the monitor's `async with`, or that was left: no notice will come.
            WaitsForItself: The watched actor itself waits here.

        Cancelled:
            Only the wait ends.
        """
        seat, task = seat_behind(self._address), current_task()
        if seat.task is task:
            raise WaitsForItself(seat.label, "waits for its own end", "call stop() and return")
        if self._notice is not None:
            await checkpoint()
            return self._notice
        if not self._opened:
            raise MonitorNotOpen(seat.label)
        self._waiters[task] = None

        def abort(_raise_cancel: RaiseCancelT) -> Abort:
            del self._waiters[task]
            return Abort.SUCCEEDED

        notice: Down = await trio.lowlevel.wait_task_rescheduled(abort)
        return notice

    def _notify(self, notice: Down) -> None:
        assert self._notice is None, "an actor ended twice"
        self._notice = notice
        waiters, self._waiters = self._waiters, {}
        for task in waiters:
            reschedule(task, Value(notice))

    async def __aenter__(self) -> Self:
        await checkpoint()
        self._opened += 1
        if self._opened == 1 and self._notice is None:
            seat_behind(self._address).watch(self._notify)
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._opened -= 1
        if self._opened:
            return
        seat = seat_behind(self._address)
        seat.unwatch(self._notify)
        waiters, self._waiters = self._waiters, {}
        for task in waiters:
            reschedule(task, Error(MonitorNotOpen(seat.label)))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _memo: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a monitor belongs to its run, and to no pickle: send the actor's name instead")
