"""Scenes that need what a plain installation leaves out."""

from actors.cli._demo._stage import Stage

__all__ = ["code_session"]


async def code_session(stage: Stage) -> None:
    """Play the scene of code sessions where they can run, and say so where they cannot."""
    try:
        from actors.cli._demo._scenes._sessions import loses_its_code_host
        from actors.sessions.host import EngineNotFound, find_engine
    except ImportError as missing:
        stage.narrator.fact(f"left out: {missing}")
        return
    try:
        find_engine()
    except EngineNotFound as missing:
        stage.narrator.fact(f"left out: {missing}")
        return
    await loses_its_code_host(stage)
