"""What must check and what must not, of supervision. Read by mypy and pyright, never run."""

from typing import Any, assert_type

import trio

from supervision import Child, ChildSpec, ChildStatus, Pool, Restart, Supervisor, SupervisorSpec


async def plain(*, task_status: ChildStatus[str]) -> None:
    task_status.started("value")
    task_status.started()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    task_status.started(1)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def silent(first: int, second: str = "", *, task_status: ChildStatus[None]) -> None:
    task_status.started()
    task_status.started(None)


async def for_a_nursery(port: int, *, task_status: trio.TaskStatus[bytes] = trio.TASK_STATUS_IGNORED) -> None:
    task_status.started(b"value")


async def of_a_subject(subject: object, *, task_status: ChildStatus[str]) -> None: ...


async def a_child_has_the_type_of_its_value(root: Supervisor, pool: Pool) -> None:
    assert_type(ChildSpec("plain", plain, restart=Restart.TRANSIENT), ChildSpec[str])
    assert_type(ChildSpec("silent", silent, 1), ChildSpec[None])
    assert_type(ChildSpec("silent", silent, 1, "two"), ChildSpec[None])
    assert_type(ChildSpec("for a nursery", for_a_nursery, 80), ChildSpec[bytes])
    assert_type(await root.start_child(ChildSpec("plain", plain)), Child[str])
    assert_type((await pool.start_child(ChildSpec("plain", plain))).value, str)
    assert_type(pool.start_child_nowait(ChildSpec("for a nursery", for_a_nursery, 80)).value, bytes)
    wrong: int = (await root.start_child(ChildSpec("plain", plain))).value  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
    del wrong


async def what_cannot_be_known_is_any(root: Supervisor) -> None:
    assert_type(await root.start_child(ChildSpec("subject", of_a_subject), subject=3), Child[Any])
    assert_type(await root.start_child(SupervisorSpec(name="below")), Child[Any])
    assert_type(root.child("plain"), Child[Any] | None)


async def options_have_their_types(root: Supervisor) -> None:
    ChildSpec("plain", plain, shutdown_s="5")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
    ChildSpec("plain", plain, grace_s=5.0)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    await root.start_child("plain")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
