from hypothesis import given
from hypothesis import strategies as st

from actors.sessions.grpc._rates import TokenBucket


@given(st.integers(1, 5), st.integers(1, 5), st.lists(st.integers(0, 4), max_size=40))
def test_never_more_than_the_burst_and_what_has_flowed_in_since(per_s: int, burst: int, waits: list[int]) -> None:
    """Seen to fail with: no cap at the burst; refilling since the first look; `< 1` written `< 0`."""
    bucket, now_s = TokenBucket(per_s, burst), 100.0
    taken: list[float] = []
    for wait in waits:
        now_s += wait / 4
        if bucket.take(now_s):
            taken.append(now_s)

        for start in taken:
            inside = [moment for moment in taken if moment >= start]
            assert len(inside) <= burst + (now_s - start) * per_s


def test_a_bucket_refills() -> None:
    bucket = TokenBucket(2, 1)

    assert [bucket.take(0.0), bucket.take(0.0), bucket.take(0.4), bucket.take(0.5)] == [
        True,
        False,
        False,
        True,
    ]
