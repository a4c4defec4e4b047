"""What a manager of environments must do, said as plainly as possible: dictionaries, flags, no tasks.

What happens at once happens in the methods; what the run does afterwards happens in `settle`. The last state counts:
who waits sees what is true when it runs again.
"""

from dataclasses import dataclass, field

PENDING, READY, FAILED, ABANDONED = "pending", "ready", "failed", "abandoned"
NO_ROOTS: tuple[str, ...] = ()
UNREPORTABLE = "environment provisioning ended before completion"
LOST = "environment registration ended before completion"


@dataclass(eq=False)
class PlainWait:
    outcome: str | None = None
    cancelled: bool = False


@dataclass(eq=False)
class PlainEnvironment:
    key: str
    generation: int
    kind: str
    works: bool
    gate: str
    deadline_s: float | None = None
    message: str | None = None
    roots: tuple[str, ...] = NO_ROOTS
    accepted: tuple[str, ...] | None = None
    asked: bool = False
    connected: bool = False
    refused: bool = False
    calls: int = 0
    held: bool = True
    current: bool = True
    superseded: bool = False
    closed: bool = False
    lost: bool = False
    waits: list[PlainWait] = field(default_factory=list)

    @property
    def reachable(self) -> bool:
        return self.held or self.current

    def shut(self, gate: str, message: str) -> None:
        self.gate, self.message = gate, message

    def open(self, roots: tuple[str, ...]) -> None:
        self.gate, self.message, self.roots, self.accepted = READY, None, roots, roots

    def use_registration(self, roots: tuple[str, ...] | None, message: str, valid: bool) -> str:
        """Complete (with roots) or fail (with a message); say how it ended."""
        if self.closed or not self.reachable:
            return "inactive"
        if self.gate != PENDING:
            return "used"
        if roots is None or not valid:
            self.shut(FAILED, message)
            return "invalid" if roots is not None else "done"
        self.open(roots)
        return "done"

    def settle(self) -> None:
        """Everything that can happen by itself has happened."""
        if self.lost and self.gate == PENDING and not self.closed and self.reachable:
            self.shut(ABANDONED, LOST)
        if not self.reachable:
            self.close()
        waiting = [wait for wait in self.waits if wait.outcome is None]
        self.asked = self.asked or bool(waiting)
        if self.asked and self.gate == READY and not (self.closed or self.connected or self.refused):
            self.calls += 1
            self.connected, self.refused = self.works, not self.works
        for wait in waiting:
            wait.outcome = "cancelled" if wait.cancelled else self.outcome()

    def outcome(self) -> str | None:
        if self.closed:
            return "closed"
        if self.connected:
            return "ok"
        if self.gate in (FAILED, ABANDONED):
            return f"unavailable: {self.message}"
        return "provider" if self.refused else None

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            if self.gate == PENDING:
                self.shut(ABANDONED, "closed")

    def lose_id(self) -> None:
        self.current = False
        if self.kind == "provisioned" and self.gate == PENDING and not self.closed:
            self.shut(ABANDONED, UNREPORTABLE)


@dataclass
class PlainManager:
    current: dict[str, PlainEnvironment] = field(default_factory=dict)
    born: list[PlainEnvironment] = field(default_factory=list)
    generations: dict[str, int] = field(default_factory=dict)

    def insert(
        self, key: str, kind: str, works: bool, *, now_s: float = 0.0, deadline_s: float | None = None
    ) -> PlainEnvironment:
        self.generations[key] = self.generations.get(key, 0) + 1
        environment = PlainEnvironment(
            key=key,
            generation=self.generations[key],
            kind=kind,
            works=works,
            gate=READY if kind == "ordinary" else PENDING,
            asked=kind != "provisioned",
            deadline_s=None if deadline_s is None else now_s + deadline_s,
        )
        if before := self.current.get(key):
            before.superseded = True
            before.lose_id()
        self.current[key] = environment
        self.born.append(environment)
        return environment

    def remove(self, key: str) -> bool:
        before = self.current.pop(key, None)
        if before is not None:
            before.lose_id()
        return before is not None

    def close(self, environment: PlainEnvironment) -> None:
        environment.close()
        if self.current.get(environment.key) is environment:
            del self.current[environment.key]
            environment.current = False

    def report(
        self, key: str, works: bool, roots: tuple[str, ...] | None, message: str, *, valid: bool, recover: bool
    ) -> str:
        """A report of readiness (with roots) or of failure; say how it ended."""
        environment = self.current.get(key)
        if environment is None:
            if roots is not None and not valid:
                return "invalid"
            environment = self.insert(key, "provisioned", works)
        elif environment.kind == "ordinary":
            return "none"
        elif environment.kind == "deferred" and not (recover and environment.gate in (FAILED, ABANDONED)):
            return "conflict"
        if roots is None:
            return self.report_failure(environment, message)
        return self.report_readiness(environment, roots, valid=valid, recover=recover)

    def report_failure(self, environment: PlainEnvironment, message: str) -> str:
        if environment.gate == READY:
            return "already ready"
        if environment.gate == PENDING:
            environment.shut(FAILED, message)
        return "done"

    def report_readiness(
        self, environment: PlainEnvironment, roots: tuple[str, ...], *, valid: bool, recover: bool
    ) -> str:
        shut = environment.gate in (FAILED, ABANDONED)
        if shut and not recover:
            return "already failed"
        if not valid:
            if environment.gate == PENDING:
                environment.shut(FAILED, "invalid")
            return "invalid"
        if shut:
            environment.asked = environment.refused = False
        environment.open(roots)
        return "done"

    def publish(self, key: str, roots: tuple[str, ...], valid: bool) -> str:
        environment = self.current.get(key)
        if environment is None:
            return "unknown"
        if not valid:
            return "invalid"
        environment.roots = roots
        return "done"

    def pass_deadlines(self, now_s: float) -> None:
        for environment in self.born:
            due = environment.deadline_s is not None and environment.deadline_s <= now_s
            if due and environment.gate == PENDING and not environment.closed:
                environment.shut(FAILED, "deadline")

    def settle(self) -> None:
        for environment in self.born:
            environment.settle()
