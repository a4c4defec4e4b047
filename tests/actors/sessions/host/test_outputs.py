"""What an observer in Client mode is told of an output that fits no answer."""

import pytest

from actors.sessions.host._outputs import MESSAGE_BYTES_MAX, Ending, WholeOutput

DOES_NOT_FIT = f"bytes does not fit the {MESSAGE_BYTES_MAX}-byte gRPC message limit"


@pytest.mark.parametrize("ending", [Ending.YIELDED, Ending.TERMINATED])
def test_an_output_that_fits_no_answer_has_a_text_in_its_place_where_no_error_fits(
    ending: Ending,
) -> None:
    output = WholeOutput()
    output.add([bytes(MESSAGE_BYTES_MAX)])

    outcome = output.outcome(ending, None, 0)

    assert outcome.error is None
    [told] = outcome.items
    assert isinstance(told, bytes)
    assert DOES_NOT_FIT in told.decode()


@pytest.mark.parametrize(("error", "fits"), [("\u20ac" * 1000, True), ("\u20ac" * (MESSAGE_BYTES_MAX // 3), False)])
def test_an_error_is_measured_in_bytes(error: str, fits: bool) -> None:
    outcome = WholeOutput().outcome(Ending.COMPLETED, error, 0)

    assert (outcome.error == error) is fits
    assert fits or DOES_NOT_FIT in (outcome.error or "")
