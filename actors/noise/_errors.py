"""What can go wrong in a secure channel: one family, a few kinds, no details.

A failed key agreement or an unreadable record says only that it failed. Which byte, tag or key was at fault
would help nobody but an attacker, so the sentences here are fixed and no error holds a key, a payload, or the
primitive's own exception.
"""

from typing import Any


class NoiseError(Exception):
    """The root of all errors of `actors.noise`; each leaf opens its sentence with the prefix of its kind."""

    prefix = "Noise channel failed: "

    def __reduce__(self) -> tuple[Any, ...]:
        # Born again without `__init__`, which would be given the finished sentence.
        return type(self).__new__, (type(self),), {**self.__dict__, "args": self.args}

    def __init__(self, what: str) -> None:
        super().__init__(self.prefix + what)
        self.what = what


class KeyGenerationFailed(NoiseError):
    """No identity or ephemeral key could be made, most likely because the backend lacks ML-KEM-768."""

    prefix = "Noise channel key generation failed: "


class InvalidPublicKey(NoiseError):
    """A public key was refused: its suite, its members, a length or an encoding."""

    prefix = "invalid Noise channel public key: "


class InvalidMessage(NoiseError):
    """A message or record was refused for its shape alone, before or without any cryptography."""

    prefix = "invalid Noise channel message: "


class InvalidState(NoiseError):
    """A call came out of turn, a second time, or after the object had ended."""

    prefix = "invalid Noise channel state: "


class HandshakeFailed(NoiseError):
    """The key agreement failed; every cryptographic cause looks the same."""

    prefix = "Noise channel handshake failed: "

    def __init__(self, what: str = "the handshake message was refused") -> None:
        super().__init__(what)


class ExecutorCredentialsRejected(HandshakeFailed):
    """The executor said, inside the handshake, that the registry refused the executor's own credentials.

    Another attempt by this harness cannot help; whoever runs the executor must renew its credentials.
    """

    def __init__(self) -> None:
        super().__init__("environment registry rejected executor credentials")


class TransportFailed(NoiseError):
    """A record could not be sealed or opened; the channel ended with this error."""

    prefix = "Noise channel transport failed: "

    def __init__(self, what: str = "the record was refused") -> None:
        super().__init__(what)


class TransportTruncated(TransportFailed):
    """The transport ended before the peer had closed the channel: what came last may be missing."""

    def __init__(self) -> None:
        super().__init__("the transport ended without an authenticated close record")


class IdentityFileRefused(NoiseError):
    """An identity file was not used or not written: wrong mode, owner, kind, size or content."""

    prefix = "Noise identity file refused: "

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path!r} {why}")
        self.path: str = path
        self.why: str = why
