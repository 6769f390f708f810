"""The progress bar of a comparison of strategies: on a terminal only, with all answers counted."""

from io import StringIO

import pytest
from rich.console import Console

from grupo.report.answer_progress import AnswerProgress


def console(*, terminal: bool) -> Console:
    return Console(file=StringIO(), force_terminal=terminal, width=100)


def test_answers_of_all_strategies_are_counted_and_further_ones_added():
    with AnswerProgress(console(terminal=True), total=5) as shown:
        (task,) = shown.progress.tasks
        for name, answers in (("single", 3), ("Vote(4)[x]", 2), ("single", 4)):
            shown.begin(name, answers)
            for _ in range(answers):
                shown.answered()
            assert name.replace("[", r"\[") == task.description
        assert (task.completed, task.total) == (9, 9)
    assert "answers" in shown.progress.console.file.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_nothing_is_shown_outside_a_terminal(terminal):
    with AnswerProgress(console(terminal=terminal), total=1) as shown:
        shown.begin("single", 1)
        shown.answered()
    assert bool(shown.progress.console.file.getvalue()) == terminal
