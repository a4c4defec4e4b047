"""Ask a provider how to reach an environment: in whose name, and what may come of it."""

from collections.abc import Awaitable
from typing import cast

from actors.environments._body import Body
from actors.environments._errors import ConnectFailed, ProtocolError
from actors.environments._outcomes import said_by
from actors.environments._printable import printable, time_text
from actors.environments._provider import Answer, ConnectBundle, ConnectProvider, PlainEndpoint
from actors.environments._seams import HarnessIdentity


def identity_of(body: Body) -> HarnessIdentity | None:
    """The identity of an environment's harness, made when it is first needed; none without a Noise connector."""
    make = body.backstage.connectors.identity
    if body.identity is None and make is not None:
        try:
            body.identity = make()
        except Exception as error:  # Whoever makes the keys may be a user: whatever it raises ends the attempt.
            raise ProtocolError(f"failed to generate Noise harness identity: {said_by(error)}") from error
    return body.identity


def check_bundle(body: Body, bundle: ConnectBundle) -> None:
    """Refuse a bundle that speaks of somebody else."""
    if bundle.environment_id != body.bundle_environment_id:
        expected = f"expected `{body.bundle_environment_id}`"
        raise ProtocolError(f"connect bundle is for environment `{printable(bundle.environment_id)}`, {expected}")


async def answer_of(provider: ConnectProvider, identity: HarnessIdentity | None) -> Answer:
    """Ask a provider, and give what it says if that can be used.

    Raises:
        Exception: Whatever the provider raises.
        ConnectFailed: It cannot be awaited.
        ProtocolError: What it said is no answer.
    """
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


def no_answer_within(within_s: float) -> str:
    """What is said of a provider that was not waited for any longer."""
    return f"the provider did not answer within {time_text(within_s)}"
