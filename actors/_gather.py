"""Ask many questions with one wait."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from trio.lowlevel import checkpoint, current_task, enable_ki_protection, wait_task_rescheduled

from actors._ask import Part, Whole
from actors._deadlines import ASK_TIMEOUT_S, check_timeout
from actors._errors import ActorsError, AsksFailed, InvalidOption, NotAQuestion
from actors._messages import Question
from actors._reference import Reference, seat_behind
from actors._seat import Seat
from actors._sweeper import sweeper_of_this_run

__all__ = ["ask_all"]

R = TypeVar("R")


@enable_ki_protection
async def ask_all(
    references: Reference[Any] | Sequence[Reference[Any]],
    questions: Iterable[Question[R]],
    *,
    timeout_s: float = ASK_TIMEOUT_S,
) -> list[R]:
    """Ask many questions at once and wait until each has an answer or an error.

    Args:
        references: One actor for all questions, or one for each.
        questions: In the order in which the answers come back.
        timeout_s: How long to wait for all of them together.

    Raises:
        NotAQuestion: One of them is not of a class made from `Question`; none was sent.
        AsksFailed: At least one question failed; it holds every error and every answer.

    Cancelled:
        Questions that were not taken are withdrawn; those taken are finished and their answers counted as late.
    """
    check_timeout(timeout_s)
    asked = listed(questions)
    seats = seats_for(references, asked)
    whole = Whole(current_task(), timeout_s)
    parts = whole.parts
    # One more than there are questions, so that nobody wakes this task before it is parked.
    whole.left = len(asked) + 1
    for question, seat in zip(asked, seats, strict=True):
        part = Part(question, seat, whole)
        parts.append(part)
        inbox = seat.inbox
        if len(inbox) < seat.room and seat.task is not whole.task:
            if seat.waiter is not None:
                seat.sweeper.check_run(seat)
                inbox.append(part)
                seat.wake()
            else:
                inbox.append(part)
        else:
            try:
                seat.accept_ask(part)
            except ActorsError as error:
                part.fail(error)
    whole.left -= 1
    if whole.left:
        if timeout_s != math.inf:
            sweeper_of_this_run().watch(whole, timeout_s)
        await wait_task_rescheduled(whole.abort)
    else:
        await checkpoint()
    return answers(parts)


def listed(questions: Any) -> list[Any]:
    """Give the questions as a list; refuse one that is in none."""
    if not isinstance(questions, Iterable):
        raise InvalidOption("questions", questions, "it must be a list of questions; ask(...) is for one")
    return list(questions)  # pyright: ignore[reportUnknownArgumentType]  # Looked at later, one by one.


def seats_for(references: Reference[Any] | Sequence[Reference[Any]], asked: Sequence[object]) -> list[Seat]:
    """Give the seat that each question goes to; refuse what is no question, and what is no reference."""
    for question in asked:
        if not isinstance(question, Question):
            raise NotAQuestion(question)
    if isinstance(references, Reference):
        return [seat_behind(references)] * len(asked)
    given: Any = references  # Types can be evaded.
    if not isinstance(given, Sequence) or not all(isinstance(one, Reference) for one in given):  # pyright: ignore[reportUnknownVariableType]  # Looked at here.
        raise InvalidOption("references", references, "it must be a reference to an actor, or a list of them")
    if len(references) != len(asked):
        raise InvalidOption("references", len(references), f"there must be one for each of the {len(asked)} questions")
    return [seat_behind(reference) for reference in references]


def answers(parts: Sequence[Part]) -> list[Any]:
    """Give the answers, or raise the errors together."""
    errors = [part.error for part in parts if part.error is not None]
    if not errors:
        return [part.value for part in parts]
    outcomes = [part.value if part.error is None else part.error for part in parts]
    raise AsksFailed(outcomes, [error for error in errors if isinstance(error, Exception)])
