"""The root of what code sessions raise, and what a caller hears whose request breaks a rule."""

from actors import ActorsError


class SessionsError(ActorsError):
    """Be the root of what code sessions raise."""


class InvalidRequest(SessionsError, ValueError):
    """A request breaks a bound; nothing was sent."""


class InvalidArgument(InvalidRequest):
    """What was given is of the wrong kind; nothing was sent or opened."""

    def __init__(self, field: str, rule: str) -> None:
        super().__init__(f"{field}: {rule}")
        self.field: str = field
        self.rule: str = rule
