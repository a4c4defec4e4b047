"""Read a bearer token from a file that only its owner can read."""

import os
import stat

__all__ = ["TokenFileRefused", "read_token", "token_hint"]

_TOKEN_BYTES_MAX = 4096
_TOKEN_STATUS = (401, 403)


class TokenFileRefused(Exception):
    """A token file cannot be used; says which and why, never what it holds."""

    def __init__(self, path: str, rule: str, remedy: str) -> None:
        super().__init__(f"token file {path!r} {rule}: {remedy}")
        self.path, self.rule, self.remedy = path, rule, remedy


def read_token(path: str | None) -> str | None:
    """Read the token, without the line break at its end; ``None`` when there is no file to read.

    Raises:
        TokenFileRefused: It cannot be read, others can read it too, or it does not hold one line of ASCII.
    """
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            data = file.read(_TOKEN_BYTES_MAX + 1)
        _keep_to_ourselves(path)
    except OSError as error:
        raise TokenFileRefused(path, "cannot be read", error.strerror or "unknown reason") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise TokenFileRefused(path, "can be read by others", f"chmod 600 {path!r}")
    token = data.strip()
    if not token or len(data) > _TOKEN_BYTES_MAX or not token.isascii() or len(token.split()) != 1:
        raise TokenFileRefused(path, "does not hold a token", f"one word of ASCII, at most {_TOKEN_BYTES_MAX} bytes")
    return token.decode("ascii")


def _keep_to_ourselves(path: str) -> None:
    """A token handed over as an open descriptor must not go on to what this program starts."""
    folder, _, number = path.rpartition("/")
    if folder == "/dev/fd" and number.isdecimal():
        os.set_inheritable(int(number), False)


def token_hint(error: BaseException | None, path: str | None) -> str:
    """What to add to an error when it is the token that the other side does not like."""
    while error is not None and getattr(error, "status", None) not in _TOKEN_STATUS:
        error = error.__cause__
    if error is None:
        return ""
    if path is None:
        return "; it wants a token: name the file that holds it with --token-file"
    return f"; it does not take the token in {path!r}"
