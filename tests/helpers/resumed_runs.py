"""Comparison of a run that was killed and resumed with the uninterrupted one."""

from pathlib import Path

from tests.helpers.run_outcomes import differences, outcome
from tests.helpers.training_processes import TrainingProcess


def assert_same_outcome(
    training_process: TrainingProcess, run: Path, recipe: str, *kills: str
) -> None:
    """Kill the run at each point in turn, resume it, and compare it with the uninterrupted one."""
    for kill in kills:
        result = training_process.resume_or_train(run, recipe, kill=kill)
        assert result.killed, (kill, result.error)
    result = training_process.resume_or_train(run, recipe)
    assert result.succeeded, result
    assert differences(training_process.uninterrupted(recipe).outcome, outcome(run)) == []
