"""A survey from a run's own rollouts: how often each task was solved, visit by visit."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from grupo.config.success import with_default_reward_term
from grupo.core.types import Rollout
from grupo.evidence.survey.parquet import METADATA, check_new_file
from grupo.report.read_run import read_rollouts
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.training.resume.stored_recipe import read_stored_recipe
from grupo.util.errors import ConfigError
from grupo.util.run_files import RECIPE_JSON


@dataclass(frozen=True)
class TaskVisits:
    """The accuracy of a task over its visits in a run.

    Args:
        key: Key of the task.
        visits: Steps that sampled the task and scored a rollout.
        history_mean: Mean of the accuracies.
        history_std: Their standard deviation, divided by their number: One-Shot RLVR, Wang et al.
            (arXiv:2504.20571), trains on the task with the largest one.
    """

    key: str
    visits: int
    history_mean: float
    history_std: float


def visits_of(records: Iterable[Mapping[str, Any]], success: SuccessCriterion) -> list[TaskVisits]:
    """The accuracy of each task over the steps of a run, by the task's first visit.

    Rollouts without a score are left out.

    Args:
        records: Lines of `rollouts.jsonl`.
        success: Decides whether a rollout solves its task.

    >>> lines = [
    ...     {"step": step, "task": "a", "reward": reward, "reward_terms": {}, "error": ""}
    ...     for step, reward in [(1, 0.0), (1, 0.0), (2, 0.0), (2, 1.0), (3, 1.0), (3, 1.0)]
    ... ]
    >>> (row,) = visits_of(lines, SuccessCriterion("total"))
    >>> row.visits, row.history_mean, round(row.history_std, 3)  # of 0, 1/2 and 1
    (3, 0.5, 0.408)
    """
    accuracy: dict[str, list[float]] = {}
    scored = (record for record in records if not record["error"])
    for _, of_step in groupby(scored, key=lambda record: record["step"]):
        solved: dict[str, list[bool]] = {}
        for record in of_step:
            rollout = Rollout(reward=record["reward"], reward_terms=record["reward_terms"])
            solved.setdefault(record["task"], []).append(success(rollout))
        for key, values in solved.items():
            accuracy.setdefault(key, []).append(fmean(values))
    return [
        TaskVisits(key, len(values), fmean(values), pstdev(values))
        for key, values in accuracy.items()
    ]


def write_history_survey(folder: Path, file: Path) -> list[TaskVisits]:
    """Write the visits of a run's tasks to a new Parquet file, and return them.

    Args:
        folder: The folder of the run.
        file: The file; `Selected` selects tasks by it.

    Raises:
        ConfigError: The folder holds no run, the run has no scored rollout, or the file exists.
    """
    import pyarrow
    from pyarrow import parquet

    check_new_file(file)
    records = read_rollouts(folder)
    recipe = read_stored_recipe(folder / RECIPE_JSON).recipe
    success = with_default_reward_term(recipe.evaluation.success, recipe.env)
    rows = visits_of(records, success)
    if not rows:
        raise ConfigError(f"run: {str(folder)!r} has no scored rollouts yet.")
    facts = {METADATA: json.dumps({"run": str(folder), "solved": str(success)}).encode()}
    table = pyarrow.Table.from_pylist([asdict(row) for row in rows])
    parquet.write_table(table.replace_schema_metadata(facts), file)
    return rows
