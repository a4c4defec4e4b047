"""One attempt to connect, and the link it leads to: a task of its own, so that no waiter's cancellation touches it.

It asks the provider, more than once if the failure allows it, hands the answer to the connector, and tells the life
what becomes of it. Whatever way it ends, it has told an end.
"""

import math
from functools import partial
from typing import Any

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
from actors.environments._provider import Answer, ConnectBundle, ConnectProvider, PlainEndpoint
from actors.environments._retry import is_retryable
from actors.environments._seams import Client, Connector, HarnessIdentity, LinkRequest
from supervision import ChildStatus


async def hold_link(body: Body, attempt: int, *, task_status: ChildStatus[Any]) -> None:
    """Connect and hold the link, reporting to the body.

    Cancelled:
        The attempt has failed, or the link has ended; the life knows.
    """
    task_status.started()
    link = _Link(body, attempt)
    try:
        await link.run()
        link.over(ConnectFailed("the connector let the link go", retryable=True))
    except Exception as error:  # Not lost: it becomes the cause of every waiter's own ConnectFailed.
        link.over(error)
    finally:
        link.over(ConnectFailed("the attempt was stopped", retryable=True))


class _Link:
    """One attempt as its connector sees it."""

    def __init__(self, body: Body, attempt: int) -> None:
        self._body, self._attempt = body, attempt
        self._is_open = self._is_over = False
        self._opening = trio.CancelScope()

    async def run(self) -> None:
        """Ask, connect, and stay until the link is gone."""
        body, rules = self._body, self._body.backstage.rules
        provider = body.provider
        identity = None if provider is None else self._identity()
        # This machine has no provider: nobody needs to be asked how to reach it.
        answer = None if provider is None else await self._ask(provider, identity)
        request = LinkRequest(
            environment_id=body.life.environment_id,
            generation=body.life.generation,
            attempt=self._attempt,
            answer=answer,
            identity=identity,
            renew=None if provider is None else partial(_ask_once, provider, identity, rules.provider_call_s),
        )
        connector = self._local_connector() if answer is None else self._connector_for(answer)
        with trio.CancelScope(deadline=trio.current_time() + rules.connect_s) as self._opening:
            await connector.hold(request, self)
        if self._opening.cancelled_caught:
            raise ConnectFailed(f"no link was open {rules.connect_s:g} s after the provider's answer", retryable=True)

    def opened(self, client: Client, /) -> None:
        """The link can be used; without anybody who wants it, unwind the connector."""
        body = self._body
        if not body.hear(lambda now_s: AttemptSucceeded(self._attempt, now_s), client):
            raise EnvironmentClosed(body.life.environment_id, body.life.generation, "it was closed while connecting")
        self._is_open = True
        self._opening.deadline = math.inf

    def interrupted(self, reason: str, /) -> None:
        """The transport is gone, the session may come back."""
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
        if self._is_open:
            hear(lambda now_s: LinkEnded(attempt, said_by(error), now_s))
        elif is_retryable(error):
            hear(lambda now_s: AttemptFailed(attempt, error, now_s))
        else:
            hear(lambda now_s: AttemptRefused(attempt, error, now_s))

    def _identity(self) -> HarnessIdentity | None:
        body = self._body
        make = body.backstage.connectors.identity
        if body.identity is None and make is not None:
            try:
                body.identity = make()
            except Exception as error:
                raise ProtocolError(f"failed to generate Noise harness identity: {said_by(error)}") from error
        return body.identity

    async def _ask(self, provider: ConnectProvider, identity: HarnessIdentity | None) -> Answer:
        body, life, rules = self._body, self._body.life, self._body.backstage.rules
        began_s, key = trio.current_time(), f"{life.environment_id}/{life.generation}/{self._attempt}"
        body.tries = 0
        while True:
            body.tries += 1
            try:
                return await _ask_once(provider, identity, rules.provider_call_s)
            except ActorsError as error:
                pause_s = rules.pause_s(body.tries, trio.current_time() - began_s, key)
                if pause_s is None or not is_retryable(error):
                    raise
            await trio.sleep(pause_s)

    def _local_connector(self) -> Connector:
        connector = self._body.backstage.connectors.local
        if connector is None or self._body.life.is_closed:
            raise ConnectFailed("it was closed before the attempt began")
        return connector

    def _connector_for(self, answer: Answer) -> Connector:
        connectors, body = self._body.backstage.connectors, self._body
        match answer:
            case PlainEndpoint():
                return connectors.plain
            case ConnectBundle(environment_id=environment_id):
                if environment_id != body.bundle_environment_id:
                    expected = f"expected `{body.bundle_environment_id}`"
                    raise ProtocolError(f"connect bundle is for environment `{environment_id}`, {expected}")
                if connectors.noise is None:
                    # Never a plain connection in its place: whoever answers with a bundle asked for encryption.
                    raise ConnectFailed("this manager has no Noise connector, so a connect bundle cannot be used")
                return connectors.noise


async def _ask_once(provider: ConnectProvider, identity: HarnessIdentity | None, within_s: float) -> Answer:
    with trio.move_on_after(within_s):
        return _checked(await provider.connect_bundle(None if identity is None else identity.public_key))
    raise ConnectFailed(f"the provider did not answer within {within_s:g} s", retryable=True)


def _checked(answer: object) -> Answer:
    if isinstance(answer, PlainEndpoint | ConnectBundle):
        return answer
    kind = type(answer).__name__
    raise ProtocolError(f"provider answered with {kind}, expected a ConnectBundle or a PlainEndpoint")
