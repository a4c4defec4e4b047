"""Connections of one logical client, one after the other: open, initialize, carry, lose, resume.

Reading begins before `initialize` is sent: a resumed session sends its output at once. Each connection is made within
the budget; once installed, it lives until it is lost.
"""

import math
from collections.abc import Callable
from functools import partial

import attrs
import trio

from actors.harness._channel import Dialer
from actors.harness._connection import Connection
from actors.harness._core import Core
from actors.harness._errors import (
    CallTimedOut,
    Failed,
    HarnessError,
    InitializeTimedOut,
    ProtocolBroken,
    RecoveryFailed,
)
from actors.harness._followed import Followed
from actors.harness._recovery_policy import RecoveryPolicy, is_worth_retrying
from actors.harness._wording import duration_text
from actors.protocol import (
    INITIALIZE,
    INITIALIZED,
    PROCESS_READ,
    Empty,
    InitializeParams,
    InitializeResult,
    ReadParams,
)

_RECOVERED_AT_ONCE = 16


@attrs.frozen(kw_only=True)
class Session:
    """How to connect, and the client to connect."""

    core: Core
    """The client."""
    url: str
    """Where the executor listens."""
    dialer: Dialer
    """How to get there."""
    client_name: str
    """What to call ourselves."""
    recovery: RecoveryPolicy | None
    """How to get a lost connection back; not at all when None."""

    async def serve(self, *, resume_session_id: str | None, started: Callable[[], None]) -> HarnessError:
        """Connect and stay connected until that is no longer possible; give the reason.

        Raises:
            HarnessError: The first connection could not be made.
        """
        lost = await self._connect_and_carry(resume_session_id, installed=started)
        while self.recovery is not None:
            self.core.lost(lost)
            outcome = await self._resume(self.recovery, lost)
            if isinstance(outcome, RecoveryFailed):
                return outcome
            lost = outcome
        return lost

    async def _resume(self, policy: RecoveryPolicy, lost: HarnessError) -> HarnessError:
        """Get a connection back and carry it; give why that one was lost, or why there is none."""
        session_id = self.core.session_id
        if not session_id:
            return RecoveryFailed(lost, "missing session id")
        deadline_s = trio.current_time() + policy.budget_s
        attempt = 0
        while True:
            scope = trio.CancelScope(deadline=deadline_s)
            with scope:
                try:
                    return await self._connect_and_carry(session_id, installed=partial(_lift, scope))
                except HarnessError as error:
                    if not is_worth_retrying(error):
                        return RecoveryFailed(lost, str(error))
                    asked_s = error.retry_after_s
                await trio.sleep(policy.delay_s(session_id, attempt, asked_s))
            if scope.cancelled_caught:
                return RecoveryFailed(lost, f"recovery timed out after {duration_text(policy.budget_s)}")
            attempt += 1

    async def _connect_and_carry(self, resume_session_id: str | None, *, installed: Callable[[], None]) -> HarnessError:
        """Make one connection and carry it to its end; give why it ended, or raise why it was not made."""
        failure: HarnessError | None = None
        async with self.dialer.dial(self.url) as channel:
            connection = Connection(channel, limits=self.core.limits, valve=self.core.valve, on_news=self.core.on_news)
            async with trio.open_nursery() as nursery:
                await nursery.start(connection.run)
                try:
                    result = await self._initialize(connection, resume_session_id)
                    await self._recover_processes(connection)
                except HarnessError as error:
                    failure = connection.lost or error
                    nursery.cancel_scope.cancel()
                else:
                    self.core.install(connection, result)
                    installed()
        if failure is not None:
            raise failure
        assert connection.lost is not None, "a connection that has stopped says why"
        return connection.lost

    async def _initialize(self, connection: Connection, resume_session_id: str | None) -> InitializeResult:
        timeout_s = self.core.limits.initialize_s
        params = InitializeParams(client_name=self.client_name, resume_session_id=resume_session_id)
        try:
            result = await connection.call(INITIALIZE, params, timeout_s=timeout_s)
        except CallTimedOut:
            raise InitializeTimedOut(timeout_s) from None
        if resume_session_id is not None and result.session_id != resume_session_id:
            raise ProtocolBroken(f"exec-server initialized an unexpected session {result.session_id}")
        connection.notify(INITIALIZED, Empty())
        return result

    async def _recover_processes(self, connection: Connection) -> None:
        followed = [f for f in self.core.followed.values() if f.started and not f.over]
        if not followed:
            return
        limiter = trio.CapacityLimiter(_RECOVERED_AT_ONCE)
        async with trio.open_nursery() as nursery:
            for each in followed:
                nursery.start_soon(self._recover_process, connection, each, limiter)
        if connection.lost is not None:
            raise connection.lost

    async def _recover_process(self, connection: Connection, followed: Followed, limiter: trio.CapacityLimiter) -> None:
        async with limiter:
            after_seq = followed.backlog.arrived_seq
            params = ReadParams(process_id=followed.process_id, after_seq=after_seq, wait_ms=0)
            try:
                answer = await connection.call(PROCESS_READ, params, timeout_s=None, identity=followed.process_id)
            except Failed as error:
                self.core.give_up(followed, str(error))
            except HarnessError:
                return  # The connection is lost: the attempt ends, and the process is tried again on the next.
            else:
                self.core.merge(followed, answer)


def _lift(scope: trio.CancelScope) -> None:
    scope.deadline = math.inf
