"""Which way a path leads, against a naive walker that resolves names one by one, as the system would."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.executor._routes import LeftRoots, Root, Route, TooManyTurns, names_of

Place = tuple[str, ...]
LINK = "link to "
ROOTS = {
    "one": [Root(("w",), ("w",))],
    "behind a link": [Root(("l",), ("w",))],
    "two": [Root(("w",), ("w",)), Root(("o", "x"), ("o", "x"))],
    "one in the other": [Root(("w",), ("w",)), Root(("w", "a"), ("w", "a"))],
    "everything": [Root((), ())],
}

starts = st.sampled_from([("w",), ("w",), ("l",), ("o", "x"), ("o",), ("w-evil",), ()])
steps = st.lists(st.sampled_from(["a", "a", "b", "b", "..", "..", ".", "w", "l"]), max_size=5).map(tuple)
paths = st.tuples(starts, steps).map(lambda parts: "/".join((*parts[0], *parts[1])))
# A relative target begins in the folder of its link; an absolute one anywhere.
targets = st.one_of(
    steps.filter(lambda names: any(name != "." for name in names)).map("/".join), paths.map(lambda path: f"/{path}")
)
insides = st.dictionaries(
    st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=2).map(tuple),
    st.one_of(st.just("folder"), targets.map(lambda target: LINK + target)),
    min_size=2,
    max_size=6,
)


class Disk:
    """What is inside the roots is as drawn; outside there are only folders, and the link to the root if it has one."""

    def __init__(self, roots: list[Root], inside: dict[Place, str]) -> None:
        self.roots, self.inside = roots, inside

    def within(self, place: Place) -> bool:
        return any(place[: len(root.real)] == root.real for root in self.roots)

    def at(self, place: Place) -> str | None:
        for root in self.roots:
            if place == root.path and root.path != root.real:
                return f"{LINK}/{'/'.join(root.real)}"
        for root in sorted(self.roots, key=lambda root: len(root.real)):
            if place[: len(root.real)] == root.real:
                below = place[len(root.real) :]
                return self.inside.get(below, "folder" if any(place == r.real for r in self.roots) else None)
        return "folder"


def naive(disk: Disk, path: str) -> Any:
    todo, here, links = list(names_of(path)), (), 0
    while todo:
        name = todo.pop(0)
        if name == "..":
            here = here[:-1]
            continue
        place = (*here, name)
        found = disk.at(place)
        if found is not None and found.startswith(LINK):
            target = found.removeprefix(LINK)
            links += disk.within(place)
            if links > 40:
                return "too many"
            todo[:0] = names_of(target)
            here = () if target.startswith("/") else here
        elif found == "folder" or not todo:
            here = place
        else:
            return "no way" if disk.within(place) else "left"
    return here if disk.within(here) else "left"


def ours(disk: Disk, path: str, touched: list[Place]) -> Any:
    try:
        route = Route(disk.roots, path)
        while True:
            name = route.take()
            route.back = False
            if name is None:
                return route.where
            if not name:
                continue
            place = (*route.where, name)
            touched.append(place)
            found = disk.at(place)
            if found is not None and found.startswith(LINK):
                route.followed(found.removeprefix(LINK))
            elif route.is_last:
                return place
            elif found == "folder":
                route.entered(name)
            else:
                return "no way"
    except LeftRoots:
        return "left"
    except TooManyTurns:
        return "too many"


@pytest.mark.parametrize("roots", ROOTS)
@settings(max_examples=200)
@given(inside=insides, path=paths)
def test_a_route_touches_nothing_outside_and_ends_where_the_system_would(
    roots: str, inside: dict[Place, str], path: str
) -> None:
    """Seen to kill: `..` at the top of a root ignored; an absolute target taken as a relative one; the place of a root
    compared by its beginning (`w-evil`); `..` that forgets to drop the name before it; the real place of a root left
    out of the comparison.
    """
    disk = Disk(ROOTS[roots], inside)
    touched: list[Place] = []

    assert ours(disk, path, touched) == naive(disk, path)
    assert all(disk.within(place) for place in touched)


def test_a_name_that_only_begins_like_a_root_is_outside() -> None:
    with pytest.raises(LeftRoots):
        Route(ROOTS["one"], "/w-evil/x")


def walk(roots: list[Root], path: str, *, links: bool = False) -> None:
    """Go to the end of a path; every name is a folder, or every name is a link to itself."""
    route = Route(roots, path)
    while (name := route.take()) is not None:
        if links:
            route.followed(name)
        elif name:
            route.entered(name)


@pytest.mark.parametrize("path", ["", "/", "..", "a/../../x", "/w/../x", "/w/a/../../../o"])
def test_what_leaves_by_the_letter_is_refused(path: str) -> None:
    with pytest.raises(LeftRoots):
        walk(ROOTS["one"], path)


def test_a_circle_ends() -> None:
    with pytest.raises(TooManyTurns):
        walk(ROOTS["one"], "/w/a", links=True)


def test_endless_ups_end() -> None:
    with pytest.raises(TooManyTurns):
        walk(ROOTS["everything"], "/a/.." * 1000)
