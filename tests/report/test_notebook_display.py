"""The display of a run in a notebook: one output, updated in place."""

import pytest

from grupo.report.notebook_display import MAX_MESSAGES, NotebookDisplay
from grupo.rollouts.eval_result import EvalResult, Proportion


class Output:
    """Keeps what was shown."""

    def __init__(self):
        self.pages = []

    def update(self, content):
        self.pages.append(content)


@pytest.fixture
def shown(recipe):
    """A display after the beginning of a run of three steps, its output and its clock."""
    output = Output()
    seconds = [0.0]
    display = NotebookDisplay(lambda: output, lambda: seconds[0])
    display.on_train_begin(recipe, 0)
    return display, output, seconds


def test_the_output_is_opened_when_the_run_begins(recipe):
    opened = []
    display = NotebookDisplay(lambda: opened.append(1) or Output())
    display.on_message("before the run")
    assert opened == []
    display.on_train_begin(recipe, 0)
    assert opened == [1]


def test_a_step_updates_bar_line_and_curve(shown):
    display, output, seconds = shown
    for step in (1, 2):
        seconds[0] += 1.0
        display.on_step_end(step, {"reward/mean": step / 4, "time/step": 2.0})
    assert '<progress value="2" max="3"' in output.pages[-1]
    assert "step 2/3  reward 0.5  0:02 left" in output.pages[-1]
    assert "<polyline" in output.pages[-1]


def test_fast_steps_share_an_update_and_the_last_state_is_shown(shown):
    display, output, _ = shown
    before = len(output.pages)
    for step in (1, 2, 3):
        display.on_step_end(step, {"reward/mean": 0.5})
    assert len(output.pages) == before
    display.on_train_end()
    assert "step 3/3" in output.pages[-1]


def test_messages_and_alarms_are_escaped_and_the_newest_are_kept(shown):
    display, output, seconds = shown
    for number in range(MAX_MESSAGES + 5):
        display.on_message(f"<b>{number}</b>")
    seconds[0] += 1.0
    display.on_step_end(1, {"reward/mean": 0.5, "rollouts/failed": 2.0})
    page = output.pages[-1]
    assert page.count("<li>") == MAX_MESSAGES
    assert f"&lt;b&gt;{MAX_MESSAGES + 4}&lt;/b&gt;" in page
    assert "&lt;b&gt;5&lt;/b&gt;" not in page
    assert "Warning, step 1: 2 rollouts could not be scored" in page
    assert "1 warning" in page


def test_scores_of_the_first_and_the_last_evaluation_are_shown(shown):
    display, output, _ = shown
    for label, solved in (("before", 0.25), ("step 2", 0.3), ("after", 0.5)):
        share = Proportion(solved, 0.0, 1.0)
        display.on_evaluate(label, EvalResult(share, share, {1: share}))
    page = output.pages[-1]
    assert "+25.0 points" in page
    assert "step 2" not in page
