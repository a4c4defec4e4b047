"""The manager: who has which id, and every way in. It owns no task: its environments run in pools it was given."""

from contextlib import AbstractAsyncContextManager
from typing import final

import attrs
import trio

from actors.environments._admission import Newcomer, admit, check_newcomer, lose_id, registration_of
from actors.environments._backstage import Backstage
from actors.environments._configuration import provider_of, required_url
from actors.environments._demands import must_be_grace, must_be_text
from actors.environments._environment import Environment, body_of
from actors.environments._errors import ManagerClosed, ProvisioningConflict
from actors.environments._event_stream import EnvironmentEvents
from actors.environments._given import Handle
from actors.environments._ids import LOCAL_ENVIRONMENT_ID, must_be_id
from actors.environments._lifecycle import Kind, Removed
from actors.environments._provider import ConnectProvider
from actors.environments._provisioning import check_report, publish, take_report, takes_reports
from actors.environments._ready_info import ReadyInfo
from actors.environments._registration import Registration
from actors.environments._roster import Roster
from actors.environments._status import EnvironmentStatus
from actors.environments._why import Why, explain_absence


@attrs.frozen(kw_only=True)
class ManagerStatistics:
    """How many environments there are, and how often what happened.

    Attributes:
        current: Environments that an id leads to.
        alive: Environments that have not ended, with those that were superseded or removed.
        registered: Generations ever let in.
        superseded: Generations that lost their id to a newer one.
        removed: Generations whose id was taken away.
        ended: Environments that were closed, by name or because nobody held them.
        ready: Gates that became ready.
        failed: Gates that failed.
        abandoned: Gates that were abandoned.
        late_completions: Completions of environments that had lost their id before.
        refused_completions: Registrations used twice, or after their environment had gone.
        attempts: Attempts to connect.
        look_ups: Bundles that refreshes were given.
        replaced: Sessions that a refresh retired, because another executor has the id.
        superseded_attempts: Attempts that a refresh gave up for one to who has the id now.
        operations: Operations under way now.
    """

    current: int
    alive: int
    registered: int
    superseded: int
    removed: int
    ended: int
    ready: int
    failed: int
    abandoned: int
    late_completions: int
    refused_completions: int
    attempts: int
    look_ups: int
    replaced: int
    superseded_attempts: int
    operations: int


@final
class EnvironmentManager(Handle):
    """Register, find, replace and remove environments. Opened by `open_manager`.

    What is not async here is done in one breath and visible on return; it may be called from any task of the run.
    """

    def __init__(self, backstage: Backstage, roster: Roster[Environment], default: str | None) -> None:
        self._backstage, self._roster, self._default = backstage, roster, default

    def __repr__(self) -> str:
        return f"<EnvironmentManager with {len(self._roster)} environments>"

    # Ways in.

    def register_deferred(
        self,
        environment_id: str,
        provider: ConnectProvider,
        *,
        deadline_s: float | None = None,
        bundle_environment_id: str | None = None,
    ) -> Registration:
        """Give an id to an environment that does not exist yet, and the right to complete it to the caller.

        Args:
            environment_id: Under which it is found from now on; who had the id is superseded.
            provider: Says how to connect; not asked before the gate opens.
            deadline_s: How long it may stay pending, in seconds from now, before the gate fails.
            bundle_environment_id: How the registry calls it in its bundles, if not by the same id.

        Raises:
            InvalidOption: The provider has no `connect_bundle`, or the deadline is no time.
            InvalidEnvironmentId: The id may not name an environment.
            TooManyEnvironments: The manager holds as many as it may.
            ManagerClosed: The manager takes nobody any more.
        """
        newcomer = Newcomer(
            environment_id=environment_id,
            kind=Kind.DEFERRED,
            provider=provider,
            deadline_s=deadline_s,
            bundle_environment_id=bundle_environment_id,
        )
        return registration_of(self._admit(newcomer, "register_deferred"))

    def upsert(
        self, environment_id: str, provider: ConnectProvider, *, bundle_environment_id: str | None = None
    ) -> Environment:
        """Give an id to an environment that can be connected to at once, and begin connecting in the background.

        Raises:
            InvalidOption: The provider has no `connect_bundle`.
            InvalidEnvironmentId: The id may not name an environment.
            TooManyEnvironments: The manager holds as many as it may.
            ManagerClosed: The manager takes nobody any more.
        """
        newcomer = Newcomer(
            environment_id=environment_id,
            kind=Kind.ORDINARY,
            provider=provider,
            bundle_environment_id=bundle_environment_id,
        )
        return self._admit(newcomer, "upsert")

    def upsert_url(self, environment_id: str, url: str) -> Environment:
        """Give an id to a plain executor at a ``ws://`` URL, and begin connecting in the background.

        Raises:
            ProtocolError: The URL is blank, or says that it is disabled.
            InvalidOption: The URL is no text, or of another kind.
            InvalidEnvironmentId: The id may not name an environment.
            TooManyEnvironments: The manager holds as many as it may.
            ManagerClosed: The manager takes nobody any more.
        """
        must_be_text("url", url)
        return self.upsert(environment_id, provider_of(required_url(url)))

    # Reports by id.

    def publish_ready_info(self, environment_id: str, info: ReadyInfo, *, generation: int | None = None) -> None:
        """Replace the information of the environment that has the id now; a gate is not opened by it.

        Args:
            environment_id: Whose information.
            info: The whole of it; an empty one clears it.
            generation: The one that is meant; with it, nobody else can be hit.

        Raises:
            UnknownEnvironment: Nobody has the id.
            StaleGeneration: Another generation has it.
            InvalidReadyInfo: The information breaks a rule; the old one stays.
        """
        now_s = self._now_s("publish_ready_info")
        environment = self.get(environment_id)
        body = None if environment is None else body_of(environment)
        publish(body, environment_id, info, generation, now_s)

    def report_provisioning(
        self,
        environment_id: str,
        info_or_failure: ReadyInfo | str,
        provider: ConnectProvider,
        *,
        recover: bool = False,
    ) -> Environment | None:
        """Report how the provisioning of an id went; whoever comes first, this or `materialize`, creates it.

        Args:
            environment_id: Whose provisioning.
            info_or_failure: Its information, or what failed.
            provider: Says how to connect, if this creates the environment; else it is not used.
            recover: Whether readiness may bring back an environment that failed or was abandoned, a deferred one too;
                while it is ready this changes nothing.

        Returns:
            The environment; None when it is one that needs no report, and then nothing changed.

        Raises:
            AlreadyReady: A failure of one that is ready.
            AlreadyFailed: Readiness of one that failed, without `recover`.
            InvalidReadyInfo: The information breaks a rule; a pending gate has failed with the same text.
            ProvisioningConflict: It is deferred: pending or ready, it is its registration's holder's to complete;
                failed or abandoned, only `recover` reaches it.
        """
        check_report(info_or_failure)
        environment = self.get(environment_id)
        if environment is None:
            newcomer = Newcomer(
                environment_id=environment_id, kind=Kind.PROVISIONED, provider=provider, report=info_or_failure
            )
            return self._admit(newcomer, "report_provisioning")
        now_s = self._now_s("report_provisioning")
        body = body_of(environment)
        if not takes_reports(body.life, recover=recover):
            return None
        take_report(body, info_or_failure, now_s, recover=recover)
        return environment

    def materialize(self, environment_id: str, provider: ConnectProvider) -> Environment:
        """Get the environment that is or will be reported under an id, creating it pending.

        Raises:
            ProvisioningConflict: The id belongs to one that is provisioned in another way.
        """
        environment = self.get(environment_id)
        if environment is None:
            newcomer = Newcomer(environment_id=environment_id, kind=Kind.PROVISIONED, provider=provider)
            return self._admit(newcomer, "materialize")
        if body_of(environment).life.kind is not Kind.PROVISIONED:
            raise ProvisioningConflict(environment_id, "manager.get() finds it whatever provisions it.")
        return environment

    # Finding.

    def get(self, environment_id: str) -> Environment | None:
        """Find who has the id now, whatever its state."""
        must_be_id(environment_id)
        return self._roster.get(environment_id)

    @property
    def default_environment(self) -> Environment | None:
        """Who has the default id now."""
        return None if self._default is None else self._roster.get(self._default)

    @property
    def default_environment_ids(self) -> tuple[str, ...]:
        """All ids with the default one first, in the order in which they were first taken; none without a default."""
        if self._default is None:
            return ()
        return (self._default, *(key for key, _ in self._roster if key != self._default))

    @property
    def environment_ids(self) -> tuple[str, ...]:
        """All ids, in the order in which they were first taken."""
        return tuple(key for key, _ in self._roster)

    def try_local_environment(self) -> Environment | None:
        """Find the environment on this machine, if this manager has one."""
        return self._roster.get(LOCAL_ENVIRONMENT_ID)

    async def status(self, environment_id: str) -> EnvironmentStatus | None:
        """Ask how the environment does that has the id now; None when nobody has it. Starts nothing.

        Cancelled:
            Nothing is left behind.
        """
        environment = self.get(environment_id)
        if environment is None:
            await trio.lowlevel.checkpoint()
            return None
        return await environment.status()

    def why(self, environment_id: str) -> Why:
        """Say why the environment that has the id now is what it is; or that there is none."""
        environment = self.get(environment_id)
        if environment is None:
            return explain_absence(environment_id, self._backstage.doing)
        return environment.why()

    def events(self, *, capacity: int = 1024) -> AbstractAsyncContextManager[EnvironmentEvents]:
        """Listen for as long as a block lasts; who is slow misses the oldest, told how many. Cancelled: it ends."""
        return self._backstage.events.listen(capacity)

    def statistics(self) -> ManagerStatistics:
        """Take a snapshot of the counters."""
        backstage = self._backstage
        return ManagerStatistics(
            current=len(self._roster),
            alive=len(backstage.bodies),
            operations=backstage.operations,
            **attrs.asdict(backstage.counters),
        )

    # Ways out.

    async def remove(self, environment_id: str) -> bool:
        """Take an id away. Who had it lives on for those who hold it; if nobody does, its end is waited for.

        Returns:
            Whether anybody had the id.

        Cancelled:
            The id is free all the same.
        """
        must_be_id(environment_id)
        now_s = self._now_s("remove")
        environment = self._roster.free(environment_id)
        if environment is None:
            await trio.lowlevel.checkpoint()
            return False
        body = body_of(environment)
        lose_id(environment, Removed(now_s), now_s)
        del environment  # From here on only others hold it.
        await trio.lowlevel.checkpoint()
        if body.released:
            await body.wait_stopped()
        return True

    async def drain(self, *, grace_s: float = 30.0) -> None:
        """Take nobody in any more, let operations under way finish, then close every environment.

        Args:
            grace_s: How long operations may take, 0 or more; what is not finished then ends with `EnvironmentClosed`.

        Cancelled:
            The manager takes nobody in; environments stay open.
        """
        must_be_grace("grace_s", grace_s)
        self._now_s("drain")
        self._backstage.doing = self._backstage.doing or "draining"
        with trio.move_on_after(grace_s):
            await self._backstage.wait_idle()
        await self._close_all("the manager was drained")

    async def aclose(self) -> None:
        """Close every environment, current or not: each wait ends with `EnvironmentClosed`. Twice is quiet.

        Cancelled:
            All of them are closed all the same.
        """
        await self._close_all("the manager was closed")

    async def _close_all(self, reason: str) -> None:
        backstage = self._backstage
        bodies = [*backstage.bodies]
        backstage.close(reason, self._now_s("aclose"))
        await trio.lowlevel.checkpoint()
        for body in bodies:
            await body.wait_stopped()

    def _admit(self, newcomer: Newcomer, operation: str) -> Environment:
        now_s = self._now_s(operation)
        if self._backstage.doing is not None:
            raise ManagerClosed(self._backstage.doing)
        check_newcomer(newcomer)
        return admit(newcomer, self._backstage, self._roster, now_s)

    def _now_s(self, operation: str) -> float:
        return self._backstage.now_s(operation)
