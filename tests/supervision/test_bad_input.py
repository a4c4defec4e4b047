"""Whatever is given wrongly is refused at once, with the field and the rule, and nothing has changed."""

import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

import supervision as sv


async def child(*, task_status: sv.ChildStatus[None]) -> None:
    task_status.started()


async def told(subject: object, number: int, *, task_status: sv.ChildStatus[None]) -> None:
    task_status.started()


class NotStarting:
    def __call__(self, *, task_status: object) -> int:
        return 5


class Deaf:
    async def __call__(self) -> None: ...


def deaf_function(number: int) -> Callable[..., Any]:
    async def deaf() -> None: ...

    async def hides_it(task_status: object, /) -> None: ...

    def synchronous(*, task_status: object) -> None: ...

    def unannotated(task_status):  # type: ignore[no-untyped-def]
        return None

    async def generates(*, task_status: object) -> AsyncIterator[None]:
        yield

    return [deaf, hides_it, synchronous, unannotated, generates, functools.partial(deaf)][number]


@pytest.mark.parametrize("number", range(6))
def test_a_function_that_cannot_be_a_child_is_refused_and_told_what_to_write(number: int) -> None:
    with pytest.raises(sv.InvalidSpec) as caught:
        sv.ChildSpec("a", deaf_function(number))

    assert caught.value.field == "ChildSpec.run"
    assert "write `async def " in caught.value.rule
    assert "task_status.started()" in caught.value.rule


def test_a_method_without_task_status_is_refused_like_a_function() -> None:
    class Worker:
        async def run(self) -> None: ...

    with pytest.raises(sv.InvalidSpec, match=r"run\(\) takes no argument `task_status`"):
        sv.ChildSpec("a", Worker().run)


def test_a_call_instead_of_a_function_is_refused_and_leaves_no_warning() -> None:
    with pytest.raises(sv.InvalidSpec, match="given beside its arguments and not called, not coroutine"):
        sv.ChildSpec("a", child(task_status=None))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrapped",
    [
        functools.partial(child),
        functools.wraps(child)(lambda **options: child(**options)),
        lambda task_status: child(task_status=task_status),
        functools.partial(told, "me", 5),
    ],
)
async def test_what_only_passes_on_to_an_async_function_is_a_child(wrapped: Callable[..., Awaitable[object]]) -> None:
    async with sv.open_root() as root:
        started = await root.start_child(sv.ChildSpec("a", wrapped, restart=sv.Restart.TEMPORARY))

        assert started.generation == 1


@pytest.mark.parametrize(
    ("run", "args", "said"),
    [
        (NotStarting(), (), r"NotStarting\(\) is not an async function: it gave back int; write"),
        (Deaf(), (), "unexpected keyword argument 'task_status'"),
        (child, (1,), "takes 0 positional arguments"),
        (told, (), "missing 2 required positional arguments"),
    ],
)
async def test_what_only_a_call_can_show_comes_out_as_the_cause_of_a_failed_start(
    run: Callable[..., Any], args: tuple[object, ...], said: str
) -> None:
    async with sv.open_root() as root:
        with pytest.raises(sv.StartFailed) as caught:
            await root.start_child(sv.ChildSpec("a", run, *args))

        assert root.children() == ()
    assert isinstance(caught.value.__cause__, sv.InvalidSpec)
    with pytest.raises(sv.InvalidSpec, match=said):
        raise caught.value.__cause__


async def test_a_type_error_of_the_function_itself_is_not_taken_for_a_call_that_does_not_fit() -> None:
    def makes(*, task_status: object, **_: object) -> Awaitable[None]:
        raise TypeError("mine")

    async with sv.open_root() as root:
        with pytest.raises(sv.StartFailed) as caught:
            await root.start_child(sv.ChildSpec("a", makes))

    assert repr(caught.value.__cause__) == "TypeError('mine')"


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: sv.ChildSpec("a", child, restart="always"), "ChildSpec.restart"),
        (lambda: sv.ChildSpec("a", child, shutdown_s="5"), "ChildSpec.shutdown_s"),
        (lambda: sv.ChildSpec("a", child, shutdown_s=True), "ChildSpec.shutdown_s"),
        (lambda: sv.ChildSpec("a", child, start_timeout_s=None), "ChildSpec.start_timeout_s"),
        (lambda: sv.ChildSpec("a", child, backoff=3), "ChildSpec.backoff"),
        (lambda: sv.ChildSpec("a", child, significant="yes"), "ChildSpec.significant"),
        (lambda: sv.ChildSpec("a", child, on_gone=5), "ChildSpec.on_gone"),
        (lambda: sv.ChildSpec("a", child, enters_late=None), "ChildSpec.enters_late"),
        (lambda: sv.SupervisorSpec(name=5), "SupervisorSpec.name"),
        (lambda: sv.SupervisorSpec(name="a", strategy="one_for_one"), "SupervisorSpec.strategy"),
        (lambda: sv.SupervisorSpec(name="a", intensity=5), "SupervisorSpec.intensity"),
        (lambda: sv.SupervisorSpec(name="a", intensity=None), "SupervisorSpec.intensity"),
        (lambda: sv.SupervisorSpec(name="a", auto_shutdown=True), "SupervisorSpec.auto_shutdown"),
        (lambda: sv.SupervisorSpec(name="a", children=5), "SupervisorSpec.children"),
        (lambda: sv.SupervisorSpec(name="a", children=[child]), "SupervisorSpec.children[0]"),
        (lambda: sv.PoolSpec(name="a", intensity=(1, 5)), "PoolSpec.intensity"),
        (lambda: sv.PoolSpec(name="a", auto_shutdown=None), "PoolSpec.auto_shutdown"),
        (lambda: sv.PoolSpec(name="a", backoff=0.5), "PoolSpec.backoff"),
        (lambda: sv.Backoff(first_s="1"), "Backoff.first_s"),
        (lambda: sv.Backoff(factor=None), "Backoff.factor"),
        (lambda: sv.Backoff(factor=float("nan")), "Backoff.factor"),
        (lambda: sv.Backoff(jitter="0.1"), "Backoff.jitter"),
        (lambda: sv.RestartIntensity("3"), "RestartIntensity.restarts"),
        (lambda: sv.RestartIntensity(3, "5"), "RestartIntensity.period_s"),
        (lambda: sv.open_root(5), "SupervisorSpec.name"),
        (lambda: sv.open_root(intensity=0), "SupervisorSpec.intensity"),
        (lambda: sv.open_root(strategy=None), "SupervisorSpec.strategy"),
        (lambda: sv.open_root(cancel_grace_s="1"), "open_root.cancel_grace_s"),
        (lambda: sv.open_root(children=(None,)), "SupervisorSpec.children[0]"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_field_and_rule(make: Callable[[], object], field: str) -> None:
    with pytest.raises(sv.InvalidSpec) as caught:
        make()

    assert caught.value.field == field
    assert str(caught.value) == f"{field}: {caught.value.rule}"


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda root: root.start_child("a"), "spec"),
        (lambda root: root.start_child(None), "spec"),
        (lambda root: root.start_child(child), "spec"),
        (lambda root: root.start_supervisor(5), "SupervisorSpec.name"),
        (lambda root: root.start_supervisor("b", intensity=0), "SupervisorSpec.intensity"),
        (lambda root: root.start_pool("b", backoff=5), "PoolSpec.backoff"),
        (lambda root: root.stop_child(5), "child"),
        (lambda root: root.restart_child(None), "child"),
    ],
)
async def test_a_command_with_a_wrong_argument_is_refused_and_changes_nothing(
    call: Callable[[sv.Supervisor], Awaitable[object]], field: str
) -> None:
    async with sv.open_root() as root:
        kept = await root.start_child(sv.ChildSpec("kept", child, restart=sv.Restart.TRANSIENT))
        before = root.statistics()
        with pytest.raises(sv.InvalidSpec) as caught:
            await call(root)

        assert caught.value.field == field
        assert (root.children(), root.statistics()) == ((kept,), before)


async def test_plain_commands_with_a_wrong_argument_are_refused_and_change_nothing() -> None:
    wrong: Any = 5
    calls: dict[str, Callable[[sv.Supervisor, sv.Pool], object]] = {
        "spec": lambda root, _: root.start_child_nowait(wrong),
        "child": lambda root, _: root.delete_child(wrong),
        "child.name": lambda root, _: root.child(wrong),
        "tree.pool_children_max": lambda root, _: root.tree(pool_children_max=-1),
        "events.capacity": lambda root, _: root.events(capacity="1"),  # type: ignore[arg-type]
    }
    async with sv.open_root() as root:
        pool = await root.start_pool("pool")
        for field, call in calls.items():
            with pytest.raises(sv.InvalidSpec) as caught:
                call(root, pool)

            assert caught.value.field == field
        with pytest.raises(sv.InvalidSpec, match="must be a Child, not 'a'"):
            await pool.stop_child("a")  # type: ignore[arg-type]
        assert len(pool) == 0
        assert [one.name for one in root.children()] == ["pool"]


async def test_a_polite_stop_that_cannot_be_called_is_refused_when_it_is_registered() -> None:
    async def run(*, task_status: sv.ChildStatus[None]) -> None:
        task_status.on_stop("stop")  # type: ignore[arg-type]

    async with sv.open_root() as root:
        with pytest.raises(sv.StartFailed, match="on_stop: must be a plain function without arguments, not 'stop'"):
            await root.start_child(sv.ChildSpec("a", run))
