"""RGR-GRPO on sums of ten digits: the right additions as a rubric, and what is lacking as a hint.

`recipes/guidance/hard_sums.py` has the world. The reward is the share of the additions that are
right, in the order of the terms, and of the answer. Where no rollout has all of them, the best is
revised: the prompt ends with the working up to the first step that it lacks.

Named before the first run of seeds 8 to 23: the accuracy on held-out sums of 8 to 10 digits
(`long`) of RGR-GRPO and of GHPO, each minus that of GRPO, at 300,000 generated tokens, by the exact
sequential sign-flip test with looks at 8, 12 and 16 pairs and an error of 5 % for both. The arm
"rubric" has the rewards without the revisions.

python recipes/guidance/rubric_sums.py FOLDER [FIRST_SEED END]
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from grupo.compare.sequential_design import SequentialDesign
from grupo.core.component import component
from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.hard_sums import (
    accuracy_by_terms,
    ghpo_sampler,
    hard_sums_recipe,
    trained_for_tokens,
)
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.sequential_table import sequential_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.method import Method
from grupo.methods.grpo import grpo
from grupo.methods.rgr_grpo import MEETS_ALL, rgr_grpo
from grupo.recipe import Recipe
from grupo.rewards.checked_rubric import CheckedRubric
from grupo.rewards.judges.rubric_items import RubricColumn
from grupo.rollouts.samplers import AllIncorrect, GroupSampler, Rescue, RescueAttempt
from grupo.rollouts.samplers.merge_rules import best_replaces_worst
from grupo.rollouts.samplers.refinement import FailedItems, RefineBest
from grupo.rollouts.samplers.trained_prompts import plain_prompt
from grupo.tasks.base import LazyTasks
from grupo.tasks.digit_sums import HINT_PREFIX, DigitSums, first_additions
from grupo.toy.arithmetic_lm import ensure_trained
from grupo.toy.digit_sums_lm import ToyDigitSumsLM
from grupo.util.importing import load_module_file

GROUP_SIZE, MAX_TOKENS = 8, 300_000
TESTED = ("GRPO", "GHPO", "RGR-GRPO")
DESIGN = SequentialDesign(max_pairs=16, looks=(8, 12, 16))


@component
class SumsWithRubric:
    """Sums of digits whose rubric has an item for each addition and one for the answer.

    Args:
        sums: The sums.
    """

    sums: DigitSums

    def load(self) -> Sequence[Task]:
        tasks = self.sums.load()
        return LazyTasks(len(tasks), lambda i: _with_rubric(tasks[i]))


def _with_rubric(task: Task) -> Task:
    words = task.columns["solution"].split()[2:]
    criteria = [*words[:-2], " ".join(words[-2:])]
    items = [{"name": f"step{i}", "criterion": x, "weight": 1.0} for i, x in enumerate(criteria)]
    return replace(task, columns={**task.columns, "rubric": items})


def has_step(criterion: str, text: str) -> bool:
    """Whether a working contains a step, as whole words."""
    return f" {criterion} " in f" {text} "


@component
class FirstLackingStep:
    """The beginning of the solution with the first step that a rollout lacks."""

    def __call__(self, task: Task, rollout: Rollout) -> Sequence[str]:
        criteria = [item["criterion"] for item in task.columns["rubric"]]
        lacking = FailedItems()(task, rollout)
        if not lacking:
            return []
        return [first_additions(task.columns["solution"], criteria.index(lacking[0]) + 1)]


REWARD = CheckedRubric(RubricColumn("rubric"), has_step)
RUBRIC = SingleTurn((RewardTerm("rubric", REWARD),))
SAMPLER = Rescue(
    GroupSampler(GROUP_SIZE),
    (
        RescueAttempt(
            RefineBest(FirstLackingStep(), HINT_PREFIX + "{items}"),
            best_replaces_worst,
            plain_prompt,
            "refinement",
        ),
    ),
    AllIncorrect(MEETS_ALL),
)
GRPO = grpo(GROUP_SIZE, kl_coef=0.0)
GHPO = GRPO.replace(sampler=ghpo_sampler(GROUP_SIZE))
RGR_GRPO = rgr_grpo(GROUP_SIZE).replace(sampler=SAMPLER)


def rubric_recipe(method: Method, seed: int, max_tokens: int) -> Recipe:
    """The recipe of hard sums with the rubric as its reward."""
    recipe = hard_sums_recipe(method, seed=seed, max_tokens=max_tokens)
    assert isinstance(recipe.tasks, DigitSums)
    return recipe.replace(tasks=SumsWithRubric(recipe.tasks), env=RUBRIC)


RECIPE = rubric_recipe(RGR_GRPO, 0, MAX_TOKENS)
ARMS: Mapping[str, Callable[[int, int], Recipe]] = {
    "GRPO": lambda seed, tokens: hard_sums_recipe(GRPO, seed=seed, max_tokens=tokens),
    "GHPO": lambda seed, tokens: hard_sums_recipe(GHPO, seed=seed, max_tokens=tokens),
    "rubric": lambda seed, tokens: rubric_recipe(GRPO, seed, tokens),
    "RGR-GRPO": lambda seed, tokens: rubric_recipe(RGR_GRPO, seed, tokens),
}


def run(arm: str, seed: int, max_tokens: int = MAX_TOKENS) -> Metrics:
    """Accuracies of the policy after `max_tokens`.

    Args:
        arm: Name of the arm.
        seed: Seed of the run.
        max_tokens: Tokens that are generated, revisions and hinted attempts counted.
    """
    ensure_trained(ToyDigitSumsLM())
    learner = trained_for_tokens(ARMS[arm](seed, max_tokens))
    return {**accuracy_by_terms(learner, seed), "steps": float(learner.state.step)}


def main(folder: str, first_seed: str = "8", end: str = "24") -> None:
    """Run all arms and print the tables."""
    arms = {arm: partial(run, arm) for arm in ARMS}
    runs = stored_runs(Path(folder) / "runs.jsonl", arms, range(int(first_seed), int(end)))
    print(paired_table(runs, ["long", "short", "steps"], "GRPO"))
    print(sequential_table({arm: runs[arm] for arm in TESTED}, "long", "GRPO", DESIGN))


if __name__ == "__main__":
    load_module_file(Path(__file__)).main(*sys.argv[1:])
