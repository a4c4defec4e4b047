"""What a type checker needs, to see what a child gives to ``started()``: the shapes of functions, by arguments."""

from collections.abc import Awaitable, Callable
from typing import Protocol, TypedDict, TypeVar

from supervision._backoff import Backoff
from supervision._child import ChildStatus
from supervision._specs import Restart

__all__: list[str] = []

V_co = TypeVar("V_co", covariant=True)
A_contra = TypeVar("A_contra", contravariant=True)
B_contra = TypeVar("B_contra", contravariant=True)
C_contra = TypeVar("C_contra", contravariant=True)


class ChildOptions(TypedDict, total=False):
    restart: Restart
    shutdown_s: float
    start_timeout_s: float
    backoff: Backoff | None
    significant: bool
    on_gone: Callable[..., object] | None
    enters_late: bool


# Neither checker infers the last of these through a variable number of arguments, so each number has its own.
class Run(Protocol[V_co]):
    def __call__(self, *, task_status: ChildStatus[V_co]) -> Awaitable[object]: ...


class RunWithOne(Protocol[A_contra, V_co]):
    def __call__(self, first: A_contra, /, *, task_status: ChildStatus[V_co]) -> Awaitable[object]: ...


class RunWithTwo(Protocol[A_contra, B_contra, V_co]):
    def __call__(
        self, first: A_contra, second: B_contra, /, *, task_status: ChildStatus[V_co]
    ) -> Awaitable[object]: ...


class RunWithThree(Protocol[A_contra, B_contra, C_contra, V_co]):
    def __call__(
        self, first: A_contra, second: B_contra, third: C_contra, /, *, task_status: ChildStatus[V_co]
    ) -> Awaitable[object]: ...
