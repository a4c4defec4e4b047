"""Who forgets `async with` is told what to write, by the very call."""

from collections.abc import AsyncGenerator
from inspect import signature
from typing import Any

import pytest

from actors import environments, executor, harness, rendezvous
from actors.blocks import block
from actors.environments._environment_files import EnvironmentFiles

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


@pytest.mark.parametrize("name", ["get", "write", "__aiter__", "__enter__"])
async def test_who_forgets_to_enter_is_told_what_to_write(name: str) -> None:
    log: list[str] = []
    with pytest.raises(AttributeError, match=r"held\(\.\.\.\) was not entered.*`async with held\(\.\.\.\) as"):
        getattr(held(log), name)
    assert log == []


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
    sessions = pytest.importorskip("actors.sessions")
    host = pytest.importorskip("actors.sessions.host")
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
        (lambda: EnvironmentFiles.open_read(STRANGER, "/f"), "open_read"),
        (lambda: EnvironmentFiles.open_write(STRANGER, "/f"), "open_write"),
    ],
)
def test_the_blocks_of_the_packages_say_so(forgotten: Any, call: str) -> None:
    with pytest.raises(AttributeError, match=rf"{call}\(\.\.\.\) was not entered"):
        _ = forgotten().get
