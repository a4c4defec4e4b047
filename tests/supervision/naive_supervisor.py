"""The plainest supervisor one can write: one thing at a time, loops instead of states. The plan is judged by it."""

from collections import Counter
from typing import Any

import attrs

from supervision import AutoShutdown, ExitKind, Restart, Strategy


@attrs.define(eq=False)
class NaiveChild:
    name: str
    restart: Restart
    significant: bool
    up: bool = False


class NaiveSupervisor:
    def __init__(
        self, strategy: Strategy, restarts: int, period_s: float, auto_shutdown: AutoShutdown, *, is_pool: bool
    ) -> None:
        self.strategy, self.restarts, self.period_s = strategy, restarts, period_s
        self.auto_shutdown, self.is_pool = auto_shutdown, is_pool
        self.children: list[NaiveChild] = []
        self.failing: Counter[str] = Counter()
        self.times_s: list[float] = []
        self.log: list[str] = []
        self.ended: str | None = None

    def find(self, name: str) -> NaiveChild | None:
        return next((child for child in self.children if child.name == name), None)

    def add(self, name: str, restart: Restart, significant: bool) -> str:
        if self.ended:
            return "closed"
        old = self.find(name)
        if old is not None:
            return "already started" if old.up else "already present"
        child = NaiveChild(name, restart, significant)
        if not self.start(child):
            return "start failed"
        self.children.append(child)
        return "ok"

    def stop_by_command(self, name: str) -> str:
        child = self.find(name)
        if child is None:
            return "not found"
        if child.up:
            self.stop(child)
            self.leave_down(child)
        return "ok"

    def restart_by_command(self, name: str) -> str:
        child = self.find(name)
        if child is None:
            return "not found"
        if self.ended:
            return "closed"
        if child.up:
            return "running"
        return "ok" if self.start(child) else "start failed"

    def delete(self, name: str) -> str:
        child = self.find(name)
        if child is None:
            return "not found"
        if child.up:
            return "running"
        self.children.remove(child)
        return "ok"

    def exit(self, name: str, kind: ExitKind, now_s: float) -> None:
        child = self.find(name)
        assert child is not None
        child.up = False
        crashed = kind in {ExitKind.CRASHED, ExitKind.KILLED}
        if child.restart is Restart.PERMANENT or (child.restart is Restart.TRANSIENT and crashed):
            self.bring_back(child, now_s)
            return
        self.leave_down(child)
        others = [c for c in self.children if c.significant and c.up]
        if child.significant and (
            self.auto_shutdown is AutoShutdown.ANY_SIGNIFICANT
            or (self.auto_shutdown is AutoShutdown.ALL_SIGNIFICANT and not others)
        ):
            self.close("auto_shutdown")

    def bring_back(self, child: NaiveChild, now_s: float) -> None:
        fallen: NaiveChild | None = child
        while fallen is not None:
            self.times_s = [t for t in self.times_s if now_s - t <= self.period_s] + [now_s]
            if len(self.times_s) > self.restarts:
                self.leave_down(fallen)
                self.close("intensity")
                return
            group = self.sharing_fate(fallen)
            for one in reversed(group):
                if one.up:
                    self.stop(one)
                    if one.restart is Restart.TEMPORARY:
                        self.children.remove(one)
            fallen = None
            for one in group:
                if one in self.children and not self.start(one):
                    fallen = one
                    break

    def sharing_fate(self, fallen: NaiveChild) -> list[NaiveChild]:
        match self.strategy:
            case Strategy.ONE_FOR_ONE:
                return [fallen]
            case Strategy.ONE_FOR_ALL:
                return self.children[:]
            case Strategy.REST_FOR_ONE:
                return self.children[self.children.index(fallen) :]

    def close(self, why: str) -> None:
        if self.ended:
            return
        self.ended = why
        at = len(self.log)
        for child in self.children[::-1]:
            if child.up:
                self.stop(child)
                self.leave_down(child)
        if self.is_pool:
            self.log[at:] = sorted(self.log[at:])

    def start(self, child: NaiveChild) -> bool:
        if self.failing[child.name]:
            self.failing[child.name] -= 1
            self.log.append(f"{child.name} fails to start")
            return False
        self.log.append(f"{child.name} starts")
        child.up = True
        return True

    def stop(self, child: NaiveChild) -> None:
        self.log.append(f"{child.name} is stopped")
        child.up = False

    def leave_down(self, child: NaiveChild) -> None:
        if self.is_pool or child.restart is Restart.TEMPORARY:
            self.children.remove(child)

    def states(self) -> dict[str, Any]:
        return {child.name: child.up for child in self.children}
