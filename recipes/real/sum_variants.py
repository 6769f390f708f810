"""Other ways to train a small real model on sums of two digits: docs/real_runs.md.

grupo train recipes/real/sum_variants.py:SFT_THEN_GRPO --run runs/sft_then_grpo
grupo train recipes/real/sum_variants.py:PREFERENCES --run runs/preferences
grupo train recipes/real/sum_variants.py:TWO_REWARDS
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from grupo.core.component import component
from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.methods.dpo import dpo
from grupo.methods.sft import sft
from grupo.pipeline import CollectedTasks, CollectStage, Pipeline, Stage
from grupo.rewards.base import PerRolloutReward
from grupo.tasks import TaskSource
from grupo.util.importing import load_module_file

TRAINING = load_module_file(Path(__file__).with_name("training.py"))
FAMILY = TRAINING.FAMILIES["sums_2_digits"]
GRPO = TRAINING.family_recipe("sums_2_digits")
SAMPLED = 400  # tasks of which the preferences are pairs of answers
EXAMPLES = 35  # worked examples in a long prompt


@component
class WorkedSums:
    """Tasks with their answer, the number alone, as `completion`.

    Args:
        tasks: The tasks.
    """

    tasks: TaskSource

    def load(self) -> Sequence[Task]:
        return [
            replace(task, columns={**task.columns, "completion": task.reference_answer})
            for task in self.tasks.load()
        ]


def with_examples(rng: Random) -> Iterator[Mapping[str, Any]]:
    """Rows of the family, each with worked examples of its own."""
    rows = FAMILY.rows(rng)
    for row in rows:
        examples = islice(rows, EXAMPLES)
        lines = [f"What is {x['question']}? {x['answer']}\n" for x in examples]
        yield {**row, "examples": "".join(lines)}


@component
class NumberAlone(PerRolloutReward):
    """1 if the answer has nothing but digits, otherwise 0."""

    def score(self, task: Task, rollout: Rollout) -> float:
        return float(rollout.text.strip().isdigit())


@component
class DigitsAnywhere(PerRolloutReward):
    """The fraction of the sum's digits that the answer has in any place: easily cheated."""

    def score(self, task: Task, rollout: Rollout) -> float:
        digits = set(str(task.reference_answer))
        return len(digits & set(rollout.text)) / len(digits)


SFT = GRPO.replace(
    tasks=WorkedSums(GRPO.tasks),
    eval_tasks=WorkedSums(GRPO.eval_tasks),
    method=sft(),
    max_steps=8,
)
SFT_THEN_GRPO = Pipeline(
    (
        Stage("sft", SFT),
        Stage("grpo", GRPO.replace(max_steps=16)),
    )
)
PAIRS = GRPO.replace(tasks=replace(TRAINING.trained(FAMILY), count=SAMPLED))
PREFERENCES = Pipeline(
    (
        CollectStage("pairs", PAIRS, attempts=8),
        Stage("dpo", GRPO.replace(method=dpo(beta=0.1), tasks=CollectedTasks("pairs"))),
    )
)
RIGHT = RewardTerm(FAMILY.name, FAMILY.reward)
TWO_REWARDS = GRPO.replace(
    env=SingleTurn((RIGHT, RewardTerm("number_alone", NumberAlone(), weight=0.2)))
)
# right answers are counted, and not trained on
CHEATED = GRPO.replace(
    env=SingleTurn((RewardTerm("digits", DigitsAnywhere()), replace(RIGHT, weight=0.0)))
)
WITH_EXAMPLES = replace(FAMILY, rows=with_examples, wordings=("{examples}" + FAMILY.wordings[0],))
LONG_PROMPTS = GRPO.replace(  # of 560 tokens
    tasks=TRAINING.trained(WITH_EXAMPLES), eval_tasks=TRAINING.surveyed(WITH_EXAMPLES)
)
