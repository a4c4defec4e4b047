"""Do something later: one task and a heap for all deadlines of an executor."""

import heapq
import math
from collections.abc import Callable
from itertools import count

import trio

__all__ = ["Reminder", "Reminders"]


class Reminder:
    """Something that will be done, unless it is called off."""

    __slots__ = ("_action",)

    def __init__(self, action: Callable[[], None]) -> None:
        self._action: Callable[[], None] | None = action

    def call_off(self) -> None:
        """Do not do it; quiet when it was done already."""
        self._action = None

    def take(self) -> Callable[[], None] | None:
        """Take what is to be done, once."""
        action, self._action = self._action, None
        return action


class Reminders:
    """All deadlines of one executor, soonest first."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Reminder]] = []
        self._order = count()
        self._sleep = trio.CancelScope()

    def remind(self, after_s: float, action: Callable[[], None]) -> Reminder:
        """Do ``action`` after so many seconds."""
        reminder = Reminder(action)
        when_s = trio.current_time() + after_s
        heapq.heappush(self._heap, (when_s, next(self._order), reminder))
        self._sleep.deadline = min(self._sleep.deadline, when_s)
        return reminder

    async def run(self) -> None:
        """Do everything in its time, until cancelled."""
        while True:
            due = self._heap[0][0] if self._heap else math.inf
            with trio.CancelScope(deadline=due) as self._sleep:
                await trio.sleep_forever()
            while self._heap and self._heap[0][0] <= trio.current_time():
                action = heapq.heappop(self._heap)[2].take()
                if action is not None:
                    action()
