"""The operations of a registration for threads outside the run."""

from collections.abc import Callable
from typing import TYPE_CHECKING, final

import trio

from actors.environments._errors import RegistrationInactive
from actors.environments._ready_info import ReadyInfo

if TYPE_CHECKING:
    from actors.environments._registration import Registration


@final
class FromThread:
    """Complete, fail or abandon from any thread: each call waits until the run has carried it out.

    What the operation raises comes out here. After the end of the run the registration is inactive.
    """

    __slots__ = ("_registration", "_token")

    def __init__(self, registration: "Registration", token: trio.lowlevel.TrioToken) -> None:
        self._registration, self._token = registration, token

    def complete(self, info: ReadyInfo) -> None:
        """Do `Registration.complete` in the run."""
        self._carry_out(lambda: self._registration.complete(info))

    def fail(self, message: str) -> None:
        """Do `Registration.fail` in the run."""
        self._carry_out(lambda: self._registration.fail(message))

    def abandon(self) -> None:
        """Do `Registration.abandon` in the run; quiet when the run is over."""
        try:
            self._carry_out(self._registration.abandon)
        except RegistrationInactive:
            return

    def _carry_out(self, operation: Callable[[], None]) -> None:
        try:
            here = trio.lowlevel.current_trio_token()
        except RuntimeError:
            here = None
        if here is self._token:
            operation()  # It is no foreign thread after all.
            return
        try:
            trio.from_thread.run_sync(operation, trio_token=self._token)
        except trio.RunFinishedError:
            registration = self._registration
            raise RegistrationInactive(registration.environment_id, registration.generation) from None
