"""Which task is next: sums of three sources, of which one can be learned from.

The toy model of `grupo.toy.digit_sums_lm` solves the sums of three digits (45 % of the tasks), a
part of those of five and six (10 %), and none of those of ten (45 %). All arms generate 100,000
tokens, those of dropped groups counted. The arm that draws from the second source alone knows what
the others must find: the upper bound, which must win first.

Named before the first run of these seeds: the accuracy on held-out sums of five and six digits
(`learnable`) of each other arm, minus that of GRPO, by the exact sequential sign-flip test with
looks at 8, 12 and 16 pairs and an error of 5 % for all five comparisons together.

python recipes/guidance/task_choice.py FOLDER [FIRST_SEED END]
"""

import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.window_shift import WindowShift
from grupo.compare.sequential_design import SequentialDesign
from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.hard_sums import ENV, trained_for_tokens
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.sequential_table import sequential_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.three_sources import (
    GROUP_SIZE,
    GRPO,
    LEARNABLE_ONLY,
    MAX_TOKENS,
    SOURCES,
    ThreeSources,
    accuracy_by_source,
    three_sources_recipe,
)
from grupo.evidence.claims.tiny_lm import mean_terms
from grupo.evidence.survey import PromptConcentration
from grupo.method import Method
from grupo.methods.online_difficulty_filtering import online_difficulty_filtering
from grupo.methods.xrpo import xrpo
from grupo.models.causal_lm import CausalLM
from grupo.rewards.diversity import DistinctNgrams
from grupo.rollouts.curricula import GaussianWindow, SourceBandit, VarianceAware
from grupo.toy.arithmetic_lm import ensure_trained
from grupo.toy.digit_sums_lm import CheckedWorking, ToyDigitSumsLM
from grupo.util.importing import load_module_file

DESIGN = SequentialDesign(max_pairs=16, looks=(8, 12, 16))
METHODS: Mapping[str, Method] = {
    "GRPO": GRPO,
    "learnable only": LEARNABLE_ONLY,
    "DUMP": GRPO.replace(curriculum=SourceBandit()),
    "MMR1": GRPO.replace(curriculum=VarianceAware()),
    "GAIN-RL": GRPO.replace(
        curriculum=GaussianWindow(width=40.0),
        advantage=chain(Center(), ScaleByStd(), WindowShift(scale=20.0, max_shift=40.0)),
    ),
    "difficulty filter": online_difficulty_filtering(group_size=GROUP_SIZE, kl_coef=0.0),
    "XRPO": xrpo(GROUP_SIZE, phases=2),
}
DIVERSITY = RewardTerm("diversity", DistinctNgrams(), weight=0.0)  # MMR1 reads it
TRAINING_ENV = SingleTurn((RewardTerm("correct", CheckedWorking()), DIVERSITY))
RECIPE = three_sources_recipe(METHODS["DUMP"], seed=0)


@cache
def scored_tasks() -> Sequence[Task]:
    """The tasks with the concentration of their prompts, by which GAIN-RL sorts them."""
    policy = CausalLM(str(ToyDigitSumsLM().model_dir))
    return PromptConcentration(ThreeSources(), policy).load()


def run(method: Method, seed: int, max_tokens: int = MAX_TOKENS) -> Metrics:
    """Accuracies of the policy after `max_tokens`; those of the beginner with 0.

    Args:
        method: The method.
        seed: Seed of the run.
        max_tokens: Tokens that are generated.
    """
    ensure_trained(ToyDigitSumsLM())
    recipe = three_sources_recipe(method, seed=seed, max_tokens=max_tokens)
    learner = trained_for_tokens(recipe.replace(tasks=scored_tasks(), env=TRAINING_ENV))
    return {**accuracy_by_source(learner, seed), "steps": float(learner.state.step)}


def concentration_correlation() -> float:
    """Spearman's correlation of a task's concentration and the beginner's success in 8 attempts."""
    policy = CausalLM(str(ToyDigitSumsLM().model_dir), max_new_tokens=64).build()
    rates = [mean_terms(policy, ENV, [task], attempts=8)["correct"] for task in scored_tasks()]
    scores = [task.columns["concentration"] for task in scored_tasks()]
    return float(np.asarray(spearmanr(scores, rates))[0])


def main(folder: str, first_seed: str = "0", end: str = "16") -> None:
    """Run all arms and print the tables."""
    arms = {
        "beginner": lambda seed: run(GRPO, seed, max_tokens=0),
        **{name: lambda seed, method=method: run(method, seed) for name, method in METHODS.items()},
    }
    runs = stored_runs(Path(folder) / "runs.jsonl", arms, range(int(first_seed), int(end)))
    print(paired_table(runs, [*SOURCES, "steps"], "GRPO"))
    tested = {name: runs[name] for name in METHODS if name != "learnable only"}
    print(sequential_table(tested, "learnable", "GRPO", DESIGN))
    print("concentration and success:", round(concentration_correlation(), 2))


if __name__ == "__main__":
    load_module_file(Path(__file__)).main(*sys.argv[1:])
