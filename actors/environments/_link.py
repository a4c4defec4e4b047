"""One attempt to connect, and the link it leads to, in the task of the environment's actor: no waiter touches it.

It asks the provider, more than once if the failure allows it, hands the answer to the connector, and tells the life
what becomes of it. Whatever way it ends, it has told an end. The actor has nothing else to do meanwhile: the next
attempt begins when this one is over, and the end of the environment stops it from outside.
"""

import contextlib
import math
from collections.abc import Awaitable
from functools import partial
from typing import NoReturn, cast

import trio

from actors import ActorsError
from actors.environments._body import Body
from actors.environments._connection import (
    AttemptFailed,
    AttemptRefused,
    AttemptSucceeded,
    LinkEnded,
    LinkInterrupted,
    LinkResumed,
)
from actors.environments._errors import ConnectFailed, EnvironmentClosed, ProtocolError
from actors.environments._outcomes import said_by
from actors.environments._printable import printable, time_text
from actors.environments._provider import Answer, ConnectBundle, ConnectProvider, FixedEndpoint, PlainEndpoint
from actors.environments._retry import AttemptRules, is_retryable
from actors.environments._seams import Client, Connector, HarnessIdentity, LinkRequest

_STOPPED = "the attempt was stopped"


async def hold_link(body: Body, attempt: int) -> None:
    """Connect and hold the link, reporting to the body.

    Cancelled:
        The attempt has failed, or the link has ended; the life knows.
    """
    if body.life.is_closed:
        return  # It ended before its actor came to this.
    body.backstage.counters.attempts += 1
    body.link = link = Link(body, attempt)
    try:
        await link.run()
    except Exception as error:  # Not lost: it becomes the cause of every waiter's own ConnectFailed.
        link.over(error)
    finally:
        link.over(ConnectFailed(_STOPPED, retryable=True))
        body.link = None


class Link:
    """One attempt as its connector sees it."""

    def __init__(self, body: Body, attempt: int) -> None:
        self._body, self._attempt = body, attempt
        self._is_answered = self._is_open = self._is_over = self._is_stopped = False
        # One for each try, since what it bounds comes one after the other: the provider's answer, then the opening.
        self._scope = trio.CancelScope()

    def stop(self) -> None:
        """Let it end now."""
        self._is_stopped = True
        self._scope.cancel()

    async def run(self) -> NoReturn:
        """Ask, connect, and stay until the link is gone; ask again while that makes sense.

        Raises:
            Exception: Why there is no link, or why there is none any more.
        """
        body, life, rules = self._body, self._body.life, self._body.backstage.rules
        began_s, key = trio.current_time(), f"{life.environment_id}/{life.generation}/{self._attempt}"
        body.tries, pause_s = 0, 0.0
        while True:
            try:
                await self._try_once(pause_s)
            except ActorsError as error:
                if self._is_answered or self._is_stopped or not is_retryable(error):
                    raise
                at_least_s = getattr(error, "retry_after_s", None) or 0.0
                next_s = rules.pause_s(body.tries, trio.current_time() - began_s, key, at_least_s=at_least_s)
                if next_s is None:
                    raise
                pause_s = next_s

    async def _try_once(self, pause_s: float) -> NoReturn:
        rules = self._body.backstage.rules
        self._scope = trio.CancelScope(deadline=trio.current_time() + pause_s + rules.provider_call_s)
        with self._scope:
            if pause_s:
                await trio.sleep(pause_s)
            self._body.tries += 1
            request = await self._ask()
            self._is_answered = True
            connector = self._connector_for(request.answer)
            self._scope.deadline = trio.current_time() + rules.connect_s
            await connector.hold(request, self)
            raise ConnectFailed("the connector let the link go", retryable=True)
        raise self._cut_off()

    def _cut_off(self) -> ConnectFailed:
        rules = self._body.backstage.rules
        if self._is_stopped:
            said = _STOPPED
        elif self._is_answered:
            said = f"no link was open {time_text(rules.connect_s)} after the provider's answer"
        else:
            said = _no_answer_within(rules.provider_call_s)
        return ConnectFailed(said, retryable=True)

    def opened(self, client: Client, /) -> None:
        """The link can be used; without anybody who wants it, unwind the connector."""
        body = self._body
        if not body.hear(lambda now_s: AttemptSucceeded(self._attempt, now_s), client):
            raise EnvironmentClosed(body.life.environment_id, body.life.generation, "it was closed while connecting")
        self._is_open = True
        self._scope.deadline = math.inf

    def interrupted(self, reason: str, /) -> None:
        """The connection is gone, the session may come back."""
        self._body.hear(lambda now_s: LinkInterrupted(self._attempt, reason, now_s))

    def resumed(self) -> None:
        """The same session goes on."""
        self._body.hear(lambda now_s: LinkResumed(self._attempt, now_s))

    def over(self, error: Exception) -> None:
        """The attempt failed, or the link ended; only the first word counts."""
        if self._is_over:
            return
        self._is_over = True
        attempt, hear = self._attempt, self._body.hear
        with contextlib.suppress(EnvironmentClosed):  # Its actor is being killed: then this has closed it.
            if self._is_open:
                hear(lambda now_s: LinkEnded(attempt, said_by(error), now_s))
            elif is_retryable(error):
                hear(lambda now_s: AttemptFailed(attempt, error, now_s))
            else:
                hear(lambda now_s: AttemptRefused(attempt, error, now_s))

    async def _ask(self) -> LinkRequest:
        life, provider, rules = self._body.life, self._body.provider, self._body.backstage.rules
        # An address that is fixed asks for no key, and a key pair costs more than all the rest of an environment.
        identity = None if provider is None or isinstance(provider, FixedEndpoint) else self._identity()
        return LinkRequest(
            environment_id=life.environment_id,
            generation=life.generation,
            attempt=self._attempt,
            # This machine has no provider: nobody needs to be asked how to reach it.
            answer=None if provider is None else await _answer_of(provider, identity),
            identity=identity,
            renew=None if provider is None else partial(_renew, provider, identity, rules),
        )

    def _identity(self) -> HarnessIdentity | None:
        make = self._body.backstage.connectors.identity
        if self._body.identity is None and make is not None:
            try:
                self._body.identity = make()
            except Exception as error:  # Whoever makes the keys may be a user: whatever it raises ends the attempt.
                raise ProtocolError(f"failed to generate Noise harness identity: {said_by(error)}") from error
        return self._body.identity

    def _connector_for(self, answer: Answer | None) -> Connector:
        connectors, body = self._body.backstage.connectors, self._body
        match answer:
            case None:
                if connectors.local is None or body.life.is_closed:
                    raise ConnectFailed("it was closed before the attempt began")
                return connectors.local
            case PlainEndpoint():
                return connectors.plain
            case ConnectBundle(environment_id=environment_id):
                if environment_id != body.bundle_environment_id:
                    expected = f"expected `{body.bundle_environment_id}`"
                    raise ProtocolError(f"connect bundle is for environment `{printable(environment_id)}`, {expected}")
                if connectors.noise is None:
                    # Never a plain connection in its place: whoever answers with a bundle asked for encryption.
                    raise ConnectFailed("this manager has no Noise connector, so a connect bundle cannot be used")
                return connectors.noise


async def _renew(provider: ConnectProvider, identity: HarnessIdentity | None, rules: AttemptRules) -> Answer:
    with trio.move_on_after(rules.provider_call_s):
        return await _answer_of(provider, identity)
    raise ConnectFailed(_no_answer_within(rules.provider_call_s), retryable=True)


async def _answer_of(provider: ConnectProvider, identity: HarnessIdentity | None) -> Answer:
    # As an object: what is not `async` shows only here, and by its type it cannot be.
    answering = cast("object", provider.connect_bundle(None if identity is None else identity.public_key))
    if not isinstance(answering, Awaitable):
        kind, given = type(provider).__name__, type(answering).__name__
        raise ConnectFailed(
            f"connect_bundle() of the provider {kind} gave a {given} where it has to be awaited: make it `async def`"
        )
    return _checked(await cast("Awaitable[object]", answering))


def _checked(answer: object) -> Answer:
    if isinstance(answer, PlainEndpoint | ConnectBundle):
        return answer
    kind = type(answer).__name__
    raise ProtocolError(f"provider answered with {kind}, expected a ConnectBundle or a PlainEndpoint")


def _no_answer_within(within_s: float) -> str:
    return f"the provider did not answer within {time_text(within_s)}"
