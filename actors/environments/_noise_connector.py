"""The real way to an executor behind a rendezvous: a harness whose every connection is encrypted end to end."""

from collections.abc import Awaitable, Callable
from typing import final

import attrs

from actors.environments._errors import NotSupported, ProtocolError
from actors.environments._harness_connector import HarnessConnector, NoAnswer, ask_again, hold_harness
from actors.environments._provider import Answer, ConnectBundle
from actors.environments._seams import LinkReport, LinkRequest
from actors.harness import LIMITS, RELAY_RECOVERY, HarnessLimits, RecoveryPolicy, RelayDialer, shown_url
from actors.noise import Identity, PublicKey
from actors.relay import Dialer, RelayLimits


@final
@attrs.frozen(kw_only=True)
class NoiseConnector:
    """Open a harness with a `ConnectBundle` and hold it; a lost connection gets a fresh bundle and the same session.

    Attributes:
        dialer: How to reach the rendezvous; a WebSocket when left out.
        recovery: How a lost connection gets its session back; not at all when None.
        limits: How long to wait, how much to hold.
        relay_limits: Bounds of the stream through the rendezvous.
    """

    dialer: Dialer | None = None
    recovery: RecoveryPolicy | None = RELAY_RECOVERY
    limits: HarnessLimits = LIMITS
    relay_limits: RelayLimits = attrs.field(factory=RelayLimits)

    async def hold(self, request: LinkRequest, report: LinkReport, /) -> None:
        """Open the link, report it, and raise when it is gone for good.

        Raises:
            HarnessError: Why it could not be opened, or could not be kept.
            NotSupported: What was answered is no bundle, or there are no keys that could use it.
            ProtocolError: The bundle holds no public key.

        Cancelled:
            The stream's place is given back within a bound; the session stays at the executor until it forgets it.
        """
        bundle, identity = request.answer, request.identity
        if not isinstance(bundle, ConnectBundle):
            raise NotSupported(f"connecting to a {type(bundle).__name__}", "this connector never leaves encryption out")
        if not isinstance(identity, Identity):
            raise NotSupported(f"a harness identity of {type(identity).__name__}", "an actors.noise.Identity is needed")
        if not isinstance(bundle.executor_public_key, PublicKey):
            raise ProtocolError("connect bundle holds no actors.noise.PublicKey as executor_public_key")
        bundles = _Bundles(bundle, request.renew)
        dialer = RelayDialer(bundles.next, identity, dialer=self.dialer, limits=self.relay_limits)
        how = HarnessConnector(dialer=dialer, recovery=self.recovery, limits=self.limits)
        await hold_harness(shown_url(bundle.websocket_url), report, how)


class _Bundles:
    """The bundle that the attempt began with, once, and then a fresh one each time."""

    def __init__(self, first: ConnectBundle, renew: Callable[[], Awaitable[Answer]] | None) -> None:
        self._first: ConnectBundle | None = first
        self._environment_id = first.environment_id
        self._renew = renew

    async def next(self) -> ConnectBundle:
        """Give a bundle that was not used yet.

        Raises:
            HarnessError: There is none.
        """
        if (first := self._first) is not None:
            self._first = None
            return first
        if self._renew is None:
            raise NoAnswer("it cannot be asked for another bundle")
        answer = await ask_again(self._renew)
        if not isinstance(answer, ConnectBundle):
            raise NoAnswer(f"it answered with a {type(answer).__name__}, expected a ConnectBundle as before")
        if answer.environment_id != self._environment_id:
            raise NoAnswer(f"its bundle is for environment `{answer.environment_id}`, not `{self._environment_id}`")
        if not isinstance(answer.executor_public_key, PublicKey):
            raise NoAnswer("its bundle holds no actors.noise.PublicKey as executor_public_key")
        return answer
