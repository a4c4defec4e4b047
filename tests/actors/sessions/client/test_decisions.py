"""What the pure modules decide: generations, retirement, admission, pinning, addresses, words, and the books."""

import uuid
from itertools import product

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from actors.sessions import (
    ExecuteRequest,
    HostUnavailable,
    OutputModeChanged,
    OutputTruncation,
    ProtocolViolation,
    ToolKind,
    ToolName,
    UnexpectedOutputMode,
    WaitRequest,
    status_text,
)
from actors.sessions._admission import pause_before_next_s
from actors.sessions._book import CALLBACKS_MAX, Answer, CellBook, Drop, Entry, Problem, Run
from actors.sessions._endpoint import endpoint_fault
from actors.sessions._errors import call_failed
from actors.sessions._generations import host_cell_id, public_cell_id
from actors.sessions._pinning import mode_settled, mode_to_ask_for
from actors.sessions._recent import RecentIds
from actors.sessions._retirement import failure_retires, silence_retires
from actors.sessions._wording import Operation, call_failed_text, cut_message
from actors.sessions.grpc import StatusCode
from tests.actors.sessions.client.recording import ECHO

GENERATIONS = st.integers(1, 300)
HOST_IDS = st.from_regex(r"[0-9:g]{1,6}", fullmatch=True)

# --- generations


def test_the_first_generation_passes_ids_through_and_later_ones_mark_them() -> None:
    assert public_cell_id(1, "2") == "2"
    assert public_cell_id(2, "1") == "g2:1"


@given(GENERATIONS, HOST_IDS)
def test_a_cell_is_found_under_the_name_its_own_generation_gave_it(generation: int, host_id: str) -> None:
    """Killed mutants: the mark counted from 0; `split(":")[1]`, which cuts an id that has a colon."""
    assert host_cell_id(generation, public_cell_id(generation, host_id)) == host_id


@given(GENERATIONS, GENERATIONS, st.integers(1, 10_000).map(str))
def test_a_cell_is_never_found_in_a_later_generation(earlier: int, later: int, host_id: str) -> None:
    """Killed mutants: the mark without its colon (2 and 21); any mark, or none, taken for its own."""
    assume(earlier != later and later > 1)

    assert host_cell_id(later, public_cell_id(earlier, host_id)) is None


# --- retirement


def retires_by_the_book(operation: Operation, code: StatusCode, route_lost: bool, routed: bool) -> bool:
    table = {
        (Operation.EXECUTION, StatusCode.NOT_FOUND), (Operation.WAIT, StatusCode.NOT_FOUND),
        (Operation.TERMINATION, StatusCode.NOT_FOUND),
    }  # fmt: skip
    if operation is Operation.YIELD_OBSERVATION:
        return False
    if operation in {Operation.TOOL_INVOCATION_COMPLETION, Operation.WAIT_CANCELLATION}:
        return True
    return (operation, code) in table or (code is StatusCode.UNAVAILABLE and route_lost and routed)


@pytest.mark.parametrize("operation", Operation)
def test_exactly_what_is_listed_ends_a_session(operation: Operation) -> None:
    """Killed mutants: a mark without a route enough; NOT_FOUND enough on any call; yielding not excepted."""
    for code, lost, routed in product(StatusCode, (True, False), (True, False)):
        expected = retires_by_the_book(operation, code, lost, routed)

        assert failure_retires(operation, code, route_lost=lost, routed=routed) is expected, (code, lost, routed)


def test_silence_ends_a_session_except_after_a_wish_to_yield() -> None:
    assert [operation for operation in Operation if not silence_retires(operation)] == [Operation.YIELD_OBSERVATION]


# --- admission


@given(st.sampled_from(StatusCode), st.lists(st.floats(0, 1), min_size=10, max_size=10))
def test_an_opening_is_retried_in_time_and_only_where_that_helps(code: StatusCode, chances: list[float]) -> None:
    """Killed mutants: four attempts; a first pause; a spread of a half; INTERNAL retried."""
    pauses: list[float] = []
    while (pause := pause_before_next_s(len(pauses) + 1, code, chance=chances[len(pauses)])) is not None:
        pauses.append(pause)

    if code in {StatusCode.UNAVAILABLE, StatusCode.RESOURCE_EXHAUSTED}:
        assert len(pauses) == 4
        assert pauses[0] == 0
        for pause, middle in zip(pauses[1:], (0.05, 0.1, 0.2), strict=True):
            assert middle * 0.9 <= pause <= middle * 1.1 + 1e-12
    else:
        assert pauses == []


# --- pinning

MODES = st.sampled_from(OutputTruncation)


@given(MODES, st.lists(st.booleans(), min_size=1, max_size=8))
def test_a_session_never_lives_in_two_modes(requested: OutputTruncation, hosts: list[bool]) -> None:
    """Meet hosts one after the other, each of which knows modes or not.

    Killed mutants: asking for the wish instead of the promise; taking the new answer; keeping no promise at all.
    """
    pinned: OutputTruncation | None = None
    for knows_modes in hosts:
        asked = mode_to_ask_for(requested, pinned)
        answer = 2 if knows_modes and asked is OutputTruncation.SERVER else 0
        try:
            settled = mode_settled(answer, requested=requested, pinned=pinned)
        except OutputModeChanged:
            event("refused")
            assert pinned is OutputTruncation.SERVER
            assert not knows_modes
            continue
        assert pinned in {None, settled}
        assert pinned is not None or (settled is OutputTruncation.SERVER) == (answer == 2)
        pinned = settled


def test_a_host_that_cuts_unasked_or_answers_nonsense_is_refused() -> None:
    client = OutputTruncation.CLIENT
    with pytest.raises(UnexpectedOutputMode):
        mode_settled(2, requested=client, pinned=None)
    with pytest.raises(OutputModeChanged):
        mode_settled(2, requested=OutputTruncation.SERVER, pinned=client)
    with pytest.raises(ProtocolViolation, match="unknown output truncation mode"):
        mode_settled(3, requested=client, pinned=None)

    assert mode_settled(1, requested=client, pinned=None) is client


# --- addresses and words


@pytest.mark.parametrize("url", ["http://a:1", "https://a", "http://[::1]:5/", "unix:/x", "unix:///x", "unix:x"])
def test_a_usable_address_has_no_fault(url: str) -> None:
    assert endpoint_fault(url) is None


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("ftp://a", "gRPC code-mode host URL must use http or https"),
        ("grpc://a:1", "gRPC code-mode host URL must use http or https"),
        ("http://u:p@a", "gRPC code-mode host URL must not include credentials"),
        ("http://@a", "gRPC code-mode host URL must not include credentials"),
        ("http://a/path", "gRPC code-mode host URL must not include a path, query, or fragment"),
        ("http://a?q", "gRPC code-mode host URL must not include a path, query, or fragment"),
        ("http://a#f", "gRPC code-mode host URL must not include a path, query, or fragment"),
        ("http://u:p@a:x", "invalid gRPC code-mode host URL: the host or port cannot be read"),
        ("http://", "invalid gRPC code-mode host URL: empty host"),
        ("unix:", "invalid gRPC code-mode host URL: a unix socket needs a path"),
    ],
)
def test_an_unusable_address_says_why(url: str, text: str) -> None:
    assert str(endpoint_fault(url)) == text


WIDE = "a\N{LATIN SMALL LETTER E WITH ACUTE}\N{EURO SIGN}\N{PERFORMING ARTS}"


@given(st.text(st.sampled_from(WIDE), min_size=120, max_size=300) | st.text(max_size=20))
def test_a_message_is_cut_at_512_bytes_between_characters(message: str) -> None:
    """Killed mutants: 512 bytes before the dots; characters counted; half a character shown."""
    cut = cut_message(message)
    data = message.encode("utf-8", "replace")

    if len(data) <= 512:
        assert cut == message
    else:
        assert 506 <= len(cut.encode()) <= 512
        assert cut.endswith("...")
        assert data.startswith(cut[:-3].encode())


def test_the_text_of_a_failure_depends_on_code_and_message_alone() -> None:
    error = call_failed(Operation.EXECUTION, StatusCode.UNAVAILABLE, "gone")

    assert isinstance(error, HostUnavailable)
    assert str(error) == "gRPC code-mode execution failed: " + status_text(StatusCode.UNAVAILABLE, "gone")
    assert str(error) == call_failed_text(Operation.EXECUTION, StatusCode.UNAVAILABLE, "gone")
    assert "gone" in str(error)


@pytest.mark.parametrize("value", [-1, 2**64])
def test_a_time_that_the_wire_cannot_carry_is_refused_at_birth(value: int) -> None:
    with pytest.raises(ValueError, match="yield_time_ms"):
        WaitRequest("1", value)
    with pytest.raises(ValueError, match="max_output_tokens"):
        ExecuteRequest(tool_call_id="c", source="", max_output_tokens=value)


# --- the books


@given(st.lists(st.integers(0, 12).map(str)), st.integers(1, 5))
def test_the_newest_ids_are_remembered(ids: list[str], capacity: int) -> None:
    """Killed mutants: the newest forgotten; one too many kept."""
    recent = RecentIds(capacity)
    expected: list[str] = []
    for identifier in ids:
        recent.add(identifier)
        if identifier not in expected:
            expected = [*expected, identifier][-capacity:]

    assert len(recent) == len(expected)
    assert all(identifier in recent for identifier in expected)


def test_at_the_limit_calls_are_answered_and_notifications_dropped() -> None:
    book = CellBook()
    book.register("e", "call-1", [ECHO])
    for _ in range(CALLBACKS_MAX):
        assert isinstance(book.admit_notification(str(uuid.uuid4()), "e", "1", "call-1"), Run)

    call = book.admit_tool_call(str(uuid.uuid4()), "e", "1", ToolName("echo"), ToolKind.FUNCTION)
    assert call == Answer(Problem.TOO_MANY_PENDING)
    assert book.admit_notification(str(uuid.uuid4()), "e", "1", "call-1") == Drop()
    assert book.pending == CALLBACKS_MAX


class Books(RuleBasedStateMachine):
    """Drive the books with events in any order, beside plain sets of what must be true.

    Killed mutants: `close` giving an execution twice; an active cell taken by a second execution; a finished callback
    still counted; a call of a closed cell given to the delegate; an early withdrawal forgotten; an execution kept
    after it is closed and settled.
    """

    executions = Bundle("executions")

    def __init__(self) -> None:
        super().__init__()
        self.book = CellBook()
        self.cells: dict[str, str] = {}
        self.closed: set[str] = set()
        self.settled: set[str] = set()
        self.pending: set[str] = set()
        self.early: set[str] = set()
        self.number = 0

    def invocation(self) -> str:
        self.number += 1
        return str(uuid.UUID(int=self.number))

    @rule(target=executions)
    def register(self) -> Entry:
        self.number += 1
        return self.book.register(f"e{self.number}", "call", [ECHO])

    def taken(self, execution_id: str, cell: str) -> bool:
        mine = self.cells.get(execution_id)
        others = {c for e, c in self.cells.items() if e != execution_id and e not in self.closed}
        return mine != cell if mine is not None else cell in others

    def is_open(self, execution_id: str) -> bool:
        return execution_id not in self.closed

    @rule(entry=executions, cell=st.sampled_from("123"))
    def start(self, entry: Entry, cell: str) -> None:
        execution_id = entry.execution_id
        if entry.started or execution_id in self.settled or not self.is_open(execution_id):
            return
        if self.taken(execution_id, cell):
            with pytest.raises(ProtocolViolation):
                self.book.start(entry, execution_id, cell)
            assert not entry.started
        else:
            self.book.start(entry, execution_id, cell)
            self.cells[execution_id] = cell

    @rule(entry=executions, cell=st.sampled_from("123"), enabled=st.booleans(), early=st.booleans())
    def call(self, entry: Entry, cell: str, enabled: bool, early: bool) -> None:
        execution_id, invocation_id = entry.execution_id, self.invocation()
        if early:
            assert self.book.cancel_tool_call(invocation_id) is False
        name = ToolName("echo" if enabled else "other")

        def admit() -> object:
            return self.book.admit_tool_call(invocation_id, execution_id, cell, name, ToolKind.FUNCTION)

        if early:
            assert admit() == Drop()
        elif not self.is_open(execution_id):
            assert admit() == Answer(Problem.CELL_CLOSED)
        elif self.taken(execution_id, cell):
            with pytest.raises(ProtocolViolation):
                admit()
        else:
            verdict = admit()
            self.cells[execution_id] = cell
            assert verdict == (Run(entry) if enabled else Answer(Problem.TOOL_NOT_ENABLED))
            if enabled:
                self.pending.add(invocation_id)
                assert self.book.cancel_tool_call(invocation_id) is True
        with pytest.raises(ProtocolViolation, match="reused"):
            admit()

    @rule(entry=executions, cell=st.sampled_from("123"))
    def notify(self, entry: Entry, cell: str) -> None:
        execution_id, notification_id = entry.execution_id, self.invocation()
        if not self.is_open(execution_id):
            assert self.book.admit_notification(notification_id, execution_id, cell, "call") == Drop()
        elif self.taken(execution_id, cell):
            with pytest.raises(ProtocolViolation):
                self.book.admit_notification(notification_id, execution_id, cell, "call")
        else:
            assert self.book.admit_notification(notification_id, execution_id, cell, "call") == Run(entry)
            self.cells[execution_id] = cell
            self.pending.add(notification_id)

    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        if self.pending:
            done = data.draw(st.sampled_from(sorted(self.pending)))
            self.pending.discard(done)
            self.book.finish(done)

    @rule(entry=executions, cell=st.sampled_from("123"))
    def close(self, entry: Entry, cell: str) -> None:
        execution_id = entry.execution_id
        if not self.is_open(execution_id):
            assert self.book.close(execution_id, cell) is None
        elif self.taken(execution_id, cell):
            with pytest.raises(ProtocolViolation):
                self.book.close(execution_id, cell)
        else:
            assert self.book.close(execution_id, cell) is entry
            self.cells[execution_id] = cell
            self.closed.add(execution_id)
            event("closed")

    @rule(entry=executions)
    def settle(self, entry: Entry) -> None:
        if entry.execution_id not in self.settled:
            self.book.settle(entry)
            self.settled.add(entry.execution_id)
            if entry.execution_id not in self.cells:
                self.closed.add(entry.execution_id)

    @invariant()
    def what_runs_is_what_has_a_cell_and_is_open(self) -> None:
        assert {entry.execution_id for entry in self.book.running()} == {*self.cells} - self.closed

    @invariant()
    def exactly_the_unfinished_callbacks_count(self) -> None:
        assert self.book.pending == len(self.pending)

    @invariant()
    def what_is_over_is_forgotten(self) -> None:
        assert not {*self.book._entries} & self.closed & self.settled


TestBooks = Books.TestCase
