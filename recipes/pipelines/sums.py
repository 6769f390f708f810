"""Two stages on the quickstart's model: supervised on worked solutions, then GRPO from there.

The second stage begins if the first one solves half of the held-out sums.

grupo train recipes/pipelines/sums.py:PIPELINE --run runs/sums
"""

from collections.abc import Sequence
from dataclasses import replace
from re import findall

from grupo.algo.advantages import identity
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import NLL
from grupo.core.types import Task
from grupo.method import Method
from grupo.pipeline import MetricAtLeast, Pipeline, Stage
from grupo.rollouts.samplers import DemonstrationSampler
from grupo.toy.quickstart import RECIPE as RL
from grupo.toy.worked_solutions import running_total_solution


def worked(task: Task) -> Sequence[str]:
    """The running total after every term of the sum, and the answer."""
    expression = "".join(findall(r"[-+0-9 ]+(?= =)", str(task.prompt))).strip()
    return [running_total_solution(expression)]


SFT = RL.replace(
    method=Method(
        sampler=DemonstrationSampler(worked),
        advantage=identity,
        loss=NLL(),
        aggregation=token_mean,
    ),
    max_steps=10,
    learning_rate=1e-4,
)
PIPELINE = Pipeline(
    (
        Stage("sft", SFT.replace(evaluation=replace(RL.evaluation, attempts=4))),
        Stage("rl", RL.replace(max_steps=10), when=MetricAtLeast("eval/sampled", 0.5)),
    )
)
