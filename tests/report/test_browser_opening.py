"""How long a large page takes to open."""

import pytest
from browsing import MARKS, page
from written import write

pytestmark = [*MARKS, pytest.mark.slow]


def test_two_hundred_steps_of_128_rollouts_open_in_under_two_seconds(browser, tmp_path):
    run = write(
        tmp_path / "run",
        200,
        tasks=[f"task {i}" for i in range(8)],
        group=16,
        text="a word " * 32,
        parts=["a ", "word "] * 32,
    )
    made = page(tmp_path, run)
    best = min(_seconds(browser, made) for _ in range(3))
    assert best < 2, best
    assert browser.js("return RUNS[0].index[199].length") == 8


def _seconds(browser, made: Path) -> float:
    browser.open(made)
    return browser.js("return performance.getEntriesByName('ready')[0].startTime") / 1000
