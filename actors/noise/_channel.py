"""Seal and open records with two keyed AEAD objects and two counters of our own.

This is all that is left of a handshake. A record's nonce is its number, implicit and never repeated; the
first failure in either direction ends both, and the keys are dropped with it. Nothing here waits: seal a
record and queue it in one breath, and the order on the wire is the order of the nonces.
"""

import struct
from collections.abc import Callable, Iterator
from functools import partial
from operator import length_hint
from typing import Final

import attrs
from cryptography.exceptions import InvalidTag

from actors.noise._errors import InvalidMessage, TransportFailed, TransportTruncated
from actors.noise._sealed import Sealed
from actors.noise._suite import MAX_PLAINTEXT_BYTES, MAX_RECORD_PLAINTEXT_BYTES, MAX_RECORDS, TAG_BYTES
from actors.noise._symmetric import Aead

_CLOSE: Final = b"greenroom close"
_FREE_EMPTY_RECORDS: Final = 1024

_Primitive = Callable[[bytes, bytes, bytes | None], bytes]


class _Ended(Exception):  # Never leaves this file.
    """Stands for the primitive after the channel's end."""


class _OutOfBounds(Exception):  # Never leaves this file.
    """A size that no record may have."""


class _Flooded(Exception):  # Never leaves this file.
    """More empty records than a peer has use for."""


def _ended(nonce: bytes, data: bytes, associated: bytes | None) -> bytes:
    raise _Ended


def _within(most: int) -> "Callable[[object, attrs.Attribute[int], int], None]":
    def check(instance: object, attribute: "attrs.Attribute[int]", value: int) -> None:
        if not 1 <= value <= most:
            raise ValueError(f"{attribute.name} must lie in 1..{most}, not {value}")

    return check


@attrs.frozen(kw_only=True)
class RecordLimits:
    """What one channel may carry, in either direction.

    Attributes:
        max_plaintext_bytes: Bytes in a record before its tag, 1..65,519. No peer of the relay sends more than the
            default.
        max_records: Records per direction: 1..4,294,967,295. There is no rekey: reconnect.
    """

    max_plaintext_bytes: int = attrs.field(default=MAX_PLAINTEXT_BYTES, validator=_within(MAX_RECORD_PLAINTEXT_BYTES))

    max_records: int = attrs.field(default=MAX_RECORDS, validator=_within(MAX_RECORDS))


class Agreement(Sealed):
    """What a finished handshake hands to its channel: a keyed AEAD object a direction, and the limits.

    One channel each: a second one over the same keys would repeat nonces.
    """

    __slots__ = ("limits", "receive", "send")

    def __init__(self, *, send: Aead, receive: Aead, limits: RecordLimits) -> None:
        self.send: Aead = send
        self.receive: Aead = receive
        self.limits: RecordLimits = limits


class SecureChannel(Sealed):
    """Both directions of one agreed channel. Given by `Initiator.read_response` and `Responder.accept`.

    Any error that it raises is its last word: it is dead, its keys are dropped, and every later call raises
    `TransportFailed`. Use it from one task, and send what `encrypt` returns in that order, each exactly once.
    """

    __slots__ = (
        "_alive", "_empty", "_max_ciphertext", "_max_plaintext", "_max_records", "_open", "_peer_closed",
        "_receive_nonces", "_receive_numbers", "_seal", "_send_nonces", "_send_numbers",
    )  # fmt: skip

    def __init__(self, agreement: Agreement) -> None:
        if type(agreement) is not Agreement:
            raise TypeError("a SecureChannel is the result of a handshake: see Initiator and Responder")
        limits = agreement.limits
        self._max_plaintext = limits.max_plaintext_bytes
        self._max_ciphertext = limits.max_plaintext_bytes + TAG_BYTES
        self._max_records = limits.max_records
        # Each number is drawn once, by the nonces; what is left of the numbers is the counter.
        self._send_numbers = iter(range(limits.max_records))
        self._receive_numbers = iter(range(limits.max_records))
        self._send_nonces = _nonces(self._send_numbers)
        self._receive_nonces = _nonces(self._receive_numbers)
        # After the end both are `_ended`, and both iterators of nonces are empty.
        self._seal: _Primitive = agreement.send.encrypt
        self._open: _Primitive = agreement.receive.decrypt
        self._empty = 0
        self._alive = True
        self._peer_closed = False

    def encrypt(self, plaintext: bytes) -> bytes:
        """Seal one record.

        Args:
            plaintext: at most `RecordLimits.max_plaintext_bytes`.

        Returns:
            The ciphertext, 16 bytes longer. To send it again, send these same bytes.

        Raises:
            InvalidMessage: the plaintext is too large. The channel is dead: the stream of bytes would have a
                hole.
            TransportFailed: the channel had ended, or its records are used up.
        """
        try:
            if len(plaintext) <= self._max_plaintext:
                return self._seal(next(self._send_nonces), plaintext, None)
            failure = self._end(_OutOfBounds("transport plaintext is too large"))
        except BaseException as error:  # Whatever it is, the channel is dead; an interrupt goes on as it came.
            failure = self._end(error)
        # Outside the handler and without the data: no frame of the new error's traceback holds either.
        del plaintext
        raise failure()

    def decrypt(self, ciphertext: bytes) -> bytes:
        """Open the next record; records must come in the order in which they were sealed.

        Returns:
            The plaintext. It is empty for an empty record and for the close record: see `peer_closed`.

        Raises:
            InvalidMessage: the size is none that a record may have.
            TransportFailed: the record was changed, replayed, out of order or of another channel, came after
                the peer's close, or the channel had ended.
        """
        try:
            if TAG_BYTES < len(ciphertext) <= self._max_ciphertext:
                return self._open(next(self._receive_nonces), ciphertext, None)
            if len(ciphertext) == TAG_BYTES:
                return self._open_empty(ciphertext)
            size = "short" if len(ciphertext) < TAG_BYTES else "large"
            failure = self._end(_OutOfBounds(f"transport ciphertext is too {size}"))
        except BaseException as error:  # Whatever it is, the channel is dead; an interrupt goes on as it came.
            failure = self._end(error)
        del ciphertext
        raise failure()

    def encrypt_close(self) -> bytes:
        """Seal the close record, the last of our direction: it tells a finished stream from a cut one.

        A peer that does not know this record cannot open it and resets the stream, which is where a close
        leads anyway.

        Raises:
            TransportFailed: the channel had ended, or its records are used up.
        """
        try:
            record = self._seal(next(self._send_nonces), b"", _CLOSE)
            self._seal = _ended
            return record
        except BaseException as error:  # Whatever it is, the channel is dead; an interrupt goes on as it came.
            failure = self._end(error)
        raise failure()

    def transport_ended(self) -> None:
        """Say that no more bytes will come; the channel ends.

        Raises:
            TransportTruncated: the peer had not closed the channel, so its last records may be missing. On a
                wire whose peers send no close record this is every end: the layer above must know by itself
                what is complete.
        """
        truncated = not self._peer_closed
        self.close()
        if truncated:
            raise TransportTruncated

    def close(self) -> None:
        """Drop the keys. Quiet when it is closed or dead already."""
        self._alive = False
        self._seal = self._open = _ended
        self._send_nonces = self._receive_nonces = iter(())

    @property
    def alive(self) -> bool:
        """False after the first failure and after `close`."""
        return self._alive

    @property
    def peer_closed(self) -> bool:
        """Whether the peer's authenticated close record was read."""
        return self._peer_closed

    @property
    def records_sent(self) -> int:
        """How many record numbers of our direction are used up: the next record has it as its nonce."""
        return self._max_records - length_hint(self._send_numbers)

    @property
    def records_received(self) -> int:
        """How many record numbers of the peer's direction are used up; a dead channel's last in vain."""
        return self._max_records - length_hint(self._receive_numbers)

    def _open_empty(self, ciphertext: bytes) -> bytes:
        """Open a record that is all tag: an empty one, or the close record; associated data tells which."""
        nonce = next(self._receive_nonces)
        try:
            self._open(nonce, ciphertext, None)
        except InvalidTag:
            self._open(nonce, ciphertext, _CLOSE)
            self._peer_closed = True
            self._open = _ended
        self._empty += 1
        if self._empty > _FREE_EMPTY_RECORDS + self.records_received // 2:
            raise _Flooded
        return b""

    def _end(self, error: BaseException) -> Callable[[], BaseException]:
        """Die, and return what makes the error to raise; `error` may have keys or data in its frames."""
        was_alive = self._alive
        self.close()
        if isinstance(error, TypeError):
            return partial(TypeError, "a record is a bytes-like object")
        if not isinstance(error, Exception):
            return lambda: error  # An interrupt goes on as it came; the channel did not survive it.
        if not was_alive:
            return partial(TransportFailed, "the channel has ended")
        match error:
            case _OutOfBounds():
                return partial(InvalidMessage, str(error))
            case _Ended():
                return partial(TransportFailed, "the close record must be the last in its direction")
            case _Flooded():
                return partial(TransportFailed, "too many empty records")
            case StopIteration():
                return partial(TransportFailed, "transport record nonce exhausted")
            case _:
                return TransportFailed


def _nonces(numbers: Iterator[int]) -> Iterator[bytes]:
    """Turn each number into its nonce: 4 zero bytes, then 8 bytes big-endian.

    One step of this iterator is one call into C, so not even two threads could draw the same nonce.
    """
    return map(struct.Struct(">4xQ").pack, numbers)
