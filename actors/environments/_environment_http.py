"""HTTP requests from within one environment, as users make them: the harness's, connecting if need be."""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from typing import Protocol, Unpack, final

from actors.blocks import block
from actors.environments._demands import must_be_options
from actors.environments._given import Given
from actors.environments._options import HttpOptions
from actors.environments._seams import Client
from actors.harness import HttpAnswer, HttpStream


class _Usable(Protocol):
    """What has an open link for a block."""

    def operation(self, name: str) -> AbstractAsyncContextManager[Client]:
        """Have it."""
        ...


@final
class EnvironmentHttp(metaclass=Given):
    """Makes HTTP requests from within an environment, which it keeps alive: its network, its variables.

    Each method connects if need be and raises as `Environment.wait_until_ready` does, or what the harness says:
    `actors.harness.HttpRequestFailed`, `HttpUnavailable`, that it was not asked, or that it may have been.
    """

    __slots__ = ("_environment",)

    def __init__(self, environment: _Usable) -> None:
        self._environment = environment

    async def request(self, method: str, url: str, **options: Unpack[HttpOptions]) -> HttpAnswer:
        """Make a request and give the whole answer, whatever its status.

        Args:
            method: Such as ``"GET"``.
            url: As seen from the environment.
            options: headers=None, body=None, json=None, timeout_s=None, follow_redirects=True: see `HttpOptions`.

        Cancelled:
            The executor is told to hang up.
        """
        must_be_options("request", options, HttpOptions)
        async with self._environment.operation("http.request") as client:
            return await client.http.request(method, url, **options)

    @block
    async def stream(self, method: str, url: str, **options: Unpack[HttpOptions]) -> AsyncGenerator[HttpStream, None]:
        """Make a request and take its body as it comes: ``async for piece in answer``.

        Args:
            method: Such as ``"GET"``.
            url: As seen from the environment.
            options: headers=None, body=None, json=None, timeout_s=None, follow_redirects=True: see `HttpOptions`.

        Cancelled:
            The executor is told to hang up.
        """
        must_be_options("stream", options, HttpOptions)
        async with (
            self._environment.operation("http.stream") as client,
            client.http.stream(method, url, **options) as answer,
        ):
            yield answer
