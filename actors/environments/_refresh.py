"""Turn an environment to the executor that has its id now: keep the session if it is the same, else begin anew.

The question is asked in the caller's own task, so the session goes on meanwhile, and a caller that is cancelled leaves
nothing behind. What follows from the answer is decided by the life (`Connection.handle`) and done by the actor.
"""

from typing import Final, Never

import trio

from actors import ActorsError
from actors.environments._asking import answer_of, check_bundle, identity_of, no_answer_within
from actors.environments._body import Body
from actors.environments._connection_events import BundleLookedUp, Peer
from actors.environments._errors import ConnectFailed, ProtocolError
from actors.environments._gate import Gate
from actors.environments._lifecycle import Kind
from actors.environments._outcomes import refusal, said_by
from actors.environments._provider import ConnectBundle, FixedEndpoint
from actors.environments._retry import is_retryable
from actors.environments._seams import Client
from actors.harness import CallTimedOut
from actors.noise import PublicKey

LOOK_UP_S: Final = 10.0
STATUS_TIMEOUT_S: Final = 10.0
_NO_REGISTRY: Final = "connection refresh requires a Noise registry"


async def refresh(body: Body) -> None:
    """See to it that the link leads to who has the id now, and that they answer; see `Environment`."""
    _must_have_registry(body)
    body.now_s("refresh_connection")
    await trio.lowlevel.checkpoint()
    _must_be_open(body)
    if body.life.gate is not Gate.PENDING:
        await _look_up(body)
    # Else the attempt that begins when the gate opens asks later than now, so what it finds is as new.
    client = await body.use("refresh_connection")
    if body.life.connection.peer is None:
        raise ProtocolError(_NO_REGISTRY)
    await ask_status(client)


async def ask_status(client: Client) -> None:
    """Ask an open link whether its executor answers, for 10 s at most.

    Raises:
        ActorsError: It does not.
    """
    with trio.move_on_after(STATUS_TIMEOUT_S):
        await client.status()
        return
    raise CallTimedOut("environment/status", STATUS_TIMEOUT_S)


def _must_have_registry(body: Body) -> None:
    if body.life.kind is Kind.LOCAL:
        raise ProtocolError("connection refresh requires a remote environment")
    if body.backstage.connectors.noise is None or isinstance(body.provider, FixedEndpoint):
        raise ProtocolError(_NO_REGISTRY)


def _must_be_open(body: Body) -> None:
    """Raise if the environment has ended or its gate has shut. A start that failed is no obstacle: it is what helps."""
    if body.life.is_closed or body.life.gate in (Gate.FAILED, Gate.ABANDONED):
        _refuse(body)


def _refuse(body: Body) -> Never:
    raise refusal(body.life) or AssertionError("only asked of what cannot be used")


async def _look_up(body: Body) -> None:
    """Ask the provider, and let the life take what it says.

    Cancelled:
        Nothing was changed.
    """
    body.look_ups += 1
    ticket = body.look_ups
    bundle = await _ask(body)
    now_s = trio.current_time()
    body.turn_to(
        BundleLookedUp(ticket, Peer(bundle.executor_public_key, bundle.executor_registration_id), now_s), bundle
    )


async def _ask(body: Body) -> ConnectBundle:
    """Ask the provider within 10 s, or until the environment is closed."""
    answer: object = None
    scopes = body.looking = set[trio.CancelScope]() if body.looking is None else body.looking
    with trio.move_on_after(LOOK_UP_S) as scope:
        scopes.add(scope)
        try:
            assert body.provider is not None, "what is remote and open has a provider"
            answer = await answer_of(body.provider, identity_of(body))
            if isinstance(answer, ConnectBundle):
                _check(body, answer)
        except Exception as error:  # The provider may raise anything; the session is as it was.
            raise _look_up_failed(body, error) from error
        finally:
            scopes.discard(scope)
    _must_be_open(body)
    if answer is None:
        raise _look_up_failed(body, ConnectFailed(no_answer_within(LOOK_UP_S), retryable=True))
    if not isinstance(answer, ConnectBundle):
        raise ProtocolError(_NO_REGISTRY)
    return answer


def _check(body: Body, bundle: ConnectBundle) -> None:
    check_bundle(body, bundle)
    # Told here, and not when the attempt begins: a bundle that nobody can use must not cost the session.
    if not isinstance(bundle.executor_public_key, PublicKey):
        raise ProtocolError("connect bundle holds no actors.noise.PublicKey as executor_public_key")


def _look_up_failed(body: Body, error: Exception) -> ActorsError:
    life = body.life
    return ConnectFailed(
        said_by(error),
        retryable=is_retryable(error),
        environment_id=life.environment_id,
        generation=life.generation,
        attempt=life.connection.attempt,
    )
