"""The pure parts of what the client adds: exec pragma, true totals, errors kept apart, journal of stored values."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.sessions import (
    ExecSource,
    InputAudio,
    InputImage,
    InputText,
    InvalidRequest,
    OutputTotals,
    OutputTruncation,
    Result,
    Terminated,
    output_totals,
    read_exec_source,
    render_response,
)
from actors.sessions._journal import ALL_BYTES_MAX, Journal

# --- the pragma


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("text(1)", ExecSource(source="text(1)")),
        ("  text(1)\n", ExecSource(source="  text(1)\n")),
        ("text(1)\n// @exec: {}", ExecSource(source="text(1)\n// @exec: {}")),
        ("// @exec: {}\ntext(1)", ExecSource(source="text(1)")),
        (' // @exec:{"yield_time_ms":0}\na\nb', ExecSource(source="a\nb", yield_time_ms=0)),
        ('// @exec: {"max_output_tokens": 9007199254740991}\r\na', ExecSource(source="a", max_output_tokens=2**53 - 1)),
        ('// @exec: {"yield_time_ms": null, "max_output_tokens": 2.0}\na', ExecSource(source="a", max_output_tokens=2)),
    ],
)
def test_a_pragma_is_taken_off_the_first_line_and_nothing_else_is_touched(text: str, read: ExecSource) -> None:
    assert read_exec_source(text) == read


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (" \n\t", "exec expects raw JavaScript source text (non-empty)."),
        ("// @exec: {}", "exec pragma must be followed by JavaScript source on subsequent lines"),
        ("// @exec: {}\n  ", "exec pragma must be followed by JavaScript source on subsequent lines"),
        ("// @exec:\na", "exec pragma must be a JSON object with supported fields"),
        ("// @exec: 3\na", "exec pragma must be a JSON object with supported fields"),
        ("// @exec: {\na", "exec pragma must be valid JSON with supported fields"),
        ('// @exec: {"timeout": 1}\na', "exec pragma only supports"),
        ('// @exec: {"yield_time_ms": -1}\na', "must be a non-negative safe integer"),
        ('// @exec: {"yield_time_ms": 1.5}\na', "must be a non-negative safe integer"),
        ('// @exec: {"yield_time_ms": true}\na', "must be a non-negative safe integer"),
        ('// @exec: {"max_output_tokens": 9007199254740992}\na', "must be a non-negative safe integer"),
    ],
)
def test_a_pragma_that_is_not_valid_says_why(text: str, words: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read_exec_source(text)

    assert words in str(refused.value)


@given(st.text(), st.text())
def test_no_text_makes_the_pragma_reader_fail_otherwise(first: str, rest: str) -> None:
    try:
        read = read_exec_source(f"// @exec:{first}\n{rest}").source
    except InvalidRequest:
        read = ""

    assert f"{first}\n{rest}".endswith(read)


# --- totals


def test_client_output_is_counted_whole_beside_what_the_cut_tells() -> None:
    response = Result(cell_id="1", content_items=[InputText("a" * 400), InputText("b" * 399)], error_text=None)
    cut = render_response(response, max_output_tokens=5, true_totals=True)

    assert "original token count: 200" in cut[0].text  # type: ignore[union-attr]
    assert cut[1] == InputText("[True totals: 200 tokens of text, 2 lines, 0 images, 0 audio items]")


def test_output_that_fits_gets_no_line_of_totals() -> None:
    response = Result(cell_id="1", content_items=[InputText("a")])

    assert render_response(response, true_totals=True) == (InputText("a"),)


def test_mixed_client_output_is_counted_too() -> None:
    items = [InputText("a" * 100), InputImage("data:i"), InputAudio("data:" + "s" * 95), InputText("bb")]
    response = Result(cell_id="1", content_items=items)

    assert output_totals(response, OutputTruncation.CLIENT) == OutputTotals(tokens=26, lines=2, images=1, sounds=1)
    assert render_response(response, max_output_tokens=5, true_totals=True)[-1] == InputText(
        "[True totals: 26 tokens of text, 2 lines, 1 images, 1 audio items]"
    )


def test_what_a_host_dropped_is_added_to_what_its_header_counts() -> None:
    """The recorded numbers: 65 MiB thrown, a budget of 5."""
    response = Result(
        cell_id="1",
        content_items=[
            InputText(
                "Warning: truncated output (original token count: 262144)\nTotal output lines: 2\n\n"
                "Script err\u2026262139 tokens truncated\u2026"
            ),
            InputText(
                "[Code Mode session output limit reached: omitted 67108888 text bytes; "
                "discarded 0 text segments, 0 images, 0 audio items]"
            ),
            InputText("XXXXXX:end"),
        ],
        error_text="cut",
    )
    totals = output_totals(response, OutputTruncation.SERVER)

    assert totals.tokens == 262_144 + 67_108_888 // 4
    assert totals.dropped_text_bytes == 67_108_888


def test_images_and_sounds_that_a_host_left_out_are_counted() -> None:
    items = [
        InputImage("data:i"),
        InputText(
            "[Code Mode session output limit reached: across this observation, omitted 8 text bytes; "
            "discarded 2 text segments, 3 images, 4 audio items]"
        ),
        InputText("[omitted 5 audio items ...]"),
        InputText("1234"),
    ]
    totals = output_totals(Terminated(cell_id="1", content_items=items), OutputTruncation.SERVER)

    assert (totals.tokens, totals.images, totals.sounds, totals.dropped_texts) == (3, 4, 9, 2)


# --- errors kept out of the cut


def test_an_error_kept_apart_is_whole_however_much_was_printed() -> None:
    error = "TypeError: it broke\n    at exec_main.mjs:1:1"
    response = Result(cell_id="1", content_items=[InputText("x" * 100_000)], error_text=error)
    cut = render_response(response, max_output_tokens=5, error_apart=True)

    assert cut[-1] == InputText(f"Script error:\n{error}")
    assert "original token count: 25000" in cut[0].text  # type: ignore[union-attr]
    assert error not in str(render_response(response, max_output_tokens=5))


def test_an_error_kept_apart_is_bounded_too() -> None:
    response = Result(cell_id="1", content_items=[], error_text="e" * 70_000)
    [only] = render_response(response, max_output_tokens=0, error_apart=True)

    assert len(only.text.encode()) == len("Script error:\n") + 65_536  # type: ignore[union-attr]


# --- the journal

MARK = "mark:"


def report(key: str, value: object) -> str:
    return MARK + json.dumps([key, json.dumps(value)])


def put_back(journal: Journal) -> dict[str, object]:
    source = journal.restoring()
    if source is None:
        return {}
    pairs = json.loads(source[source.index(" of ") + 4 : source.rindex(")store(")])
    return {key: json.loads(value) for key, value in pairs}


def test_only_what_ended_by_itself_is_put_back_and_the_later_commit_wins() -> None:
    journal = Journal(MARK)
    for cell_id, key, value in [("1", "a", 1), ("2", "a", 2), ("3", "b", 3), ("4", "c", 4), ("1", "a", 5)]:
        assert journal.take(cell_id, report(key, value))
    journal.commit("2")
    journal.commit("1")
    journal.drop("3")
    journal.commit("3")

    assert put_back(journal) == {"a": 5}
    assert journal.keys == ("a",)


def test_a_text_of_a_script_is_no_report() -> None:
    journal = Journal(MARK)

    assert not journal.take("1", "hello")
    assert journal.take("1", MARK + "{broken")
    journal.commit("1")
    assert journal.restoring() is None


def test_a_lost_host_takes_what_was_not_committed_along() -> None:
    journal = Journal(MARK)
    journal.take("1", report("a", 1))
    journal.host_lost()
    journal.commit("1")

    assert journal.keys == ()


def test_what_could_not_be_put_back_is_forgotten() -> None:
    journal = Journal(MARK)
    for key in "ab":
        journal.take("1", report(key, key))
    journal.commit("1")
    journal.restored(("b",))

    assert put_back(journal) == {"b": "b"}


def test_values_over_the_bounds_are_named_and_not_kept() -> None:
    journal = Journal(MARK)
    journal.take("1", MARK + json.dumps(["big", None]))
    for number in range(12):
        journal.take("1", report(f"k{number}", "x" * 1_000_000))
        journal.commit("1")

    assert journal.keys == ("big", *(f"k{number}" for number in range(12)))
    assert len(journal.kept_keys) == 8
    assert sum(len(key) + len(json.dumps(value)) for key, value in put_back(journal).items()) <= ALL_BYTES_MAX


@given(st.lists(st.tuples(st.sampled_from("123"), st.sampled_from(["a", "b", "\u20ac"]), st.integers()), max_size=20))
def test_the_journal_is_a_dictionary_of_commits(writes: list[tuple[str, str, int]]) -> None:
    """Kills: an earlier commit that wins, a write that counts before its commit."""
    journal, expected = Journal(MARK), dict[str, object]()
    pending: dict[str, dict[str, object]] = {}
    for cell_id, key, value in writes:
        journal.take(cell_id, report(key, value))
        pending.setdefault(cell_id, {})[key] = value
        if value % 3 == 0:
            journal.commit(cell_id)
            expected.update(pending.pop(cell_id))

    assert put_back(journal) == expected
