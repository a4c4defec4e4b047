"""Children that do what a test tells them, and a log of what they did."""

from collections import Counter
from typing import Any

import trio
import trio.testing

import supervision as sv


class Boom(Exception):
    """What a child raises when a test wants a crash."""


class NotYet(Exception):
    """What a child raises when a test wants its start to fail."""


class Stage:
    """Makes children by name, ends them by name, and keeps the exact order of what happened."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.failing: Counter[str] = Counter()
        self.starts: Counter[str] = Counter()
        self._ends: dict[str, tuple[trio.Event, list[BaseException | None]]] = {}

    def spec(self, name: str, *, deaf: bool = False, clean_up_s: float = 0.0, **options: Any) -> sv.ChildSpec:
        """Make a child; ``deaf`` ignores being asked, ``clean_up_s`` is how long it takes to obey."""
        return sv.ChildSpec(name, self._play, name, deaf, clean_up_s, **options)

    def end(self, name: str, error: BaseException | None = None) -> None:
        """End a running child: raise this in it, or let it return."""
        event, errors = self._ends[name]
        errors.append(error)
        event.set()

    def crash(self, name: str) -> Boom:
        boom = Boom(name)
        self.end(name, boom)
        return boom

    def since(self) -> list[str]:
        """Return what was logged since the last call."""
        log, self.log = self.log, []
        return log

    async def _play(self, name: str, deaf: bool, clean_up_s: float, *, task_status: sv.ChildStatus[int]) -> None:
        if self.failing[name]:
            self.failing[name] -= 1
            self.log.append(f"{name} fails to start")
            raise NotYet(name)
        event, errors = self._ends[name] = (trio.Event(), [])
        self.starts[name] += 1
        self.log.append(f"{name} starts")
        task_status.started(self.starts[name])
        if deaf:
            task_status.on_stop(lambda: self.log.append(f"{name} is asked"))
        try:
            await event.wait()
        except trio.Cancelled:
            self.log.append(f"{name} is cancelled")
            with trio.CancelScope(shield=True):
                await trio.sleep(clean_up_s)
            raise
        finally:
            self.log.append(f"{name} ends")
        if errors[0] is not None:
            raise errors[0]


async def quiet() -> None:
    """Wait until nothing more happens without time going on."""
    for _ in range(3):
        await trio.testing.wait_all_tasks_blocked()


def running(supervisor: sv.Supervisor | sv.Pool) -> list[str]:
    return [child.name for child in supervisor.children() if child.state is sv.ChildState.RUNNING]


def states(supervisor: sv.Supervisor | sv.Pool) -> dict[str, str]:
    return {child.name: child.state.value for child in supervisor.children()}
