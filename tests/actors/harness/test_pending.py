"""Open calls and stray answers (case P25, the judging part)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from actors.harness._pending import NoRoom, PendingCalls, Stray


@given(
    st.lists(st.tuples(st.sampled_from(["open", "reserve", "settle", "abandon", "end"]), st.integers(0, 4))),
    st.integers(1, 4),
)
@example([("open", 0), ("abandon", 1), ("settle", 1), ("settle", 1)], 1)
def test_every_answer_is_judged_as_a_naive_model_judges_it(steps: list[tuple[str, int]], limit: int) -> None:
    """Kills: an id given twice; the reserved place open to regular calls; an abandoned call counted as a duplicate;
    a second answer to an abandoned call counted as late again.
    """
    calls: PendingCalls[str] = PendingCalls(limit=limit)
    state: dict[int, str] = {}

    for step, number in steps:
        is_open = [key for key, value in state.items() if value == "open"]
        match step:
            case "open" | "reserve":
                room = limit + (step == "reserve")
                if len(is_open) >= room:
                    with pytest.raises(NoRoom):
                        calls.open("x", reserved=step == "reserve")
                    continue
                request_id = calls.open(f"call {len(state) + 1}", reserved=step == "reserve")
                assert request_id == len(state) + 1
                state[request_id] = "open"
            case "settle":
                expected = {"open": f"call {number}", "late": Stray.LATE, "done": Stray.DUPLICATE}
                assert calls.settle(number) == expected.get(state.get(number, ""), Stray.UNKNOWN)
                state.update({number: "done"} if number in state else {})
            case "abandon":
                calls.abandon(number)
                state.update({number: "late"} if state.get(number) == "open" else {})
            case _:
                assert calls.end_all() == [f"call {key}" for key in is_open]
                state.update(dict.fromkeys(is_open, "done"))
        assert len(calls) == list(state.values()).count("open")
        assert calls.full == (len(calls) >= limit)


@pytest.mark.parametrize("request_id", ["1", "", 0, -1, 2, 2**63 - 1])
def test_an_id_that_was_never_given_is_unknown(request_id: int | str) -> None:
    calls: PendingCalls[str] = PendingCalls(limit=1)
    calls.open("x")

    assert calls.settle(request_id) is Stray.UNKNOWN
    assert len(calls) == 1


def test_what_is_remembered_of_abandoned_calls_is_bounded() -> None:
    calls: PendingCalls[str] = PendingCalls(limit=1)
    for _ in range(5_000):
        calls.abandon(calls.open("x"))

    assert calls.settle(1) is Stray.DUPLICATE  # forgotten, and still no call's answer
    assert calls.settle(5_000) is Stray.LATE
