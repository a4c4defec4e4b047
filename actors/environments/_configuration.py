"""From settings to a first set of environments: a snapshot, a URL value, or the Noise variables."""

from collections.abc import Iterable, Mapping
from typing import Final, cast

import attrs
from attrs.validators import optional

from actors.environments._demands import a_text, all_of, must_be_provider, must_be_text, of
from actors.environments._errors import ProtocolError, RegistryConfigurationError, TooManyEnvironments
from actors.environments._ids import LOCAL_ENVIRONMENT_ID, REMOTE_ENVIRONMENT_ID, check_environment_id
from actors.environments._printable import printable, shown_url, url_without_secrets
from actors.environments._provider import ConnectProvider, FixedEndpoint, PlainEndpoint, Secretive

REGISTRY_URL_VARIABLE: Final = "CODEX_EXEC_SERVER_NOISE_REGISTRY_URL"
ENVIRONMENT_ID_VARIABLE: Final = "CODEX_EXEC_SERVER_NOISE_ENVIRONMENT_ID"
AUTH_TOKEN_VARIABLE: Final = "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN"  # noqa: S105  # The name of a variable.
ACCOUNT_ID_VARIABLE: Final = "CODEX_EXEC_SERVER_NOISE_CHATGPT_ACCOUNT_ID"


_PAIRS = "it must hold pairs of an id and a provider or a URL"


def _as_pairs(pairs: Iterable[tuple[str, ConnectProvider | str]]) -> tuple[tuple[str, ConnectProvider | str], ...]:
    return all_of("environments", pairs, _is_pair, _PAIRS)


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple) and len(cast("tuple[object, ...]", value)) == 2


def _shown_pairs(pairs: tuple[tuple[str, ConnectProvider | str], ...]) -> str:
    return repr([(key, url_without_secrets(how) if isinstance(how, str) else how) for key, how in pairs])


@attrs.frozen(kw_only=True)
class Snapshot:
    """The environments with which a manager is opened. Nothing begins connecting before all of it was checked.

    Attributes:
        environments: Each id with its provider, or with the URL of a plain executor.
        default: The id of the default environment; none means that there is no default.
        include_local: Whether this machine is one of them.
    """

    environments: tuple[tuple[str, ConnectProvider | str], ...] = attrs.field(
        default=(), converter=_as_pairs, repr=_shown_pairs
    )
    default: str | None = attrs.field(default=None, validator=optional(a_text))
    include_local: bool = attrs.field(default=False, validator=of(bool))

    @classmethod
    def from_url(cls, value: str | None) -> "Snapshot":
        """Read a URL value: empty means this machine, ``none`` no environment, anything else the one at this URL."""
        url = normal_url(value)
        if url is None:
            return cls(default=LOCAL_ENVIRONMENT_ID, include_local=True)
        if url is DISABLED:
            return cls()
        return cls(environments=((REMOTE_ENVIRONMENT_ID, url),), default=REMOTE_ENVIRONMENT_ID)

    @classmethod
    def of_noise(cls, provider: ConnectProvider) -> "Snapshot":
        """One environment that is reached through this provider, as the default; not this machine."""
        return cls(environments=((REMOTE_ENVIRONMENT_ID, provider),), default=REMOTE_ENVIRONMENT_ID)


DISABLED: Final = "none"


def normal_url(value: str | None) -> str | None:
    """Trim a URL value; blank counts as absent, and ``none`` in any letters is `DISABLED`."""
    if value is not None:
        must_be_text("url", value)
    url = (value or "").strip()
    if not url:
        return None
    return DISABLED if url.lower() == DISABLED else url


def required_url(value: str) -> str:
    """The URL of a remote environment.

    Raises:
        ProtocolError: It is blank or disabled.
    """
    url = normal_url(value)
    if url is None:
        raise ProtocolError("remote environment requires an exec-server url")
    if url is DISABLED:
        raise ProtocolError("remote environment cannot use disabled exec-server url")
    return url


def check_snapshot(snapshot: Snapshot, *, can_be_local: bool, most: int) -> None:
    """Refuse a snapshot that does not hold together, before anything of it is used.

    Raises:
        ProtocolError: The rule that it breaks.
        InvalidOption: One of its providers or URLs cannot serve.
        TooManyEnvironments: It holds more than a manager with this bound may.
    """
    if snapshot.include_local and not can_be_local:
        raise ProtocolError("local environment requires configured runtime paths")
    _check_ids(environment_id for environment_id, _ in snapshot.environments)
    known = {environment_id for environment_id, _ in snapshot.environments}
    if snapshot.include_local:
        known.add(LOCAL_ENVIRONMENT_ID)
    if snapshot.default is not None and snapshot.default not in known:
        raise ProtocolError(f"default environment `{printable(snapshot.default)}` is not configured")
    for _, way in snapshot.environments:
        provider_of(way)
    if len(known) > most:
        raise TooManyEnvironments([*known][most], most)


def provider_of(way: ConnectProvider | str) -> ConnectProvider:
    """The provider of an environment that is given by a provider or by the URL of a plain executor.

    Raises:
        ProtocolError: The URL is blank, or says that it is disabled.
        InvalidOption: It is neither, or the URL is of another kind.
    """
    if isinstance(way, str):
        return FixedEndpoint(PlainEndpoint(websocket_url=required_url(way)))
    must_be_provider(way)
    return way


def _check_ids(ids: Iterable[str]) -> None:
    seen: set[str] = set()
    for environment_id in ids:
        check_environment_id(environment_id)
        if environment_id in seen:
            raise ProtocolError(f"environment id `{environment_id}` is duplicated")
        seen.add(environment_id)


@attrs.frozen(kw_only=True)
class NoiseSettings(Secretive):
    """What is needed to ask a registry for the bundle of one environment.

    Attributes:
        registry_url: Where the registry is.
        environment_id: How the registry calls the environment.
        auth_token: The right to ask.
        account_id: On whose account.
    """

    registry_url: str = attrs.field(repr=shown_url, validator=a_text)
    environment_id: str = attrs.field(validator=a_text)
    auth_token: str = attrs.field(repr=False, validator=a_text)
    account_id: str | None = attrs.field(default=None, validator=optional(a_text))

    @classmethod
    def from_variables(cls, variables: Mapping[str, str]) -> "NoiseSettings | None":
        """Read the four variables; values are trimmed, and a blank one counts as absent.

        Returns:
            None when none of the first three is set.

        Raises:
            RegistryConfigurationError: Some of the first three are set and some are not.
        """
        names = (REGISTRY_URL_VARIABLE, ENVIRONMENT_ID_VARIABLE, AUTH_TOKEN_VARIABLE)
        url, environment_id, token = (variables.get(name, "").strip() for name in names)
        if not (url or environment_id or token):
            return None
        if not (url and environment_id and token):
            raise RegistryConfigurationError(f"Noise environment requires {names[0]}, {names[1]}, and {names[2]}")
        account_id = variables.get(ACCOUNT_ID_VARIABLE, "").strip() or None
        return cls(registry_url=url, environment_id=environment_id, auth_token=token, account_id=account_id)
