"""Whatever happens to the connection, and whenever: nothing runs twice, nothing is made up, nothing is left."""

import attrs
import trio
from hypothesis import event, given
from hypothesis import strategies as st
from trio.testing import MockClock

from actors.harness import CompletedCommand, DidNotRun, HarnessError, MayHaveRun, RecoveryPolicy, open_client
from actors.harness.testing import Cut, FakeExecutor, FakeProcess, MemoryNetwork
from actors.protocol import Request
from tests.actors.harness.world import URL

LINES = 4


async def work(process: FakeProcess) -> int:
    """Write four lines, one a second, and exit with the number in the argument."""
    for line in range(LINES):
        process.write(f"{process.params.argv[1]} {line}\n".encode())
        await trio.sleep(1)
    return int(process.params.argv[1])


def output_of(number: int) -> bytes:
    return b"".join(b"%d %d\n" % (number, line) for line in range(LINES))


@attrs.frozen
class Fault:
    """Something that happens to the connection."""

    after_s: float
    how: Cut
    refused_s: float


@attrs.frozen
class Loss:
    """A request that is lost, before or after it is carried out, and the connection with it."""

    nth: int
    carried_out: bool


FAULTS = st.lists(
    st.builds(Fault, st.sampled_from([0.0, 0.5, 1.0, 7.0]), st.sampled_from(Cut), st.sampled_from([0.0, 1.0, 40.0])),
    max_size=4,
)
# Once a second instead of ten times, so that the virtual hours stay short in real time.
POLICY = RecoveryPolicy(first_delay_s=1.0, delay_max_s=1.0)
LOSSES = st.lists(st.builds(Loss, st.integers(1, 12), st.booleans()), max_size=3, unique_by=lambda loss: loss.nth)


@given(FAULTS, LOSSES, st.integers(1, 3))
def test_nothing_runs_twice_and_every_outcome_is_true(faults: list[Fault], losses: list[Loss], commands: int) -> None:
    """Kills: a start sent again after its answer was lost; a lost start taken for one that runs."""
    trio.run(scene, faults, losses, commands, clock=MockClock(autojump_threshold=0))


async def scene(faults: list[Fault], losses: list[Loss], commands: int) -> None:
    outcomes: dict[int, CompletedCommand | HarnessError] = {}
    seen = 0

    async def lose(request: Request) -> bool:
        nonlocal seen
        seen += 1
        if seen in {loss.nth for loss in losses if not loss.carried_out}:
            network.line.cut(Cut.RESET)
            return False
        return True

    async def lose_answer(request: Request) -> bool:
        if seen in {loss.nth for loss in losses if loss.carried_out}:
            network.line.cut(Cut.RESET)
        return True

    async def run(number: int) -> None:
        try:
            outcomes[number] = await client.run(["work", str(number)])
        except HarnessError as error:
            outcomes[number] = error

    async def happen() -> None:
        for fault in faults:
            await trio.sleep(fault.after_s)
            network.refusing = "refused" if fault.refused_s else None
            network.line.cut(fault.how)
            await trio.sleep(fault.refused_s)
            network.refusing = None

    async with trio.open_nursery() as nursery:
        executor = FakeExecutor(nursery, {"work": work})
        network = MemoryNetwork(executor.serve)
        async with open_client(URL, dialer=network, recovery=POLICY) as client:
            executor.before_request, executor.before_answer = lose, lose_answer
            with trio.fail_after(1000):
                async with trio.open_nursery() as inner:
                    inner.start_soon(happen)
                    for number in range(commands):
                        inner.start_soon(run, number)
            assert client.statistics().followed_processes == 0
        await trio.sleep(100)
        judge(outcomes, executor)
        assert not executor.sessions
        nursery.cancel_scope.cancel()


def judge(outcomes: dict[int, CompletedCommand | HarnessError], executor: FakeExecutor) -> None:
    for number, outcome in outcomes.items():
        runs = executor.started["work", str(number)]
        event(f"{type(outcome).__name__} after {runs} runs")
        assert runs <= 1
        if isinstance(outcome, CompletedCommand):
            assert (runs, outcome.exit_code, outcome.stdout) == (1, number, output_of(number))
        elif isinstance(outcome, DidNotRun):
            assert runs == 0
        else:
            assert isinstance(outcome, MayHaveRun)
