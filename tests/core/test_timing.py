"""Seconds by name, of a clock that the test sets."""

from collections.abc import Callable

import pytest

from grupo.core.timing import Stopwatch


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Let so many seconds pass."""
    now = [100.0]
    monkeypatch.setattr("time.perf_counter", lambda: now[0])

    def wait(seconds: float) -> None:
        now[0] += seconds

    return wait


def test_laps_of_one_name_add_up_and_others_stay_apart(wait):
    watch = Stopwatch()
    for seconds in (2.0, 3.0):
        with watch.lap("sample"):
            wait(seconds)
        wait(10.0)
    with watch.lap("update"):
        wait(0.5)
    assert watch.seconds == {"sample": 5.0, "update": 0.5}


def test_a_lap_within_a_lap_counts_towards_both(wait):
    watch = Stopwatch()
    with watch.lap("outer"):
        wait(1.0)
        with watch.lap("inner"):
            wait(2.0)
    assert watch.seconds == {"outer": 3.0, "inner": 2.0}


def test_a_lap_that_fails_counts_and_fails(wait):
    watch = Stopwatch()

    def fail() -> None:
        with watch.lap("judge"):
            wait(4.0)
            raise ValueError("no number")

    with pytest.raises(ValueError, match="no number"):
        fail()
    assert watch.seconds == {"judge": 4.0}


def test_it_knows_how_long_ago_it_was_started(wait):
    wait(7.0)
    watch = Stopwatch()
    wait(1.5)
    assert watch.elapsed == 1.5
    wait(1.0)
    assert watch.elapsed == 2.5


def test_what_never_ran_took_no_time():
    assert Stopwatch().seconds["observe"] == 0.0
