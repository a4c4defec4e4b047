"""Twenty seeds of chaos for every day; `python -m tests.chaos.code_sessions` plays a thousand."""

import pytest

from tests.chaos.code_sessions import KINDS, REAL_EVERY, play

IN_MEMORY = [seed for seed in range(26) if seed % REAL_EVERY >= len(KINDS)][:20]


@pytest.mark.parametrize("seed", IN_MEMORY)
def test_the_promises_hold_whatever_is_killed_whenever(seed: int) -> None:
    """Kills: a closure told twice, a loss that is not told, a link whose tasks outlive it."""
    life = play(seed)

    assert life.killed
    assert life.ended["well"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_the_promises_hold_for_real_processes_too(seed: int) -> None:
    life = play(seed)

    assert life.killed
    assert life.ended["well"] > 0
