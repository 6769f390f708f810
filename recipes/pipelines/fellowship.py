"""The Fellowship of the LLMs: two data sets of pairs from one workflow. Arif et al., 2024.

A workshop of writer and reviewer makes pairs for the writer, final revision against draft, and for
the reviewer, better review against worse; a judge, a jury or a debate decides. arXiv:2408.08688.
The sums are those of `reviewed_sums.py`; `fellowship_table.py` writes the tables of
`docs/pipelines_shown.md`.

python recipes/pipelines/fellowship.py       # writes the model
grupo train recipes/pipelines/fellowship.py:PIPELINE --run runs/fellowship
"""

from collections.abc import Iterator, Mapping

from reviewed_sums import REVIEW, REVISE, Persuadable, closer, correct, save_model, sum_tasks

from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.methods.dpo import dpo
from grupo.models.causal_lm import CausalLM
from grupo.pipeline import (
    CollectedTasks,
    CollectStage,
    Pipeline,
    Stage,
    best_against_worst,
    best_against_worst_in_context,
)
from grupo.recipe import Recipe
from grupo.rewards import Debate, FunctionReward, Jury
from grupo.rewards.noisy_preferences import Compare, NoisyPreferences
from grupo.rewards.pairwise import PairwiseWinRate
from grupo.rollouts.samplers import ReviewPairs, Workshop
from grupo.tasks import FromFunction, Repeated
from grupo.util.user_paths import models_dir

FLIP = 0.25  # of the labels of each judge
JUDGES = tuple(NoisyPreferences((closer,), FLIP, seed) for seed in range(3))
PREFERENCES: Mapping[str, Compare] = {
    "judge": JUDGES[0],
    "jury": Jury(JUDGES),
    "debate": Debate(tuple(Persuadable(judge, 0.5, i) for i, judge in enumerate(JUDGES)), 3),
}
WORKSHOP = Workshop(2, REVIEW, REVISE)
REVIEWS = ReviewPairs(4, REVIEW, REVISE)
COPIES = 8  # of each sum: workshops of each


def tasks() -> Iterator[Task]:
    """All sums."""
    return iter(sum_tasks())


def base_recipe(model: str, prefer: Compare, seed: int = 0) -> Recipe:
    """Policy, environment and sums of all stages; the preference decides, correctness is measured.

    Args:
        model: Folder of the model.
        prefer: The preference function.
        seed: Seed of the run.
    """
    return Recipe(
        policy=CausalLM(model, max_new_tokens=4, tokens_per_microbatch=8192),
        env=SingleTurn(
            (
                RewardTerm("correct", FunctionReward(correct), 0.0),
                RewardTerm("preferred", PairwiseWinRate(prefer)),
            )
        ),
        tasks=Repeated(FromFunction(tasks), COPIES),
        eval_tasks=0,  # those of the pipeline are all sums
        prompts_per_step=32,
        save_every=1000,
        seed=seed,
    )


def pipeline(model: str, prefer: Compare, seed: int = 0) -> Pipeline:
    """Both data sets, and DPO on each.

    Args:
        model: Folder of the model.
        prefer: The preference function.
        seed: Seed of all stages.
    """
    base = base_recipe(model, prefer, seed)
    learn = base.replace(method=dpo(), max_steps=40, learning_rate=3e-4)
    return Pipeline(
        (
            CollectStage("drafts", base, sampler=WORKSHOP, rows=best_against_worst),
            CollectStage("reviews", base, sampler=REVIEWS, rows=best_against_worst_in_context),
            Stage("writer", learn.replace(tasks=CollectedTasks("drafts")), start=""),
            Stage("reviewer", learn.replace(tasks=CollectedTasks("reviews")), start=""),
        )
    )


MODEL = models_dir() / "reviewed-sums"
PIPELINE = pipeline(str(MODEL / "model"), PREFERENCES["jury"])

if __name__ == "__main__":
    save_model(MODEL)
