"""Two stages on the quickstart's model: supervised on worked sums, then GRPO from there.

The second stage begins if the first one solves half of the held-out sums.

grupo train recipes/pipelines/sums.py:PIPELINE --run runs/sums
"""

from collections.abc import Iterator
from dataclasses import replace
from re import findall

from grupo.core.types import Task
from grupo.methods.sft import sft
from grupo.pipeline import MetricAtLeast, Pipeline, Stage
from grupo.tasks import FromFunction
from grupo.toy.quickstart import RECIPE as RL
from grupo.toy.quickstart import sum_tasks
from grupo.toy.worked_solutions import running_total_solution


def worked_sums() -> Iterator[Task]:
    """Sums of five and six terms, each with its running total as `completion`."""
    for task in sum_tasks(5, 6, size=2_000, seed=700_000_000).load():
        expression = "".join(findall(r"[-+0-9 ]+(?= =)", str(task.prompt))).strip()
        columns = {**task.columns, "completion": running_total_solution(expression)}
        yield replace(task, columns=columns)


SFT = RL.replace(
    tasks=FromFunction(worked_sums),
    method=sft(),
    max_steps=10,
    learning_rate=1e-4,
    evaluation=replace(RL.evaluation, attempts=4),
)
PIPELINE = Pipeline(
    (
        Stage("sft", SFT),
        Stage("rl", RL.replace(max_steps=10), when=MetricAtLeast("eval/sampled", 0.5)),
    )
)
