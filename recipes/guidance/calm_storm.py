"""CALM and STORM on production plans: hints, supervised training on corrected answers, then GRPO.

Tang et al., 2025, arXiv:2510.04204. A beginner guesses by hand or writes programs with wrong limits
(`short_programs.py`). CALM cuts wrong answers before a flaw, and they go on behind a hint; the
corrected ones are trained on, then GRPO. `calm_storm_table.py` writes the table of
`docs/guidance_shown/calm_storm.md`.

python recipes/guidance/calm_storm.py       # writes the beginner
grupo train recipes/guidance/calm_storm.py:PIPELINE --run runs/calm_storm
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from short_programs import TOKENS, OptimumReward, ShortPlans, find_flaw, flawed_answer

from grupo.core.schedules import Cosine, Linear, Warmup
from grupo.core.types import Rollout
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.tiny_lm import demonstration_recipe, trained
from grupo.methods.grpo import grpo
from grupo.methods.sft import sft
from grupo.models.causal_lm import CausalLM
from grupo.pipeline import CollectedTasks, CollectStage, Pipeline, Stage
from grupo.recipe import EarlyStopping, Recipe
from grupo.rollouts.samplers import CorrectiveHints, GroupSampler
from grupo.rollouts.samplers.corrective_hints import CORRECTED, HINT_SHARE
from grupo.toy.tokenizers import word_tokenizer
from grupo.toy.untrained_llama import LlamaArchitecture
from grupo.util.user_paths import models_dir

GROUP_SIZE = 8
RL_TOKENS = 30_000  # of the last stage
CORRECTED_TASKS = 64
MAX_HINT_SHARE = 0.15  # hints are one token of answers of 25; the paper's 2.6 % is of long answers
ENV = SingleTurn((RewardTerm("correct", OptimumReward()),))
ARCHITECTURE = LlamaArchitecture(context_length=128, initializer_range=0.08)


def base_recipe(model: str, seed: int = 0) -> Recipe:
    """GRPO on production plans, with the settings of all stages.

    Args:
        model: Folder of the beginner.
        seed: Seed of the run.
    """
    return Recipe(
        policy=CausalLM(model, max_new_tokens=40, tokens_per_microbatch=8192),
        env=ENV,
        tasks=ShortPlans(1000, seed=1000),
        eval_tasks=0,
        method=grpo(GROUP_SIZE, kl_coef=0.0),
        max_steps=1000,
        prompts_per_step=16,
        learning_rate=Warmup(0.1, Linear(3e-4, 3e-5)),
        early_stopping=EarlyStopping(max_tokens=RL_TOKENS),
        save_every=1000,
        seed=seed,
    )


def supervised(base: Recipe, column: str) -> Recipe:
    """Light supervised training on a column of the tasks.

    Args:
        base: Policy and tasks.
        column: The column of the demonstrations.
    """
    return base.replace(
        method=sft(column),
        max_steps=30,
        prompts_per_step=32,
        learning_rate=Warmup(0.1, Cosine(1e-3, 1e-4)),
        early_stopping=EarlyStopping(),
    )


def corrected(
    rollouts: Sequence[Rollout], solves: Callable[[Rollout], bool]
) -> Sequence[Mapping[str, Any]]:
    """The corrected rollouts of a group, with their shares of hint tokens.

    Args:
        rollouts: The rollouts.
        solves: Whether a rollout solves its task; corrected ones do.
    """
    return [
        {"completion": rollout.text, HINT_SHARE: rollout.reward_terms[HINT_SHARE]}
        for rollout in rollouts
        if rollout.source == CORRECTED
    ]


def pipeline(model: str, seed: int = 0) -> Pipeline:
    """CALM, which collects corrected rollouts and trains on them, and STORM, which is GRPO.

    Args:
        model: Folder of the beginner.
        seed: Seed of all stages.
    """
    base = base_recipe(model, seed)
    hints = CorrectiveHints(GroupSampler(GROUP_SIZE), find_flaw, max_hint_share=MAX_HINT_SHARE)
    calm = supervised(base.replace(tasks=CollectedTasks("corrected")), "completion")
    return Pipeline(
        (
            CollectStage("corrected", base, count=CORRECTED_TASKS, sampler=hints, rows=corrected),
            Stage("calm", calm, start=""),
            Stage("storm", base),
        )
    )


def save_beginner(folder: Path, steps: int = 1500, num_tasks: int = 5000) -> Path:
    """Train a model of 0.1 million parameters on flawed answers, and return its folder.

    Args:
        folder: An empty folder.
        steps: Number of steps.
        num_tasks: Number of plans, each with an answer.
    """
    ARCHITECTURE.save_untrained(folder / "start", word_tokenizer([], TOKENS))
    tasks = list(ShortPlans(num_tasks, seed=3000).load())
    recipe = demonstration_recipe(folder / "start", tasks, flawed_answer, steps=steps)
    trained(recipe).policy.export(folder / "model")
    return folder / "model"


MODEL = models_dir() / "short-programs"
PIPELINE = pipeline(str(MODEL / "model"))

if __name__ == "__main__":
    save_beginner(MODEL)
