"""One attempt to connect, and the link it leads to, in the task of the environment's actor: no waiter touches it.

It asks the provider, more than once if the failure allows it, hands the answer to the connector, and tells the life
what becomes of it. Whatever way it ends, it has told an end. The actor has nothing else to do meanwhile: the next
attempt begins when this one is over, and the end of the environment stops it from outside.
"""

import contextlib
import math
from functools import partial
from typing import NoReturn

import trio

from actors import ActorsError
from actors.environments._asking import answer_of, check_bundle, identity_of, no_answer_within
from actors.environments._body import Body
from actors.environments._connection_events import (
    AttemptFailed,
    AttemptRefused,
    AttemptSucceeded,
    LinkEnded,
    LinkInterrupted,
    LinkResumed,
    Peer,
)
from actors.environments._errors import AttemptSuperseded, ConnectFailed, EnvironmentClosed
from actors.environments._outcomes import said_by
from actors.environments._printable import time_text
from actors.environments._provider import Answer, ConnectBundle, ConnectProvider, FixedEndpoint, PlainEndpoint
from actors.environments._retry import is_retryable, retry_after_s
from actors.environments._seams import Client, Connector, HarnessIdentity, LinkRequest

_STOPPED = "the attempt was stopped"


async def hold_link(body: Body, attempt: int, ticket: int = 0) -> None:
    """Connect and hold the link, reporting to the body; with a ticket, by the bundle that was looked up under it.

    Cancelled:
        The attempt has failed, or the link has ended; the life knows.
    """
    if body.life.is_closed or body.life.connection.attempt != attempt:
        return  # It ended, or the attempt was superseded, before its actor came to this.
    body.backstage.counters.attempts += 1
    body.link = link = Link(body, attempt, body.take_fetched(ticket) if ticket else None)
    try:
        await link.run()
    except Exception as error:  # Not lost: it becomes the cause of every waiter's own ConnectFailed.
        link.over(error)
    finally:
        link.over(ConnectFailed(_STOPPED, retryable=True))
        body.link = None


class Link:
    """One attempt as its connector sees it."""

    def __init__(self, body: Body, attempt: int, fetched: ConnectBundle | None = None) -> None:
        self._body, self.attempt, self._fetched = body, attempt, fetched
        self._is_answered = self._is_open = self._is_over = False
        self._stopped: str | None = None
        self._client: Client | None = None
        # Whom the latest answer of the provider leads to.
        self._peer: Peer | None = None
        # One for each try, since what it bounds comes one after the other: the provider's answer, then the opening.
        self._scope: trio.CancelScope | None = None

    def stop(self, reason: str | None = None) -> None:
        """Let it end now; whoever uses it hears the reason, if there is one."""
        self._stopped = self._stopped or reason or _STOPPED
        if reason is not None and self._client is not None:
            # A client of somebody's own connector may know no such end: its link is stopped all the same.
            with contextlib.suppress(Exception):
                self._client.retire(reason)
        if self._scope is not None:
            self._scope.cancel()

    async def run(self) -> NoReturn:
        """Ask, connect, and stay until the link is gone; ask again while that makes sense.

        Raises:
            Exception: Why there is no link, or why there is none any more.
        """
        body, life, rules = self._body, self._body.life, self._body.backstage.rules
        began_s = now_s = trio.current_time()
        body.tries, pause_s = 0, 0.0
        while True:
            try:
                await self._try_once(now_s, pause_s)
            except ActorsError as error:
                if self._is_answered or self._stopped or not is_retryable(error):
                    raise
                at_least_s = retry_after_s(error) or 0.0
                key = f"{life.environment_id}/{life.generation}/{self.attempt}"
                now_s = trio.current_time()
                next_s = rules.pause_s(body.tries, now_s - began_s, key, at_least_s=at_least_s)
                if next_s is None:
                    raise
                pause_s = next_s

    async def _try_once(self, now_s: float, pause_s: float) -> NoReturn:
        rules = self._body.backstage.rules
        self._scope = scope = trio.CancelScope(deadline=now_s + pause_s + rules.provider_call_s)
        with scope:
            if pause_s:
                await trio.sleep(pause_s)
            self._body.tries += 1
            request = await self._ask()
            self._is_answered = True
            connector = self._connector_for(request.answer)
            scope.deadline = trio.current_time() + rules.connect_s
            await connector.hold(request, self)
            raise ConnectFailed("the connector let the link go", retryable=True)
        raise self._cut_off()

    def _cut_off(self) -> ConnectFailed:
        rules = self._body.backstage.rules
        if self._stopped:
            said = self._stopped
        elif self._is_answered:
            said = f"no link was open {time_text(rules.connect_s)} after the provider's answer"
        else:
            said = no_answer_within(rules.provider_call_s)
        return ConnectFailed(said, retryable=True)

    def opened(self, client: Client, /) -> None:
        """The link can be used; without anybody who wants it, unwind the connector."""
        body = self._body
        if not body.hear(lambda now_s: AttemptSucceeded(self.attempt, now_s, self._peer), client):
            if not body.life.is_closed:
                raise AttemptSuperseded()
            raise EnvironmentClosed(body.life.environment_id, body.life.generation, "it was closed while connecting")
        self._is_open, self._client = True, client
        if self._scope is not None:
            self._scope.deadline = math.inf

    def interrupted(self, reason: str, /) -> None:
        """The connection is gone, the session may come back."""
        self._body.hear(lambda now_s: LinkInterrupted(self.attempt, reason, now_s))

    def resumed(self) -> None:
        """The same session goes on."""
        self._body.hear(lambda now_s: LinkResumed(self.attempt, now_s, self._peer))

    def over(self, error: Exception) -> None:
        """The attempt failed, or the link ended; only the first word counts."""
        if self._is_over:
            return
        self._is_over = True
        attempt, hear = self.attempt, self._body.hear
        with contextlib.suppress(EnvironmentClosed):  # Its actor is being killed: then this has closed it.
            if self._is_open:
                hear(lambda now_s: LinkEnded(attempt, said_by(error), now_s))
            elif is_retryable(error):
                hear(lambda now_s: AttemptFailed(attempt, error, now_s))
            else:
                hear(lambda now_s: AttemptRefused(attempt, error, now_s))

    async def _ask(self) -> LinkRequest:
        body, provider = self._body, self._body.provider
        # An address that is fixed asks for no key, and a key pair costs more than all the rest of an environment.
        identity = None if provider is None or isinstance(provider, FixedEndpoint) else identity_of(body)
        # This machine has no provider: nobody needs to be asked how to reach it.
        answer = self._fetched or (None if provider is None else await answer_of(provider, identity))
        self._peer = peer_of(answer)
        return LinkRequest(
            environment_id=body.life.environment_id,
            generation=body.life.generation,
            attempt=self.attempt,
            answer=answer,
            identity=identity,
            renew=None if provider is None else partial(self._renew, provider, identity),
        )

    async def _renew(self, provider: ConnectProvider, identity: HarnessIdentity | None) -> Answer:
        within_s = self._body.backstage.rules.provider_call_s
        with trio.move_on_after(within_s):
            answer = await answer_of(provider, identity)
            self._peer = peer_of(answer)
            return answer
        raise ConnectFailed(no_answer_within(within_s), retryable=True)

    def _connector_for(self, answer: Answer | None) -> Connector:
        connectors, body = self._body.backstage.connectors, self._body
        match answer:
            case None:
                if connectors.local is None or body.life.is_closed:
                    raise ConnectFailed("it was closed before the attempt began")
                return connectors.local
            case PlainEndpoint():
                return connectors.plain
            case ConnectBundle():
                check_bundle(body, answer)
                if connectors.noise is None:
                    # Never a plain connection in its place: whoever answers with a bundle asked for encryption.
                    raise ConnectFailed("this manager has no Noise connector, so a connect bundle cannot be used")
                return connectors.noise


def peer_of(answer: Answer | None) -> Peer | None:
    """Whom an answer leads to, when it says so."""
    match answer:
        case ConnectBundle():
            return Peer(answer.executor_public_key, answer.executor_registration_id)
        case PlainEndpoint() | None:
            return None
