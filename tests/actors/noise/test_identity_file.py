"""Identity files: private, whole or absent, and refused when anybody else could have read or written them."""

import os
import stat
from pathlib import Path

import pytest

from actors.noise import (
    Identity,
    IdentityFileRefused,
    load_identity,
    load_or_generate_identity,
    store_identity,
)
from actors.noise import _identity_file as identity_file
from tests.actors.noise.support import EXECUTOR, HARNESS, everything_said_by


def test_a_stored_identity_is_loaded_again(tmp_path: Path) -> None:
    store_identity(EXECUTOR, tmp_path / "identity")

    assert load_identity(tmp_path / "identity").public_key == EXECUTOR.public_key
    assert load_identity(str(tmp_path / "identity")).public_key == EXECUTOR.public_key


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_the_file_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        store_identity(EXECUTOR, tmp_path / "identity")
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "identity").stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o610, 0o601, 0o644, 0o666])
def test_a_file_on_which_others_have_any_right_is_refused(tmp_path: Path, mode: int) -> None:
    store_identity(EXECUTOR, tmp_path / "identity")
    (tmp_path / "identity").chmod(mode)

    with pytest.raises(IdentityFileRefused, match=f"has mode 0{mode:o}; only its owner may read it: chmod 0600"):
        load_identity(tmp_path / "identity")


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o700])
def test_a_file_that_only_its_owner_may_use_is_read(tmp_path: Path, mode: int) -> None:
    store_identity(EXECUTOR, tmp_path / "identity")
    (tmp_path / "identity").chmod(mode)

    assert load_identity(tmp_path / "identity").public_key == EXECUTOR.public_key


def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store_identity(EXECUTOR, tmp_path / "identity")
    owner = (tmp_path / "identity").stat().st_uid
    if owner == 0:
        os.chown(tmp_path / "identity", 12_345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: owner + 1)

    with pytest.raises(IdentityFileRefused, match="belongs to user"):
        load_identity(tmp_path / "identity")


@pytest.mark.parametrize("kind", ["directory", "fifo"])
def test_what_is_no_plain_file_is_refused_without_waiting_for_it(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "identity"
    path.mkdir(mode=0o700) if kind == "directory" else os.mkfifo(path, 0o600)

    with pytest.raises(IdentityFileRefused, match="is not a plain file"):
        load_identity(path)


def content_of(path: Path) -> bytes:
    store_identity(EXECUTOR, path)
    return path.read_bytes()


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:-1],
        lambda content: content + b"\n",
        lambda content: content.replace(b"v1", b"v2"),
        lambda content: content.replace(b"MLKEM768", b"MLKEM512"),
        lambda content: content[:-10] + b"!" + content[-9:],
        lambda content: bytes(len(content)),
    ],
)
def test_damaged_content_is_refused_and_never_quoted(tmp_path: Path, damage: object) -> None:
    path = tmp_path / "identity"
    content = content_of(path)
    path.write_bytes(damage(content))  # type: ignore[operator]

    with pytest.raises(IdentityFileRefused, match="does not hold an identity of this suite") as refused:
        load_identity(path)
    assert content.splitlines()[1].decode()[:20] not in everything_said_by(refused.value)


def test_an_existing_identity_is_not_overwritten_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "identity"
    store_identity(EXECUTOR, path)

    with pytest.raises(FileExistsError):
        store_identity(HARNESS, path)
    assert load_identity(path).public_key == EXECUTOR.public_key
    store_identity(HARNESS, path, replace=True)
    assert load_identity(path).public_key == HARNESS.public_key


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("step", ["fchmod", "write", "fsync", "link", "replace"])
def test_a_failure_at_any_step_leaves_the_old_file_or_none_and_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, replace: bool
) -> None:
    path = tmp_path / "identity"
    if replace:
        store_identity(EXECUTOR, path)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(identity_file.os, step, full)
        if step == ("link" if replace else "replace"):
            store_identity(HARNESS, path, replace=replace)
            return
        with pytest.raises(OSError, match="No space left") as failed:
            store_identity(HARNESS, path, replace=replace)
    secret = content_of(tmp_path / "other").splitlines()[1].decode()
    (tmp_path / "other").unlink()

    assert secret[:20] not in everything_said_by(failed.value)
    assert [entry.name for entry in tmp_path.iterdir()] == (["identity"] if replace else [])
    assert not replace or load_identity(path).public_key == EXECUTOR.public_key


def test_a_disk_that_takes_only_a_part_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    with monkeypatch.context() as patched:
        patched.setattr(identity_file.os, "write", lambda fd, data: write(fd, data[:10]))
        with pytest.raises(OSError, match="only a part"):
            store_identity(EXECUTOR, tmp_path / "identity")

    assert list(tmp_path.iterdir()) == []


def test_an_identity_is_generated_where_there_is_none_and_read_where_there_is_one(tmp_path: Path) -> None:
    first = load_or_generate_identity(tmp_path / "identity")
    second = load_or_generate_identity(tmp_path / "identity")

    assert first.public_key == second.public_key
    assert stat.S_IMODE((tmp_path / "identity").stat().st_mode) == 0o600


def test_of_two_that_generate_at_once_both_end_with_the_first_one_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate = Identity.generate

    def slow() -> Identity:
        store_identity(HARNESS, tmp_path / "identity")  # Another process was faster.
        return generate()

    monkeypatch.setattr(Identity, "generate", slow)

    assert load_or_generate_identity(tmp_path / "identity").public_key == HARNESS.public_key


def test_a_seed_of_another_length_is_refused_without_showing_it() -> None:
    secret = b"\xab" * 95

    with pytest.raises(ValueError, match="exactly 96 bytes") as refused:
        Identity.from_seed(secret)
    assert "xab" not in everything_said_by(refused.value)
