"""Our nurseries are our own business: what a user catches does not tell how many there are."""

from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def plainly() -> Generator[None, None, None]:
    """Let one exception out of a nursery as it was raised; several stay a group."""
    try:
        yield
    except BaseExceptionGroup as group:
        if len(group.exceptions) != 1:
            raise
        alone = group.exceptions[0]
    else:
        return
    # Outside the handler, so that the group is not its context; its own cause stays.
    context = alone.__context__
    try:
        raise alone
    finally:
        alone.__context__ = context
        del alone, context
