"""Who forgets `async with` is told what to write, by the very call."""

from collections.abc import AsyncGenerator
from inspect import signature
from typing import Any

import pytest

from actors import environments, executor, harness, rendezvous
from actors.blocks import block
from actors.environments._environment_files import EnvironmentFiles
from actors.environments.testing import open_manager_in_memory
from supervision import open_root
from tests.support.skips import package

STRANGER: Any = object()


@block
async def held(log: list[str], name: str = "it") -> AsyncGenerator[str, None]:
    """Hold something."""
    log.append("in")
    try:
        yield name
    except KeyError:
        log.append("mended")
    finally:
        log.append("out")


@pytest.mark.parametrize("name", ["get", "write", "__anext__"])
async def test_who_forgets_to_enter_is_told_what_to_write(name: str) -> None:
    log: list[str] = []
    with pytest.raises(AttributeError, match=r"held\(\.\.\.\) was not entered.*`async with held\(\.\.\.\) as"):
        getattr(held(log), name)
    assert log == []


async def test_who_iterates_awaits_or_uses_with_alone_is_told_what_to_write() -> None:
    """Seen failing with Python's own words ("got Block") before the block answered for itself."""
    log: list[str] = []
    forgotten: Any = held(log)
    with pytest.raises(
        TypeError, match=r"held\(\.\.\.\) was not entered, .*: write `async with held.* as .*`async for"
    ):
        async for _ in forgotten:
            pass
    with pytest.raises(TypeError, match=r"not entered, and there is nothing to await: write `async with held\("):
        await forgotten
    with pytest.raises(TypeError, match=r"and `with` alone cannot: write `async with held\("), forgotten:
        pass
    with pytest.raises(TypeError, match=r"not entered, .*: write `async with held\("):
        list(forgotten)
    assert log == []


async def test_who_uses_the_block_itself_or_enters_it_again_is_told_so() -> None:
    log: list[str] = []
    entered: Any = held(log)
    async with entered:
        with pytest.raises(AttributeError, match="itself has no 'upper': use what it gave, the name behind `as`"):
            entered.upper()
        with pytest.raises(TypeError, match="was entered already: use what it gave"):
            await entered
    with pytest.raises(TypeError, match="gives a block that is entered once: call it again"):
        async with entered:
            pass
    assert log == ["in", "out"]


async def test_the_events_of_a_manager_and_a_root_say_so_too() -> None:
    root: Any = open_root()
    async with open_manager_in_memory() as manager:
        forgotten: Any = manager.events()
        with pytest.raises(TypeError, match=r"EnvironmentManager\.events\(\.\.\.\) was not entered"):
            async for _ in forgotten:
                pass
    for mistaken in (root.__await__, root.__aiter__, root.__enter__):
        with pytest.raises(TypeError, match=r"open_root\(\) was not entered, .*: write `async with open_root\(\) as"):
            mistaken()


async def test_a_block_enters_leaves_and_mends_as_its_generator_does() -> None:
    log: list[str] = []
    async with held(log, name="x") as given:
        assert given == "x"
        raise KeyError
    assert log == ["in", "mended", "out"]

    with pytest.raises(ValueError, match="passes"):
        async with held(log):
            raise ValueError("passes")


def test_a_block_keeps_name_help_and_signature() -> None:
    function: Any = held
    assert (function.__name__, function.__doc__) == ("held", "Hold something.")
    assert [*signature(function).parameters] == ["log", "name"]


def test_the_blocks_of_sessions_say_so() -> None:
    sessions = package("actors.sessions", ".[sessions]")
    host = package("actors.sessions.host", ".[sessions]")
    for forgotten, call in [(sessions.open_provider("x"), "open_provider"), (host.open_host("x"), "open_host")]:
        with pytest.raises(AttributeError, match=rf"{call}\(\.\.\.\) was not entered"):
            _ = forgotten.get


@pytest.mark.parametrize(
    ("forgotten", "call"),
    [
        (lambda: environments.open_manager(STRANGER), "open_manager"),
        (lambda: harness.open_client(STRANGER), "open_client"),
        (lambda: executor.open_executor(), "open_executor"),
        (lambda: rendezvous.open_rendezvous(STRANGER), "open_rendezvous"),
        (lambda: rendezvous.open_registry_client(STRANGER, authenticate=STRANGER), "open_registry_client"),
        (lambda: harness.StartingProcess(STRANGER, STRANGER), r"processes\.start"),
        (lambda: EnvironmentFiles.open_read(STRANGER, "/f"), "open_read"),
        (lambda: EnvironmentFiles.open_write(STRANGER, "/f"), "open_write"),
    ],
)
async def test_the_blocks_of_the_packages_say_so(forgotten: Any, call: str) -> None:
    with pytest.raises(AttributeError, match=rf"{call}\(\.\.\.\) was not entered"):
        _ = forgotten().get
    with pytest.raises(TypeError, match=rf"{call}\(\.\.\.\) was not entered, and there is nothing to await"):
        await forgotten()
