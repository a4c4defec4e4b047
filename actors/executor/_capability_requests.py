"""Answer `capabilityRoots/discoverV1` for one connection."""

from functools import partial

from actors.executor._capability_discovery import Budget, discover_root
from actors.executor._file_requests import FileRequests, Files, tick
from actors.executor._refusals import RequestRefused
from actors.executor._requests import Call, Handlers
from actors.executor._sessions import Session
from actors.protocol import (
    CAPABILITY_ROOTS_DISCOVER,
    CAPABILITY_ROOTS_MAX,
    DiscoveredRoot,
    DiscoverRootsParams,
    DiscoverRootsResult,
    PathUriRefused,
    RootToDiscover,
    capability_roots_too_many,
    invalid_params,
    path_foreign,
    path_from_uri,
    root_uninspectable,
    sandbox_unconfigured,
)

__all__ = ["CapabilityRequests"]

# Text doubles at worst when it is written as JSON, but for control characters; the message limit has the last word.
_ANSWER_BYTES_MAX = 32 * 1024 * 1024


class CapabilityRequests:
    """The handler of `capabilityRoots/discoverV1`. Work is done as that on files is, and bounded with it."""

    def __init__(self, files: Files, requests: FileRequests) -> None:
        self._files, self._requests = files, requests

    def handlers(self) -> Handlers:
        """Give it by method name."""
        return {CAPABILITY_ROOTS_DISCOVER.name: self.discover_roots}

    def discover_roots(self, params: DiscoverRootsParams, call: Call, _session: Session) -> object:
        """Look into capability roots; what is wrong with one is said of that one."""
        if len(params.roots) > CAPABILITY_ROOTS_MAX:
            raise RequestRefused(capability_roots_too_many())
        if params.sandbox is not None and params.sandbox.confines:
            raise RequestRefused(sandbox_unconfigured())
        found = [self._root_of(root) for root in params.roots]

        async def work() -> DiscoverRootsResult:
            budget = Budget(_ANSWER_BYTES_MAX)
            return DiscoverRootsResult(roots=tuple([await self._discovered(*each, budget, call) for each in found]))

        return call.wait(work)

    def _root_of(self, root: RootToDiscover) -> tuple[RootToDiscover, str | None]:
        try:
            return root, path_from_uri(root.path, platform=self._files.platform)
        except PathUriRefused as fault:
            if not fault.foreign:
                raise RequestRefused(invalid_params(fault.rule)) from None
            return root, None

    async def _discovered(self, root: RootToDiscover, path: str | None, budget: Budget, call: Call) -> DiscoveredRoot:
        reason = path_foreign(root.path, self._files.platform).message
        if path is not None:
            try:
                return await self._requests.carry_out(
                    path, partial(discover_root, self._files.tree, root, path, budget, tick)
                )
            except RequestRefused as refusal:
                call.note_refused(refusal.failure)
                reason = refusal.failure.message
        return DiscoveredRoot(id=root.id, path=root.path, error=root_uninspectable(root.path, reason))
