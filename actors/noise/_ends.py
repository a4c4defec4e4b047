"""The two ends of a handshake: whose turn it is, what sizes pass, and that nothing leaks when it fails.

An end is dead before it works and alive again only when the work has succeeded, so no failure, and no
interrupt, can leave a half-done handshake usable. Errors are raised outside the handler that caught their
cause: the cause's frames hold keys.
"""

import enum
import hmac
from collections.abc import Callable
from functools import partial
from typing import Final

from actors.noise._channel import Agreement, RecordLimits, SecureChannel
from actors.noise._errors import (
    ExecutorCredentialsRejected,
    HandshakeFailed,
    InvalidMessage,
    InvalidState,
    NoiseError,
)
from actors.noise._handshake import Handshake
from actors.noise._identity import Identity, pair_of_identity
from actors.noise._primitives import KeySource, SystemKeys
from actors.noise._public_key import PublicKey, key_of_pair, pair_of_key
from actors.noise._sealed import Sealed
from actors.noise._suite import (
    CREDENTIALS_REJECTED,
    MAX_AUTHORIZATION_BYTES,
    MAX_MESSAGE_BYTES,
    REQUEST_OVERHEAD_BYTES,
    RESPONSE_BYTES,
)

_DEFAULT_LIMITS: Final = RecordLimits()
MAX_PAYLOAD_BYTES: Final = MAX_MESSAGE_BYTES - REQUEST_OVERHEAD_BYTES


class _Phase(enum.Enum):
    NEW = "has not begun"
    ASKED = "waits for the answer"
    OVER = "is over"


class _End(Sealed):
    """What both ends share: the handshake while it lives, its phase, and the one way to fail."""

    __slots__ = ("_handshake", "_limits", "_phase")

    _handshake: Handshake | None
    _limits: RecordLimits
    _phase: _Phase

    def close(self) -> None:
        """Drop all keys of this handshake. Quiet when it is over already; a channel it gave lives on."""
        self._phase = _Phase.OVER
        self._handshake = None

    def _take(self, turn: _Phase) -> Handshake:
        """Return the handshake when it is its turn, and leave this end dead until the caller revives it."""
        phase, handshake = self._phase, self._handshake
        self.close()
        if phase is not turn or handshake is None:
            raise InvalidState(f"the handshake {phase.value}, and this step belongs to one that {turn.value}")
        return handshake

    def _revive(self, handshake: Handshake, phase: _Phase) -> None:
        self._handshake, self._phase = handshake, phase

    def _channel(self, handshake: Handshake) -> SecureChannel:
        send, receive = handshake.split()
        return SecureChannel(Agreement(send=send, receive=receive, limits=self._limits))


class Initiator(_End):
    """The harness end. Knows the executor's key beforehand; proves its own only to the holder of that key.

    One object serves one handshake: `write_request`, then `read_response`. It is dead after its first error.
    """

    __slots__ = ()

    def __init__(
        self,
        identity: Identity,
        executor: PublicKey,
        *,
        prologue: bytes,
        limits: RecordLimits | None = None,
        keys: KeySource | None = None,
    ) -> None:
        """Pin both halves of the executor's key.

        Args:
            identity: our own long-lived keys.
            executor: the key that must answer; come by it over a road you trust.
            prologue: what both ends must agree on; see `stream_prologue`.
            limits: what the channel may carry.
            keys: where ephemeral keys come from; anything but the default makes the channel readable to who
                knows them.
        """
        self._limits = limits or _DEFAULT_LIMITS
        handshake = Handshake(
            initiator=True,
            prologue=prologue,
            static=pair_of_identity(identity),
            remote_static=pair_of_key(executor),
            keys=keys or SystemKeys(),
        )
        self._revive(handshake, _Phase.NEW)

    def write_request(self, payload: bytes) -> bytes:
        """Return message 1 with the authorization in it, encrypted to the executor.

        Whoever holds the executor's keys, now or later, can read it and send it again: an authorization must
        be short-lived, used once, and bound to both keys and the stream.

        Raises:
            InvalidMessage: the payload is larger than 61,967 bytes. (Executors read at most 4,096.)
            InvalidState: not the first call.
        """
        handshake = self._take(_Phase.NEW)
        failure: Callable[[], NoiseError]
        if len(payload) > MAX_PAYLOAD_BYTES:
            failure = partial(InvalidMessage, "handshake payload is too large")
        else:
            try:
                message = handshake.write(payload)
                self._revive(handshake, _Phase.ASKED)
                return message
            except Exception:  # Anything may come out of a handshake, with keys in its frames: one error goes on.
                failure = HandshakeFailed
        del payload, handshake
        raise failure()

    def read_response(self, message: bytes) -> SecureChannel:
        """Read message 2 and return the channel: the executor has proved that it holds the pinned key.

        The executor knows the same of us only when our first record has reached it.

        Raises:
            InvalidMessage: the answer is too large, or its payload is not empty.
            ExecutorCredentialsRejected: the executor answered that the registry refuses its credentials.
            HandshakeFailed: anything else.
            InvalidState: no request was written, or this end is over.
        """
        handshake = self._take(_Phase.ASKED)
        failure: Callable[[], NoiseError]
        if (shape := _wrong_response_size(len(message))) is not None:
            failure = shape
        else:
            try:
                payload = handshake.read(message)
                if not payload:
                    return self._channel(handshake)
                failure = _meaning_of(payload)
            except Exception:  # Anything may come out of a handshake, with keys in its frames: one error goes on.
                failure = HandshakeFailed
        del handshake
        raise failure()


def _wrong_response_size(size: int) -> Callable[[], NoiseError] | None:
    """Judge message 2 by its length alone, which nobody can hide, before any cryptography."""
    if size > MAX_MESSAGE_BYTES:
        return partial(InvalidMessage, "handshake response is too large")
    if size in (RESPONSE_BYTES, RESPONSE_BYTES + len(CREDENTIALS_REJECTED)):
        return None
    return HandshakeFailed if size < RESPONSE_BYTES else _payload_must_be_empty


def _payload_must_be_empty() -> NoiseError:
    return InvalidMessage("handshake response payload must be empty")


def _meaning_of(payload: bytes) -> Callable[[], NoiseError]:
    rejected = hmac.compare_digest(payload, CREDENTIALS_REJECTED)
    return ExecutorCredentialsRejected if rejected else _payload_must_be_empty


class HandshakeRequest(Sealed):
    """What message 1 said. Believe it only so far: see `Responder.read_request`."""

    __slots__ = ("_payload", "_public_key")

    def __init__(self, public_key: PublicKey, payload: bytes) -> None:
        self._public_key = public_key
        self._payload = payload

    @property
    def public_key(self) -> PublicKey:
        """The harness's key. Have both halves authorized together: the ML-KEM half is only a claim so far."""
        return self._public_key

    @property
    def payload(self) -> bytes:
        """The authorization as bytes. A secret."""
        return self._payload

    @property
    def authorization(self) -> str:
        """The authorization as text. A secret.

        Raises:
            InvalidMessage: it is not valid UTF-8.
        """
        text = _from_utf8(self._payload)
        if text is None:
            raise InvalidMessage("handshake authorization is not valid UTF-8")
        return text


def _from_utf8(payload: bytes) -> str | None:
    """Return the text, or None: the decoder's own error would hold the payload."""
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return None


class Responder(_End):
    """The executor end, in two steps: read the request, have it authorized, and only then answer.

    One object serves one handshake: `read_request`, then one of `accept`, `reject_credentials` and `close`.
    It is dead after its first error. To a refused peer say nothing: every failure looks the same, a reset.
    """

    __slots__ = ("_max_request",)

    def __init__(
        self,
        identity: Identity,
        *,
        prologue: bytes,
        max_payload_bytes: int = MAX_AUTHORIZATION_BYTES,
        limits: RecordLimits | None = None,
        keys: KeySource | None = None,
    ) -> None:
        """Prepare to read one request; costs no public-key operation.

        Args:
            identity: our own long-lived keys.
            prologue: what both ends must agree on; see `stream_prologue`.
            max_payload_bytes: the largest authorization that is read, 0..61,967; longer requests cost no
                cryptography.
            limits: what the channel may carry.
            keys: where ephemeral keys come from; anything but the default makes the channel readable to who
                knows them.
        """
        if not 0 <= max_payload_bytes <= MAX_PAYLOAD_BYTES:
            raise ValueError(f"max_payload_bytes must lie in 0..{MAX_PAYLOAD_BYTES}, not {max_payload_bytes}")
        self._max_request = REQUEST_OVERHEAD_BYTES + max_payload_bytes
        self._limits = limits or _DEFAULT_LIMITS
        handshake = Handshake(
            initiator=False,
            prologue=prologue,
            static=pair_of_identity(identity),
            remote_static=None,
            keys=keys or SystemKeys(),
        )
        self._revive(handshake, _Phase.NEW)

    def read_request(self, message: bytes) -> HandshakeRequest:
        """Read message 1.

        The sender holds the X25519 key it names, unless our own keys are stolen; that it holds the ML-KEM
        key, and that this is no replay, is known only when its first record decrypts. Until then nothing may
        have an effect.

        Raises:
            InvalidMessage: the message is longer than the limit.
            HandshakeFailed: it was not made for our key and this prologue, or was changed.
            InvalidState: not the first call.
        """
        handshake = self._take(_Phase.NEW)
        failure: Callable[[], NoiseError]
        if len(message) > self._max_request:
            failure = partial(InvalidMessage, "handshake request is too large")
        elif len(message) < REQUEST_OVERHEAD_BYTES:
            failure = HandshakeFailed
        else:
            try:
                payload = handshake.read(message)
                if handshake.remote_static is not None:
                    handshake.check_remote_keys()  # An unusable key is refused before anybody is asked.
                    request = HandshakeRequest(key_of_pair(handshake.remote_static), payload)
                    self._revive(handshake, _Phase.ASKED)
                    return request
                failure = partial(HandshakeFailed, "handshake request is missing initiator static key")
            except Exception:  # Anything may come out of a handshake, with keys in its frames: one error goes on.
                failure = HandshakeFailed
        del handshake
        raise failure()

    def accept(self) -> tuple[bytes, SecureChannel]:
        """Return message 2 and the channel; call it when the request's key and payload were authorized.

        Raises:
            HandshakeFailed: the sender's ML-KEM keys are unusable.
            InvalidState: no request was read, or this end is over.
        """
        handshake = self._take(_Phase.ASKED)
        try:
            return handshake.write(b""), self._channel(handshake)
        except Exception:  # Anything may come out of a handshake, with keys in its frames: one error goes on.
            del handshake
        raise HandshakeFailed

    def reject_credentials(self) -> bytes:
        """Return the message 2 that tells the harness alone that the registry refuses our own credentials.

        For the registry's HTTP 401 and nothing else. There is no channel: whatever comes on this stream is
        reset.

        Raises:
            HandshakeFailed: the sender's ML-KEM keys are unusable.
            InvalidState: no request was read, or this end is over.
        """
        handshake = self._take(_Phase.ASKED)
        try:
            return handshake.write(CREDENTIALS_REJECTED)
        except Exception:  # Anything may come out of a handshake, with keys in its frames: one error goes on.
            del handshake
        raise HandshakeFailed
