"""Ask a registry over HTTP: what executors and harnesses need of one. The one file that knows the HTTP client."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import attrs
import trio

from actors.blocks import block
from actors.noise import PublicKey
from actors.relay import Verdict, place_of, retry_after_s, silence_hint, why_unreachable
from actors.rendezvous._answers import (
    PROFILE,
    HarnessConnection,
    RegistryAuthFailed,
    RegistryConfigInvalid,
    RegistryError,
    RegistryRequestFailed,
    RemoteRegistration,
    connection_of,
    error_of,
    registration_of,
    validation_error_of,
    validity_of,
)
from actors.rendezvous._settings import RendezvousSettingInvalid, check_header_word, check_kind, check_seconds

if TYPE_CHECKING:
    import httpx2

__all__ = ["RegistryClient", "bearer", "open_registry_client"]

Headers = Callable[[], Awaitable[Mapping[str, str]]]
"""Gives the headers that authenticate one request; asked for each, so that tokens can be renewed."""

_MAX_ANSWER_BYTES = 1024 * 1024
_VALIDATE_RETRY_S = (0.25, 1.0)


def bearer(token: str, *, account_id: str | None = None) -> Headers:
    """Authenticate with a fixed token.

    Args:
        token: The bearer token.
        account_id: Sent as `chatgpt-account-id`, which some registries ask for.

    Raises:
        RendezvousSettingInvalid: No header can carry it.
    """
    check_header_word("token", token)
    if account_id is not None:
        check_header_word("account_id", account_id)
    headers = {"authorization": f"Bearer {token}"}
    if account_id is not None:
        headers["chatgpt-account-id"] = account_id

    async def give() -> Mapping[str, str]:
        await trio.lowlevel.checkpoint()
        return headers

    return give


@block
async def open_registry_client(
    base_url: str,
    authenticate: Headers,
    *,
    timeout_s: float = 10.0,
    transport: "httpx2.AsyncBaseTransport | None" = None,
) -> AsyncGenerator["RegistryClient", None]:
    """Prepare to ask a registry, for as long as the context lasts. Connects when it is asked something.

    Args:
        base_url: Where the registry is.
        authenticate: Gives the headers of each request; see `bearer`.
        timeout_s: How long one question may take, answer included.
        transport: How requests travel, for tests.

    Raises:
        RegistryConfigInvalid: The address is empty or no `http` or `https` URL.
        RendezvousSettingInvalid: An argument is of another kind.

    Cancelled:
        Its connections are closed.
    """
    check_kind("base_url", base_url, str)
    check_seconds("timeout_s", timeout_s)
    if not callable(authenticate):
        hint = "write bearer(token)" if isinstance(authenticate, str) else "see bearer"
        raise RendezvousSettingInvalid("authenticate", f"must be a function that gives headers; {hint}")
    # Here, not above: a router does not need it, and it takes 3 MB.
    import httpx2

    base = _checked_base(base_url)
    async with httpx2.AsyncClient(transport=transport, follow_redirects=False, timeout=None) as http:
        yield RegistryClient(base, authenticate, http, httpx2.HTTPError, timeout_s)


@attrs.define(repr=False)
class RegistryClient:
    """Asks one registry. Given by `open_registry_client`.

    Cancelled:
        The registry may have done what it was asked; what it gave out is used by nobody.
    """

    _base: str
    _authenticate: Headers
    _http: "httpx2.AsyncClient"
    _http_error: type[Exception]
    _timeout_s: float

    async def register(self, environment_id: str, key: PublicKey) -> RemoteRegistration:
        """Register an executor.

        Raises:
            RegistryError: It did not work; the error tells whether another attempt makes sense.
        """
        environment_id = _checked_id(environment_id)
        check_kind("key", key, PublicKey)
        content = {"security_profile": PROFILE, "executor_public_key": key.to_fields()}
        status, body, wait_s = await self._post(environment_id, "register", content)
        if not 200 <= status < 300:
            raise error_of(status, body, wait_s)
        return registration_of(body, environment_id)

    async def connect(self, environment_id: str, key: PublicKey) -> HarnessConnection:
        """Get what one connection attempt of a harness needs. It is used up by the attempt.

        Raises:
            RegistryError: It did not work; the error tells whether another attempt makes sense.
        """
        environment_id = _checked_id(environment_id)
        check_kind("key", key, PublicKey)
        status, body, wait_s = await self._post(environment_id, "connect", {"harness_public_key": key.to_fields()})
        if not 200 <= status < 300:
            raise error_of(status, body, wait_s)
        return connection_of(body, environment_id)

    async def validate(self, environment_id: str, registration_id: str, key: PublicKey, authorization: str) -> bool:
        """Ask whether a harness may have its stream.

        Raises:
            RegistryError: It could not be asked. No text of the answer is in it.
        """
        content = {
            "executor_registration_id": registration_id,
            "harness_public_key": key.to_fields(),
            "harness_key_authorization": authorization,
        }
        status, body, wait_s = await self._post(environment_id, "validate", content)
        if not 200 <= status < 300:
            raise validation_error_of(status, wait_s)
        return validity_of(body)

    async def verdict(self, environment_id: str, registration_id: str, key: PublicKey, authorization: str) -> Verdict:
        """Ask like `validate`, and say what it means for the executor; a busy registry is asked again, briefly.

        Only an answer that says "later" is followed by another question: when no answer came, the registry may have
        used the authorization up, and the harness comes back with a fresh one anyway.
        """
        for wait_s in (*_VALIDATE_RETRY_S, None):
            try:
                valid = await self.validate(environment_id, registration_id, key, authorization)
            except RegistryRequestFailed:
                return Verdict.TROUBLE
            except RegistryAuthFailed as error:
                return Verdict.CREDENTIALS_REFUSED if error.status == 401 else Verdict.TROUBLE
            except RegistryError as error:
                if not error.retryable or wait_s is None:
                    return Verdict.TROUBLE
                await trio.sleep(max(wait_s, error.retry_after_s or 0.0))
            else:
                return Verdict.VALID if valid else Verdict.REJECTED
        raise AssertionError("the last round returns")

    async def _post(self, environment_id: str, action: str, content: dict[str, Any]) -> tuple[int, bytes, float | None]:
        """Give status, body and what the answer says of when to come again."""
        url = f"{self._base}/cloud/environment/{quote(environment_id, safe='')}/{action}"
        failed = f"timed out: no answer in {self._timeout_s:g} s; check the address, and that a registry runs there"
        with trio.move_on_after(self._timeout_s):
            headers = dict(await self._authenticate())
            status: int | None = None
            try:
                async with self._http.stream("POST", url, json=content, headers=headers) as answer:
                    status = answer.status_code
                    wait_s = retry_after_s(answer.headers.get("retry-after", ""))
                    body = bytearray()
                    async for piece in answer.aiter_bytes():
                        body += piece
                        if len(body) > _MAX_ANSWER_BYTES:
                            break
                    return status, bytes(body[:_MAX_ANSWER_BYTES]), wait_s
            except self._http_error as error:
                # The error's own text may hold the URL, and its request the headers.
                scheme = self._base.partition(":")[0]
                failed = why_unreachable(error, scheme) or f"its answer was none of HTTP{silence_hint(scheme)}"
            if status is not None and status >= 400:
                return status, b"", None
        raise RegistryRequestFailed(f"{place_of(self._base)}: {failed}")

    def __repr__(self) -> str:
        """Show nothing that could be a secret."""
        return "RegistryClient(<redacted>)"


def _checked_base(base_url: str) -> str:
    base = base_url.strip().rstrip("/")
    try:
        parts = urlsplit(base)
        is_usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        rule = "the registry base URL must be an http or https URL"
        raise RegistryConfigInvalid(f"{rule} with a host, not {place_of(base_url.strip())!r}")
    return base


def _checked_id(environment_id: str) -> str:
    check_kind("environment_id", environment_id, str)
    if not (trimmed := environment_id.strip()):
        raise RegistryConfigInvalid("environment id is required for remote exec-server registration")
    if trimmed in (".", ".."):
        # A path segment of these is taken away on the road, and the question would be another one.
        raise RegistryConfigInvalid(f"environment id `{trimmed}` cannot stand in an address")
    return trimmed
