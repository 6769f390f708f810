"""How long a large page takes to open."""

import pytest

from tests.helpers.browser import MARKS, Browser, page
from tests.helpers.written_runs import write

pytestmark = [*MARKS, pytest.mark.slow]
READY = "return performance.getEntriesByName('ready')[0].startTime"


def seconds(browser: Browser, made) -> float:
    """Until everything that is seen first is there."""
    browser.open(made)
    return browser.js(READY) / 1000


def test_two_hundred_steps_of_128_rollouts_open_in_under_two_seconds(browser, tmp_path):
    words = ["a ", "word "] * 32
    tasks = [f"task {i}" for i in range(8)]
    run = write(tmp_path / "run", 200, tasks=tasks, group=16, text="".join(words), parts=words)
    made = page(tmp_path, run)
    best = min(seconds(browser, made) for _ in range(3))
    assert browser.js("return RUNS[0].index[199].length") == 8
    assert best < 2, best
