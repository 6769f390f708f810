"""A stopwatch with a clock that the test sets."""

from collections.abc import Callable

import pytest

from grupo.util.timing import Stopwatch


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Returns a function that advances the clock by seconds."""
    now = [100.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])

    def wait(seconds: float) -> None:
        now[0] += seconds

    return wait


def test_laps_add_up_by_name(wait):
    watch = Stopwatch()
    for seconds in (2.0, 3.0):
        with watch.lap("generate"):
            wait(seconds)
        wait(10.0)
    with watch.lap("update"):
        wait(0.5)
    assert watch.seconds == {"generate": 5.0, "update": 0.5}


def test_nested_laps_count_towards_both_names(wait):
    watch = Stopwatch()
    with watch.lap("outer"):
        wait(1.0)
        with watch.lap("inner"):
            wait(2.0)
    assert watch.seconds == {"outer": 3.0, "inner": 2.0}


def test_lap_with_an_error_is_counted(wait):
    watch = Stopwatch()

    def fail() -> None:
        with watch.lap("score"):
            wait(4.0)
            raise ValueError("no number")

    with pytest.raises(ValueError, match="no number"):
        fail()
    assert watch.seconds == {"score": 4.0}


def test_elapsed_counts_from_the_start(wait):
    wait(7.0)
    watch = Stopwatch()
    wait(1.5)
    assert watch.elapsed == 1.5
    wait(1.0)
    assert watch.elapsed == 2.5


def test_unknown_lap_has_zero_seconds():
    assert Stopwatch().seconds["logprobs"] == 0.0
