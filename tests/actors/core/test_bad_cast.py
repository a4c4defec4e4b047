"""What could not play its part is refused when it is spawned, not at its first message."""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

import pytest

import actors
from actors import Actor, InvalidOption, StateMachineActor
from supervision import StartFailed, Supervisor
from tests.actors.core.troupe import Add, Counter


class Mute(Actor[Add]):
    """Does not say how to handle anything."""


class Plain(Actor[Add]):
    def handle(self, message: Add) -> Any:  # type: ignore[override]
        return None


class PlainStart(Counter):
    def started(self) -> Any:  # type: ignore[override]
        return None


class Stream(Actor[Add]):
    async def handle(self, message: Add) -> Any:  # type: ignore[override]
        yield message


class Idle(StateMachineActor[str, str]):
    """Does not say how to carry anything out."""


class Stranger:
    async def handle(self, message: Add) -> None: ...


class Switch:
    def handle(self, event: str) -> tuple["Switch", tuple[str, ...]]:
        return self, ()


class Wrapped(Actor[Add]):
    """Its method is a plain function around an async one, as decorators leave it."""

    async def really(self, message: Add) -> int:
        return message.number

    def handle(self, message: Add) -> Any:  # type: ignore[override]
        return self.really(message)

    update_wrapper(handle, really)


REFUSED = [
    (Mute, "must write `async def handle"),
    (Plain, "`handle` must be `async def`"),
    (PlainStart, "`started` must be `async def`"),
    (Stream, "`handle` must be `async def`"),
    (Stranger, "subclass of Actor"),
    (Idle, "subclass of Actor"),
]


@pytest.mark.parametrize(("made", "rule"), REFUSED)
async def test_a_class_that_could_not_handle_a_message_is_refused_at_spawn(
    root: Supervisor, made: Any, rule: str
) -> None:
    """Mutants: nothing is looked at; only `handle` is."""
    with pytest.raises(InvalidOption, match=rule) as waited:
        await actors.spawn(root, made)
    with pytest.raises(InvalidOption, match=rule):
        actors.spawn_nowait(root, made)

    assert (waited.value.field, waited.value.value) == ("make", made)
    assert root.children() == ()


@pytest.mark.parametrize("made", [Idle, Counter, Stranger])
async def test_a_class_that_could_not_carry_out_an_effect_is_refused_at_spawn(root: Supervisor, made: Any) -> None:
    with pytest.raises(InvalidOption, match="make"):
        await actors.spawn_machine(root, made, Switch())
    with pytest.raises(InvalidOption, match="make"):
        actors.spawn_machine_nowait(root, made, Switch())

    assert root.children() == ()


@pytest.mark.parametrize("made", [Mute, Plain, Stranger])
async def test_what_a_function_makes_is_looked_at_by_the_start(root: Supervisor, made: Callable[[], Any]) -> None:
    """Mutant: `begin` trusts what it was given."""
    with pytest.raises(StartFailed) as caught:
        await actors.spawn(root, lambda: made())

    assert isinstance(caught.value.__cause__, InvalidOption)
    assert root.children() == ()


async def test_a_method_around_an_async_one_is_as_good(root: Supervisor) -> None:
    ref = await actors.spawn(root, Wrapped)
    ref.tell_nowait(Add(1))
    ref.stop()

    assert (await ref.wait_stopped()).cause is None


async def test_a_mailbox_that_is_a_number_is_refused_at_spawn(root: Supervisor) -> None:
    five: Any = 5
    with pytest.raises(InvalidOption, match="Mailbox"):
        await actors.spawn(root, Counter, mailbox=five)
    with pytest.raises(InvalidOption, match="Mailbox"):
        actors.spawn_nowait(root, Counter, mailbox=five)

    assert root.children() == ()
