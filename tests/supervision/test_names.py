"""Case P18: a name is refused, or kept as given and distinct everywhere; no name forges a line or steers a terminal.

Planted and killed: the check of printability, of normal form C, and of spaces at the ends left out; a name folded to
lower case; the escapes of the text and of the Mermaid drawing left out; the cut of long names left out.
"""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

import supervision as sv

ACCEPTED = [
    "env-a",
    "ENV-A",
    "a_b",
    "caf\u00e9",
    "con",
    "x" * 256,
    "x" * 255 + "y",
    "two words",
    "%%{init}%%",
    "'\"<>`#;&\\n",
]
REFUSED = [
    "", "a/b", "a ", " a", "cafe\u0301", "x" * 257, "a\u200fb", "a\nb", "a\r", "a\tb", "\x1b[31m",
    "a\x00", "\x7f", "\x9b1m", "a\u2028b", "\ud800", "a\u00a0", "\u202eabc", "\ufeff",
]  # fmt: skip


async def run(*, task_status: sv.ChildStatus[None]) -> None:
    task_status.started()


def shown_by(error: sv.InvalidSpec) -> bool:
    return str(error).isprintable() and str(error).isascii()


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_name_that_prints_as_itself_is_kept_exactly_as_given(name: str) -> None:
    kept = [sv.ChildSpec(name, run).name, sv.SupervisorSpec(name=name).name, sv.PoolSpec(name=name).name]

    assert kept == [name] * 3


@pytest.mark.parametrize("name", REFUSED, ids=ascii)
def test_any_other_name_is_refused_at_birth_and_shown_escaped(name: str) -> None:
    makes = [lambda: sv.ChildSpec(name, run), lambda: sv.SupervisorSpec(name=name), lambda: sv.PoolSpec(name=name)]
    for make in [*makes, lambda: sv.open_root(name)]:
        with pytest.raises(sv.InvalidSpec) as caught:
            make()

        assert caught.value.field.endswith(".name")
        assert shown_by(caught.value)
        assert len(str(caught.value)) < 600


async def test_names_that_look_alike_are_two_children_everywhere() -> None:
    names = ["env-a", "ENV-A", "x" * 255 + "a", "x" * 255 + "b", "a_b", "a-b"]
    async with sv.open_root() as root:
        for name in names:
            await root.start_child(sv.ChildSpec(name, run, restart=sv.Restart.TRANSIENT))
        await root.stop_child("env-a")
        tree = root.tree()

        assert [child.name for child in tree.children] == names
        assert all(tree.render_text().count(f"- {name}: ") == 1 for name in names)
        assert root.child("ENV-A") is not root.child("env-a")


@given(st.text(max_size=300))
def test_an_accepted_name_is_one_printable_word_of_a_path(name: str) -> None:
    refused = None
    try:
        kept = sv.ChildSpec(name, run).name
    except sv.InvalidSpec as error:
        kept, refused = None, error

    if refused is not None:
        assert shown_by(refused)
    else:
        assert kept == name
        assert name.isprintable()
        assert "/" not in name
        assert name.strip(" ") == name != ""
        assert unicodedata.normalize("NFC", name) == name
        assert len(name) <= 256


class Strange(Exception):
    pass


def picture_of(name: str) -> sv.SupervisorNode:
    Strange.__name__ = name.encode("utf-8", "ignore").decode().replace("\x00", "")[:50]
    node = sv.ChildNode(
        name=name, path=f"root/{name}", state=sv.ChildState.RUNNING, generation=1, restarts=0, uptime_s=1.0,
        last_cause=Strange(), supervisor=None,
    )  # fmt: skip
    return sv.SupervisorNode(
        path=name or "root", strategy=None, auto_shutdown=sv.AutoShutdown.NEVER, restarts_in_window=0,
        restarts_allowed=3, period_s=5.0, closing=False, children=(node,), omitted=0,
    )  # fmt: skip


MEANT_BY_MERMAID = set('"&<>\\`%')


@given(
    st.one_of(st.text(max_size=300), st.text(alphabet="\"'#&;<>`%{}[]()|\\\n\r\x1b\u2028\u202e\ud800a", max_size=40))
)
def test_the_drawings_stay_one_line_a_child_and_steer_nothing_whatever_a_picture_holds(name: str) -> None:
    """Pictures can be made by hand, so the drawings trust no name."""
    text, mermaid = picture_of(name).render_text(), picture_of(name).render_mermaid()

    assert len(text.split("\n")) == 2
    assert all(line.isprintable() for line in [*text.split("\n"), *mermaid.split("\n")])
    text.encode()
    lines = mermaid.split("\n")
    assert (lines[0], len(lines)) == ("flowchart TD", 4)
    for line in lines[1:3]:
        box = re.fullmatch(r'    n\d[(\[]"(.*)"[)\]]', line)
        assert box, line
        assert not MEANT_BY_MERMAID & set(box[1].replace("<br/>", ""))
        assert not re.search(r"#(?!\d+;)", box[1])
    assert re.fullmatch(r"    n1 --> n2", lines[3])


def test_a_name_far_too_long_for_a_drawing_is_cut_and_said_to_be_cut() -> None:
    text = picture_of("x" * 100_000).render_text()

    assert "x and 99744 more characters: running" in text
    assert len(text) < 10_000
