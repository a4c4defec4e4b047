"""Who has which id: generations only grow, places stay, and what is remembered of freed ids is bounded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.environments import TooManyEnvironments
from actors.environments._roster import Roster

IDS = st.sampled_from("abcd")
STEPS = st.lists(st.tuples(st.sampled_from(["take", "free"]), IDS), max_size=40)


def take(roster: Roster[str], key: str) -> int:
    generation = roster.next_generation(key)
    roster.take(key, generation, f"{key}{generation}")
    return generation


@given(STEPS, st.integers(1, 4))
def test_a_generation_never_comes_twice_and_the_roster_agrees_with_a_plain_one(
    steps: list[tuple[str, str]], remembered: int
) -> None:
    """Mutants seen killed: free forgets the generation; the floor is not raised; take moves an id to the end."""
    roster: Roster[str] = Roster(most=10, remembered=remembered)
    plain: dict[str, str] = {}
    seen: dict[str, list[int]] = {}

    for step, key in steps:
        if step == "take":
            generation = take(roster, key)
            assert all(generation > before for before in seen.get(key, []))
            seen.setdefault(key, []).append(generation)
            plain[key] = f"{key}{generation}"
        else:
            assert roster.free(key) == plain.pop(key, None)
        assert [*roster] == [*plain.items()]
        assert len(roster) == len(plain)
        assert len(roster._freed) <= remembered


def test_the_first_generation_of_each_id_is_1() -> None:
    roster: Roster[str] = Roster(most=10)

    assert [take(roster, key) for key in "aabb"] == [1, 2, 1, 2]


def test_an_id_that_was_free_for_a_while_goes_on_counting() -> None:
    roster: Roster[str] = Roster(most=10)
    take(roster, "a")
    roster.free("a")

    assert take(roster, "a") == 2


def test_one_more_than_may_be_is_refused_and_a_replacement_is_not() -> None:
    roster: Roster[str] = Roster(most=2)
    take(roster, "a")
    take(roster, "b")
    take(roster, "a")

    with pytest.raises(TooManyEnvironments) as refused:
        take(roster, "c")

    assert (refused.value.environment_id, refused.value.most) == ("c", 2)
    assert "raise max_environments" in str(refused.value)
    assert [key for key, _ in roster] == ["a", "b"]


def test_it_hands_back_who_had_the_id() -> None:
    roster: Roster[str] = Roster(most=2)

    assert roster.take("a", 1, "first") is None
    assert roster.take("a", 2, "second") == "first"
    assert roster.get("a") == "second"
    assert roster.free("a") == "second"
    assert roster.get("a") is None
    assert roster.free("a") is None
