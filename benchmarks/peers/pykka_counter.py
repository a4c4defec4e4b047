"""pykka: tell, ask and ask from 100 callers, per second of wall time, since its actors are threads."""

import json
import statistics
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pykka  # type: ignore[import-not-found]  # pyright: ignore[reportMissingImports, reportMissingTypeStubs]


class Counter(pykka.ThreadingActor):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def on_receive(self, message: int) -> int:
        self.total += message
        return self.total


def measured(work: Callable[[Any], None], count: int) -> float:
    ref: Any = Counter.start()
    begun_s = time.perf_counter()
    work(ref)
    assert ref.ask(0) == count
    took_s = time.perf_counter() - begun_s
    ref.stop()
    return count / took_s


def tell(ref: Any) -> None:
    for _ in range(20_000):
        ref.tell(1)


def ask(ref: Any) -> None:
    for _ in range(5_000):
        ref.ask(1)


def ask_from_100(ref: Any) -> None:
    def caller() -> None:
        for _ in range(50):
            ref.ask(1)

    threads = [threading.Thread(target=caller) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


repeats = range(int(sys.argv[1]))
print(
    json.dumps(
        {
            "tell": statistics.median(measured(tell, 20_000) for _ in repeats),
            "ask": statistics.median(measured(ask, 5_000) for _ in repeats),
            "ask100": statistics.median(measured(ask_from_100, 5_000) for _ in repeats),
        }
    )
)
