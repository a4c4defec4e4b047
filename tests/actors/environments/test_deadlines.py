"""Many deadlines of which most are called off: the right ones fall due, and marks do not pile up."""

from hypothesis import given
from hypothesis import strategies as st

from actors.environments._deadlines import Deadlines

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), st.sampled_from("abcde"), st.integers(1, 20)),
        st.tuples(st.just("off"), st.sampled_from("abcde"), st.just(0)),
        st.tuples(st.just("due"), st.just(""), st.integers(0, 20)),
    ),
    max_size=60,
)


@given(STEPS)
def test_what_falls_due_is_what_a_plain_dictionary_says(steps: list[tuple[str, str, int]]) -> None:
    """Mutants seen killed: a mark that was set anew still counts; `<` for `<=` in pop_due; call_off forgets nothing."""
    deadlines: Deadlines[str] = Deadlines()
    plain: dict[str, float] = {}

    for what, key, at_s in steps:
        if what == "set":
            deadlines.set(key, at_s)
            plain[key] = at_s
        elif what == "off":
            deadlines.call_off(key)
            plain.pop(key, None)
        else:
            due = [*deadlines.pop_due(at_s)]
            assert sorted(due) == sorted(key for key, when_s in plain.items() if when_s <= at_s)
            assert [plain[key] for key in due] == sorted(plain[key] for key in due)
            plain = {key: when_s for key, when_s in plain.items() if when_s > at_s}
        assert deadlines.next_s() == min(plain.values(), default=None)
        assert len(deadlines) == len(plain)


def test_a_hundred_thousand_called_off_deadlines_leave_few_marks() -> None:
    deadlines: Deadlines[int] = Deadlines()

    for key in range(100_000):
        deadlines.set(key, 3600.0)
        deadlines.call_off(key)

    assert len(deadlines) == 0
    assert deadlines.marks <= 100
