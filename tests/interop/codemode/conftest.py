"""Both hosts, started once."""

import pytest

from tests.interop.codemode.hosts import PROGRAM


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not PROGRAM:
        for item in items:
            if "interop/codemode" in str(item.path):
                item.add_marker(pytest.mark.skip(reason="GREENROOM_INTEROP_CODEMODE names no codex-code-mode-host"))
