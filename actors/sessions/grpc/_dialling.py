"""Keep as many connections to one target as its calls need, opened lazily and shared by all callers."""

from collections.abc import Awaitable, Callable

import attrs
import trio

from actors.sessions.grpc._connection import Connection, Phase
from actors.sessions.grpc._errors import ChannelClosed, GrpcError
from actors.sessions.grpc._limits import KeepalivePolicy, Limits

Dial = Callable[[], Awaitable[trio.abc.Stream]]


class CannotConnect(GrpcError):
    """An attempt to connect failed; the channel turns it into `CallFailed`."""

    def __init__(self, target: str, why: str) -> None:
        super().__init__(f"could not connect to {target}: {why}")


@attrs.define(eq=False)
class _Attempt:
    done: trio.Event = attrs.field(factory=trio.Event)
    failure: CannotConnect | None = None
    # Whether the channel was released, and nobody has come since to wait for it.
    released: bool = False


class Connections:
    """The connections of one channel."""

    def __init__(
        self,
        nursery: trio.Nursery,
        target: str,
        dial: Dial,
        *,
        limits: Limits,
        keepalive: KeepalivePolicy,
        connections_max: int,
        connect_timeout_s: float,
    ) -> None:
        self._nursery, self._target, self._dial = nursery, target, dial
        self._limits, self._keepalive = limits, keepalive
        self._connections_max, self._connect_timeout_s = connections_max, connect_timeout_s
        self._open: list[Connection] = []
        self._attempt: _Attempt | None = None
        self._changes = trio.lowlevel.ParkingLot()
        self._closed = False
        self.dialled: int = 0

    @property
    def count(self) -> int:
        """Connections that are open now, draining ones included."""
        return len(self._open)

    def find(self) -> Connection | None:
        """Return a connection that can take a call now."""
        if self._closed:
            raise ChannelClosed(self._target)
        for connection in self._open:
            if connection.has_room:
                return connection
        return None

    async def wait(self) -> None:
        """Wait until `find` is worth another try: dial if that may help, else wait for a call to end.

        Raises:
            CannotConnect: The attempt that this caller waited for failed. All who waited share it.

        Cancelled:
            Only this wait ends; the attempt goes on for the others.
        """
        usable = [connection for connection in self._open if connection.phase is Phase.OPEN]
        if len(usable) >= self._connections_max:
            await self._changes.park()
            return
        attempt = self._attempt
        if attempt is None:
            attempt = self._attempt = _Attempt()
            self._nursery.start_soon(self._connect, attempt)
        attempt.released = False
        await attempt.done.wait()
        if attempt.failure is not None and not usable:
            raise attempt.failure

    async def _connect(self, attempt: _Attempt) -> None:
        connection: Connection | None = None
        try:
            with trio.move_on_after(self._connect_timeout_s) as patience:
                transport = await self._dial()
                if attempt.released:
                    return await trio.aclose_forcefully(transport)
                connection = self._begin(transport)
                await connection.wait_settled()
            if patience.cancelled_caught:
                attempt.failure = CannotConnect(self._target, f"no answer within {self._connect_timeout_s:g} s")
                self._abort(connection)
            elif connection is not None and connection.phase is Phase.ENDED:
                attempt.failure = CannotConnect(self._target, connection.lost_because)
        except (OSError, trio.BrokenResourceError, trio.ClosedResourceError) as refused:
            attempt.failure = CannotConnect(self._target, _said_by(refused))
            attempt.failure.__cause__ = refused
        finally:
            self._attempt = None
            attempt.done.set()

    def _begin(self, transport: trio.abc.Stream) -> Connection:
        self.dialled += 1
        connection = Connection(
            transport,
            client=True,
            limits=self._limits,
            keepalive=self._keepalive,
            changed=self._wake,
            too_many_pings=self._ask_half_as_often,
        )
        self._open.append(connection)
        self._nursery.start_soon(self._live, connection)
        return connection

    def _abort(self, connection: Connection | None) -> None:
        if connection is not None:
            connection.drain()

    async def _live(self, connection: Connection) -> None:
        try:
            await connection.run()
        finally:
            self._open.remove(connection)
            self._wake()

    def _ask_half_as_often(self) -> None:
        # What gRPC asks of a client whose server finds its pings a nuisance.
        self._keepalive = attrs.evolve(self._keepalive, interval_s=self._keepalive.interval_s * 2)

    def _wake(self) -> None:
        self._changes.unpark_all()

    def release(self) -> None:
        """Let every connection end once its calls have ended; the next call opens a new one.

        What is being dialled ends as soon as it is there: whoever asked for it has left.
        """
        for connection in [*self._open]:
            connection.drain()
        if self._attempt is not None:
            self._attempt.released = True

    def close(self) -> None:
        """Refuse every further call."""
        self._closed = True
        self._wake()


def _said_by(refused: Exception) -> str:
    said = str(refused) or type(refused).__name__
    # trio tries each address of a name and holds what became of each.
    reasons = getattr(refused.__cause__, "exceptions", ()) or (refused.__cause__ or refused,)
    if all(isinstance(reason, ConnectionRefusedError | FileNotFoundError) for reason in reasons):
        return f"{said}; nothing listens there: check the address, and that a server was started"
    return said
