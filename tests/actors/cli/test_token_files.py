import os
from pathlib import Path

import pytest

from actors.cli._executor_process import RegistryPlace
from actors.cli._tokens import TokenFileRefused, read_token


def token_file(place: Path, data: bytes, mode: int = 0o600) -> str:
    path = place / "token"
    path.write_bytes(data)
    path.chmod(mode)
    return str(path)


def test_a_token_is_read_without_its_line_break(tmp_path: Path) -> None:
    assert read_token(token_file(tmp_path, b"abc\n")) == "abc"


def test_no_file_is_no_token() -> None:
    assert read_token(None) is None


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666, 0o610])
def test_a_file_that_others_may_touch_is_refused_with_the_cure(tmp_path: Path, mode: int) -> None:
    with pytest.raises(TokenFileRefused, match="can be read by others: chmod 600"):
        read_token(token_file(tmp_path, b"abc", mode))


@pytest.mark.parametrize("data", [b"", b"\n", b"two words", b"line\nline", "grün".encode(), b"x" * 5000])
def test_what_is_no_token_is_refused_and_not_shown(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(TokenFileRefused, match="does not hold a token") as refused:
        read_token(token_file(tmp_path, data))

    assert "words" not in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(TokenFileRefused, match="cannot be read: No such file"):
        read_token(str(tmp_path / "absent"))


def test_a_token_is_taken_from_a_file_without_a_name_and_not_handed_on() -> None:
    """Mutant: the descriptor stays inheritable, so that whatever is started could read the token."""
    with RegistryPlace(registry_url="u", environment_id="e", token="abc").open_token() as descriptor:
        assert os.fstat(descriptor).st_nlink == 0
        os.set_inheritable(descriptor, True)

        assert read_token(f"/dev/fd/{descriptor}") == "abc"
        assert not os.get_inheritable(descriptor)


def test_the_place_of_an_executor_process_shows_no_token() -> None:
    assert "abc" not in repr(RegistryPlace(registry_url="u", environment_id="e", token="abc"))
