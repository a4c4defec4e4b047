"""Case P18 for actors: their names keep the rule of the children they are."""

from typing import Any

import pytest

import actors
import supervision as sv


class Quiet(actors.Actor[str]):
    async def handle(self, message: str) -> None: ...


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[2J", "\ud800", "a/b", " a", "x" * 257, 5, ["a"]], ids=ascii)
async def test_a_name_that_could_forge_a_line_is_refused_when_the_actor_is_spawned(name: Any) -> None:
    async with sv.open_root() as root:
        pool = await root.start_pool("pool")
        for parent in (root, pool):
            with pytest.raises(sv.InvalidSpec) as awaited:
                await actors.spawn(parent, Quiet, name=name)
            with pytest.raises(sv.InvalidSpec) as at_once:
                actors.spawn_nowait(parent, Quiet, name=name)

            assert awaited.value.field == at_once.value.field == "ChildSpec.name"
            assert str(awaited.value).isprintable()
        assert [child.name for child in root.children()] == ["pool"]
        assert len(pool) == 0


async def test_a_class_whose_name_is_no_name_needs_one_given_to_it() -> None:
    strange = type("two\nlines", (Quiet,), {})

    async with sv.open_root() as root:
        with pytest.raises(sv.InvalidSpec, match=r"ChildSpec\.name: 'two\\nlines' is refused"):
            await actors.spawn(root, strange)
        reference = await actors.spawn(root, strange, name="named")

        assert reference.name == "named"


async def test_an_option_of_the_wrong_type_is_refused_also_where_it_cannot_be_looked_up() -> None:
    wrong: Any = {}

    async with sv.open_root() as root:
        with pytest.raises(sv.InvalidSpec, match=r"ChildSpec\.backoff: must be a Backoff or None, not a dict"):
            await actors.spawn(root, Quiet, backoff=wrong)

        assert root.children() == ()
