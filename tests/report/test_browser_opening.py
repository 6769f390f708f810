"""The load time of a large report."""

import pytest

from tests.helpers.browser import MARKS, Browser, write_page
from tests.helpers.written_runs import write_run

pytestmark = [*MARKS, pytest.mark.slow]
READY = "return performance.getEntriesByName('ready')[0].startTime"


def load_seconds(browser: Browser, page) -> float:
    """Seconds until the first view is complete."""
    browser.open(page)
    return browser.js(READY) / 1000


def test_report_of_200_steps_of_128_rollouts_opens_within_two_seconds(browser, tmp_path):
    words = ["a ", "word "] * 32
    tasks = [f"task {i}" for i in range(8)]
    run = write_run(tmp_path / "run", 200, tasks=tasks, group=16, text="".join(words), items=words)
    page = write_page(tmp_path, run)
    best = min(load_seconds(browser, page) for _ in range(3))
    assert browser.js("return RUNS[0].groups_by_step[200].length") == 8
    assert best < 2, best
