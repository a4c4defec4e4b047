"""Keep an identity's seed in a file that only its owner can read.

Knows modes, owners and atomic replacement. Blocks on the disk: call it before the event loop starts or in a
thread.
"""

import base64
import binascii
import os
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from actors.noise._errors import IdentityFileRefused
from actors.noise._identity import IDENTITY_SEED_BYTES, Identity, pair_of_identity
from actors.noise._primitives import seed_of_pair
from actors.noise._suite import SUITE

_HEADER: Final = f"greenroom identity v1 {SUITE}\n".encode()
_FILE_BYTES: Final = len(_HEADER) + 4 * (IDENTITY_SEED_BYTES // 3) + 1
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def load_identity(path: str | os.PathLike[str]) -> Identity:
    """Read an identity that `store_identity` wrote.

    Raises:
        IdentityFileRefused: others than the owner have any right to the file, it belongs to another user, it
            is no plain file, or its content is not an identity of this suite.
        OSError: it cannot be opened or read.
    """
    name = os.fspath(path)
    # Not blocking, or a fifo would hold us; the checks are on the open file, so nobody can swap it in
    # between.
    descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        _check_ownership(name, os.fstat(descriptor))
        identity = _parse(os.read(descriptor, _FILE_BYTES + 1))
    finally:
        os.close(descriptor)
    if identity is None:
        raise IdentityFileRefused(name, "does not hold an identity of this suite; generate a new one")
    return identity


def store_identity(identity: Identity, path: str | os.PathLike[str], *, replace: bool = False) -> None:
    """Write an identity with mode 0600, whole or not at all, whatever the umask.

    Args:
        replace: allow an existing file to be replaced; an identity that is overwritten is gone.

    Raises:
        FileExistsError: the file exists and `replace` is false.
        OSError: the directory cannot be written.
    """
    target = Path(path)
    with _temporary_beside(target) as (descriptor, temporary):
        os.fchmod(descriptor, stat.S_IRUSR | stat.S_IWUSR)
        _write_all(descriptor, identity)
        os.fsync(descriptor)
        if replace:
            os.replace(temporary, target)
        else:
            os.link(temporary, target)  # Unlike a rename, a link refuses an existing name.
        _sync_directory(target.parent)


def load_or_generate_identity(path: str | os.PathLike[str]) -> Identity:
    """Read the identity at `path`, or make and store one where there is none.

    Two processes that start together end with the same identity: the first to store wins, the other reads.

    Raises:
        IdentityFileRefused: there is a file, and `load_identity` refuses it.
        OSError: the file can be neither read nor written.
    """
    with suppress(FileNotFoundError):
        return load_identity(path)
    with suppress(FileExistsError):
        store_identity(Identity.generate(), path)
    return load_identity(path)


def _check_ownership(name: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise IdentityFileRefused(name, "is not a plain file")
    if status.st_uid not in (os.geteuid(), 0):
        raise IdentityFileRefused(name, f"belongs to user {status.st_uid}, not to us (user {os.geteuid()})")
    if status.st_mode & _OTHERS:
        mode = stat.S_IMODE(status.st_mode)
        raise IdentityFileRefused(name, f"has mode {mode:04o}; only its owner may read it: chmod 0600")


def _parse(content: bytes) -> Identity | None:
    """Return the identity, or None: the content is a secret, so no error may carry it."""
    if len(content) != _FILE_BYTES or not content.startswith(_HEADER) or not content.endswith(b"\n"):
        return None
    try:
        return Identity.from_seed(base64.b64decode(content[len(_HEADER) : -1], validate=True))
    except (binascii.Error, ValueError):
        return None


def _write_all(descriptor: int, identity: Identity) -> None:
    # The content is never a local variable: a full disk raises here, and a traceback may be printed with
    # locals.
    if os.write(descriptor, _content(identity)) != _FILE_BYTES:
        raise OSError("the disk took only a part of the identity file")


def _content(identity: Identity) -> bytes:
    return _HEADER + base64.b64encode(seed_of_pair(pair_of_identity(identity))) + b"\n"


@contextmanager
def _temporary_beside(target: Path) -> Generator[tuple[int, str]]:
    """Open a new private file in the same directory, and leave nothing of it behind."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    try:
        yield descriptor, temporary
    finally:
        os.close(descriptor)
        Path(temporary).unlink(missing_ok=True)


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
