"""Paths as they travel."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.protocol import PathUriRefused, path_from_uri, uri_from_path

NAMES = (
    st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1)
    | st.lists(st.sampled_from(["%2F", "%2e", "%", "..", "#", "?", "\\", "a"]), min_size=1).map("".join)
).filter(lambda name: name not in {".", ".."})
# One letter and a colon at the root is a drive of another system.
PATHS = st.lists(NAMES).map(lambda names: "/" + "/".join(names)).filter(lambda path: path[2:3] not in {":", "|"})


@given(PATHS)
def test_a_path_comes_back_as_it_was(path: str) -> None:
    """Kills: not quoting `#`, `?`, `%` or a backslash; decoding escapes before dots are resolved."""
    assert path_from_uri(uri_from_path(path)) == path


@given(st.binary(min_size=1).filter(lambda raw: b"/" not in raw and b"\0" not in raw and raw not in {b".", b".."}))
def test_a_name_that_is_not_utf8_comes_back_as_it_was(raw: bytes) -> None:
    """Kills: decoding with replacement."""
    path = "/dir/" + raw.decode("utf-8", "surrogateescape")

    assert path_from_uri(uri_from_path(path)) == path


@given(st.text())
def test_whatever_comes_is_an_absolute_path_or_a_typed_refusal(text: str) -> None:
    """Kills: giving a relative path for `file:x`; letting a `..` climb out of the root."""
    for uri in (text, f"file:{text}", f"file://{text}", f"file:///{text}"):
        try:
            path = path_from_uri(uri)
        except PathUriRefused:
            continue
        assert path.startswith("/")
        assert "\0" not in path
        # A name may hold an escaped slash and so dots of its own; written dots are resolved.
        assert "%" in uri or not {".", ".."} & set(path.split("/"))


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b", "/a/b"),
        ("FILE:///a", "/a"),
        ("file://localhost/a", "/a"),
        ("file://LOCALHOST/a", "/a"),
        ("file:/a", "/a"),
        ("file:a", "/a"),
        ("file:", "/"),
        ("file:///a/../b", "/b"),
        ("file:///../../b", "/b"),
        ("file:///a/%2e%2E/b", "/b"),
        ("file:///a/./b/.", "/a/b/"),
        ("file:///%64", "/d"),
        ("file:///a%2Fb", "/a/b"),
        ("file:///a%2F../b", "/a/../b"),
        ("file:///a.txt/", "/a.txt/"),
        ("file:///sp%20ace%20%C3%A9.txt", "/sp ace é.txt"),
        ("file:///a%3Fb%23c", "/a?b#c"),
        ("file:///a%FFb", "/a\udcffb"),
        ("file:///100%", "/100%"),
    ],
)
def test_an_accepted_uri_names_this_path(uri: str, path: str) -> None:
    assert path_from_uri(uri) == path


@pytest.mark.parametrize(
    ("uri", "rule", "foreign"),
    [
        ("/tmp", "invalid URI: relative URL without a base", False),
        ("", "invalid URI: relative URL without a base", False),
        ("HTTP://x/y", "unsupported path URI scheme `http`", False),
        ("file:///d?x", "query parameters are not allowed in path URIs", False),
        ("file:///d#x", "fragments are not allowed in path URIs", False),
        ("file:///d#x?y", "fragments are not allowed in path URIs", False),
        ("file:///a%00b", "'file:///a%00b' is invalid on 'linux'", False),
        ("file://host/x", "'file://host/x' is invalid on 'linux'", True),
        ("file:///C:/x", "'file:///C:/x' is invalid on 'linux'", True),
        ("file:///c|", "'file:///c|' is invalid on 'linux'", True),
        ("file:///a\tb", "invalid URI: control character", False),
    ],
)
def test_a_refused_uri_is_refused_with_its_rule(uri: str, rule: str, foreign: bool) -> None:
    with pytest.raises(PathUriRefused) as caught:
        path_from_uri(uri)

    assert (caught.value.rule, caught.value.foreign) == (rule, foreign)


@pytest.mark.parametrize("path", ["relative", "", "/a\0b"])
def test_a_path_that_has_no_uri_is_refused(path: str) -> None:
    with pytest.raises(PathUriRefused):
        uri_from_path(path)
