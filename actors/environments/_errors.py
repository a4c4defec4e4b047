"""What can go wrong with an environment. The texts that peers know are kept word for word."""

from typing import Self

from actors import ActorsError
from actors.environments._printable import printable, time_text


class EnvironmentsError(ActorsError):
    """What all of them share."""


def without_frames(error: Exception) -> Exception | None:
    """An error of the same class that says the same, but was raised nowhere: it keeps no variable of anybody alive.

    Returns:
        None when its class does not let itself be made again.
    """
    try:
        twin = type(error).__new__(type(error), *error.args)
        twin.args = error.args
        twin.__dict__.update(error.__dict__)
        return twin if str(twin) == str(error) else None
    except Exception:  # It is somebody else's class, which may do anything; the text is kept elsewhere.
        return None


class OutOfPlace(EnvironmentsError):
    """An event has no place in the state it met; nothing was changed."""

    def __init__(self, state: str, event: str) -> None:
        super().__init__(f"{event} has no place while the environment is {state}; nothing was changed")
        self.state: str = state
        self.event: str = event


class ProtocolError(EnvironmentsError):
    """Somebody did not keep to what was agreed: a caller, a provider or a peer. Trying again does not help."""

    def __init__(self, message: str) -> None:
        super().__init__(f"exec-server protocol error: {message}")
        self.message = message


class InvalidEnvironmentId(ProtocolError):
    """This id may not name an environment."""

    def __init__(self, message: str, environment_id: str) -> None:
        super().__init__(message)
        self.environment_id = environment_id


class InvalidReadyInfo(ProtocolError):
    """This information may not be kept for this environment; what was there before still is."""

    def __init__(self, message: str, environment_id: str) -> None:
        super().__init__(message)
        self.environment_id = environment_id

    @classmethod
    def too_many(cls, environment_id: str, most: int) -> Self:
        """There are more roots than may be."""
        return cls(f"environment ready info contains more than {most} selected capability roots", environment_id)

    @classmethod
    def bad_root(cls, environment_id: str, root_id: str) -> Self:
        """A root is blank, doubled or of another environment; the note says which."""
        rule = "selected capability roots must have unique non-empty IDs and belong to environment"
        error = cls(f"{rule} `{environment_id}`", environment_id)
        error.add_note(f"The first root that breaks the rule has the id {ascii(root_id)[:120]}.")
        return error


class UnknownEnvironment(ProtocolError):
    """No environment is registered under this id."""

    def __init__(self, environment_id: str) -> None:
        super().__init__(f"environment `{printable(environment_id)}` is not registered")
        self.environment_id = environment_id


class AlreadyReady(ProtocolError):
    """A failure was reported of an environment that is ready; it stays ready."""

    def __init__(self, environment_id: str, message: str) -> None:
        said = f"is already ready, but a later provisioning report failed: {message}"
        super().__init__(f"environment `{environment_id}` {said}")
        self.environment_id: str = environment_id
        self.failure: str = message


class AlreadyFailed(ProtocolError):
    """Readiness was reported of an environment that failed; it stays failed unless it is recovered by name."""

    def __init__(self, environment_id: str, generation: int, message: str) -> None:
        super().__init__(f"environment `{environment_id}` has already failed: {message}")
        self.environment_id: str = environment_id
        self.generation: int = generation
        self.failure: str = message
        self.add_note("Report it with recover=True to bring this very environment back.")


class ProvisioningConflict(EnvironmentsError):
    """The id belongs to an environment that is provisioned in another way; it was left alone."""

    def __init__(self, environment_id: str, remedy: str = "") -> None:
        super().__init__(f"environment `{environment_id}` is already registered with a different provisioning mode")
        self.environment_id = environment_id
        self.add_note(remedy or "manager.get() finds it; remove it first to provision the id in another way.")


class TooManyEnvironments(EnvironmentsError):
    """The manager holds as many environments as it may; nothing was registered."""

    def __init__(self, environment_id: str, most: int) -> None:
        super().__init__(
            f"environment `{environment_id}` was not registered: this manager already holds {most} environments, the "
            "most it may; remove some or raise max_environments"
        )
        self.environment_id: str = environment_id
        self.most: int = most


class ManagerClosed(EnvironmentsError):
    """The manager takes no new environments: it is draining or closed."""

    def __init__(self, doing: str) -> None:
        super().__init__(f"the environment manager is {doing} and takes no new environments")
        self.doing = doing


_FROM_THREAD = ("complete", "fail", "abandon")


class NotInThisRun(EnvironmentsError):
    """A synchronous operation was called from outside the run that owns the environment."""

    def __init__(self, operation: str) -> None:
        from_thread = f"registration.from_thread.{operation}()" if operation in _FROM_THREAD else "trio.from_thread"
        super().__init__(
            f"{operation}() was called outside the run that owns the environment, or after its end; from another "
            f"thread use {from_thread}"
        )
        self.operation = operation


class RegistrationUsed(EnvironmentsError):
    """The registration was used before; what came first stands."""

    def __init__(self, environment_id: str, generation: int, outcome: str, ago_s: float) -> None:
        super().__init__(
            f"the registration of environment `{environment_id}` generation {generation} "
            f"{'was already completed' if outcome == 'ready' else 'has already ended'}: "
            f"{printable(outcome)}, {time_text(ago_s)} ago; the first outcome stands"
        )
        self.environment_id: str = environment_id
        self.generation: int = generation
        self.outcome: str = outcome
        self.ago_s: float = ago_s


class RegistrationInactive(EnvironmentsError):
    """The environment of this registration is gone, so there is nothing left to complete."""

    def __init__(self, environment_id: str, generation: int) -> None:
        super().__init__("deferred environment registration is inactive")
        self.environment_id: str = environment_id
        self.generation: int = generation
        self.add_note(
            f"Environment `{environment_id}` generation {generation} was closed, or nobody held it any more. Keep the "
            "registration's environment while it is provisioned, or register the id anew: manager.register_deferred()."
        )


class EnvironmentUnavailable(EnvironmentsError):
    """The gate of the environment failed or was abandoned, so it cannot be used."""

    def __init__(self, environment_id: str, generation: int, message: str, *, abandoned: bool = False) -> None:
        super().__init__(f"exec-server connection attempt failed: environment unavailable: {message}")
        self.environment_id: str = environment_id
        self.generation: int = generation
        self.message: str = message
        self.abandoned: bool = abandoned

    @property
    def retryable(self) -> bool:
        """Always false: the gate is terminal; register the environment anew, or recover it by name."""
        return False


class ConnectFailed(EnvironmentsError):
    """An attempt to connect failed; what the provider or the transport raised is the cause.

    Providers and transports may raise it themselves, with `retryable` saying whether another attempt makes sense.
    """

    def __init__(
        self, inner: str, *, retryable: bool = False, environment_id: str = "", generation: int = 0, attempt: int = 0
    ) -> None:
        super().__init__(f"exec-server connection attempt failed: {inner}")
        self.inner: str = inner
        self.retryable: bool = retryable
        self.environment_id: str = environment_id
        self.generation: int = generation
        self.attempt: int = attempt


class AttemptSuperseded(EnvironmentsError):
    """An attempt to connect was given up for a newer one, which leads to whoever has the environment's id now."""

    retryable: bool = True
    """Another operation joins the newer attempt."""

    def __init__(self) -> None:
        super().__init__("connection attempt was superseded")


class EnvironmentClosed(EnvironmentsError):
    """The environment was closed; it ends every wait and takes no more operations."""

    def __init__(self, environment_id: str, generation: int, reason: str) -> None:
        super().__init__(f"environment `{environment_id}` generation {generation} is closed: {reason}")
        self.add_note(
            "A closed environment stays closed. Take the one that has the id now, manager.get(), or register it anew: "
            "manager.register_deferred() or manager.upsert()."
        )
        self.environment_id: str = environment_id
        self.generation: int = generation
        self.reason: str = reason


class WillNotStop(EnvironmentsError):
    """An environment was closed, but its task goes on; nothing can end a task that shields itself."""

    def __init__(self, environment_id: str, generation: int, waited_s: float) -> None:
        super().__init__(
            f"environment `{environment_id}` generation {generation} is closed, but its task still runs {waited_s:g} s "
            "later: its provider or its connector shields itself from cancellation, or never awaits"
        )
        self.environment_id: str = environment_id
        self.generation: int = generation
        self.waited_s: float = waited_s


class NotSupported(EnvironmentsError):
    """This environment cannot do what was asked, now or ever; what is missing is named."""

    def __init__(self, operation: str, why: str) -> None:
        super().__init__(f"{operation} is not supported: {why}")
        self.operation: str = operation
        self.why: str = why


class RegistryConfigurationError(EnvironmentsError):
    """The settings of the registry do not hold together."""

    def __init__(self, message: str) -> None:
        super().__init__(f"environment registry configuration error: {message}")
        self.message = message


class StaleGeneration(ProtocolError):
    """The id belongs to another generation than the one that was meant; nothing was changed."""

    def __init__(self, environment_id: str, meant: int, current: int) -> None:
        super().__init__(f"environment `{environment_id}` is at generation {current}, not {meant}")
        self.environment_id: str = environment_id
        self.meant: int = meant
        self.current: int = current
