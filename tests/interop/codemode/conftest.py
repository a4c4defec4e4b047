"""Both hosts, started once."""

import pytest

from tests.interop.codemode.hosts import PROGRAM
from tests.support.skips import needs


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not PROGRAM:
        for item in items:
            if "interop/codemode" in str(item.path):
                item.add_marker(
                    needs(False, "the existing host", "run .ci/interop-codemode, or set GREENROOM_INTEROP_CODEMODE")
                )
