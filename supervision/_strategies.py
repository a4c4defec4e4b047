"""Which children share the fate of one that is restarted."""

from collections.abc import Sequence

from supervision._specs import Strategy
from supervision._states import Entry

__all__: list[str] = []


def sharing_fate(strategy: Strategy, children: Sequence[Entry], fallen: Entry) -> list[Entry]:
    """Return the children to stop and start together with ``fallen``, itself included, in start order."""
    match strategy:
        case Strategy.ONE_FOR_ONE:
            return [fallen]
        case Strategy.ONE_FOR_ALL:
            return list(children)
        case Strategy.REST_FOR_ONE:
            return list(children[children.index(fallen) :])
