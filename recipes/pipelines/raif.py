"""RAIF: RL for instructions with several constraints, against answers without thoughts.

Qin et al., 2025, arXiv:2506.01413. The world is `word_constraints.py`; `raif_table.py` writes the
table of `docs/pipelines_shown.md`.

python recipes/pipelines/raif.py       # writes the model that the pipeline starts from
grupo train recipes/pipelines/raif.py:PIPELINE --run runs/raif
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from statistics import fmean
from typing import Any

from constraint_rewards import FULL, REFERENCE, ConstraintReward
from torch import Tensor
from word_constraints import (
    EMPTY_THINKING,
    TAGS,
    demonstrations,
    held_out_tasks,
    tasks,
    training_tasks,
)

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import sequence_mean
from grupo.algo.data_source import is_demonstration
from grupo.algo.losses import KL, NLL, Clip, PerSourceMean, SelectBySource, SeparateDemos, WhereLoss
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import check_field, component
from grupo.core.interfaces import Actor, Env, run_rollout, score_group
from grupo.core.numbers import NonNegative, PositiveInt
from grupo.core.paper import Paper, Source
from grupo.core.requires import Provides, Requires
from grupo.core.types import Group, Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.tiny_lm import train_tiny_lm
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.pipeline import CollectedTasks, CollectStage, Pipeline, Stage
from grupo.recipe import Evaluation, Recipe
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.rollouts.samplers import GroupSampler, WithExpertSolution
from grupo.rollouts.turns import ForcedStart
from grupo.tasks import FromFunction
from grupo.util.user_paths import models_dir

PAPER = Paper(
    title="Incentivizing Reasoning for Advanced Instruction-Following of Large Language Models",
    use="Instructions have several constraints, and thoughts may make answers worse.",
    tags=("filtering", "sft", "length"),
    kind="pipeline",
    catalogue=("raif",),
    checked=("golden", "run"),
    source=Source(
        "code",
        "yuleiqin/RAIF: openrlhf/trainer/ppo_utils/experience_maker.py, replay_buffer.py,"
        " ifeval/check_qa.py, openrlhf/trainer/ppo_trainer_prm800k_box.py and"
        " grpo_qwen_1_1_complex_ifeval_sft_sup.sh",
    ),
    plan="The script: 32 prompts of 8 rollouts in batches of 128: 2 updates per step; here one.",
    missing=(
        "Constraints that a frozen judge answers by the log-probabilities of YES and NO:"
        " LikelierReply is the judge, and the tasks of the recipe have no such constraint.",
        "The mixture with mathematical tasks: MathReward scores them, Mixture mixes them.",
    ),
    deviations=(
        "An answer without thoughts that was forced is scored as any other: the released check"
        " gives it -2, with which no group can be dropped as a whole.",
        "The SFT loss is a mean over the solutions of the step's own tasks, not over another set.",
    ),
    shown=("docs/pipelines_shown.md#raif",),
)

TERM = "constraints"


@component
class WithoutThoughts(GroupSampler):
    """Independent rollouts, of which the last quarter is forced to answer without thoughts.

    The reward term `thinks` is 0 for a forced rollout, 1 for the others. Forced tokens are not
    trained on.

    Args:
        group_size: Rollouts in a group, a multiple of 4.
        turn_strategy: How the policy takes a turn, after the forced text.
        prefix: The forced text: thoughts that are empty.
    """

    prefix: str = EMPTY_THINKING

    provides = Provides(reward_terms=("thinks",))

    def __post_init__(self) -> None:
        check_field(self, "group_size", self.group_size % 4 == 0, "a multiple of 4")

    async def __call__(self, task: Task, env: Env, actor: Actor) -> Group:
        count = task.group_size or self.group_size
        thinks = [i < count - count // 4 for i in range(count)]
        forced = ForcedStart(self.prefix, train_text=False, inner=self.turn_strategy)
        strategies = [self.turn_strategy if x else forced for x in thinks]
        rollouts = await asyncio.gather(
            *(
                run_rollout(task, env, actor.fork(i), turn_strategy=strategy)
                for i, strategy in enumerate(strategies)
            )
        )
        group = await score_group(task, env, rollouts)
        marked = (
            replace(rollout, reward_terms={**rollout.reward_terms, "thinks": float(x)})
            for rollout, x in zip(group.rollouts, thinks, strict=True)
        )
        return replace(group, rollouts=tuple(marked))


@component
class BeatsNoThoughts:
    """Mask of the rollouts whose thoughts do not make the answer worse, (N, 1).

    A rollout with thoughts is kept if it meets as many constraints as the task's reference answer
    without, or if it is malformed. A group is dropped whose best answer with thoughts scores less
    than its worst without, unless all those with thoughts score the same. Rollouts without thoughts
    are dropped.

    Args:
        reward_term: The reward term of `ConstraintReward`.
    """

    reward_term: str = TERM

    @property
    def requires(self) -> Requires:
        names = ("answer", "met", "scored", "reference")
        terms = ("thinks", *(f"{self.reward_term}/{name}" for name in names))
        return Requires(reward_terms=terms, signals=("sampled",))

    def __call__(self, batch: Batch) -> Tensor:
        answer, met, scored, reference = (
            batch.reward_terms[f"{self.reward_term}/{name}"]
            for name in ("answer", "met", "scored", "reference")
        )
        thinks = batch.reward_terms["thinks"] > 0.5
        empty = ~thinks & ~is_demonstration(batch)
        best = group_ops.max(answer.where(thinks, -inf), batch.group)
        lowest = group_ops.min(answer.where(thinks, inf), batch.group)
        worst_empty = group_ops.min(answer.where(empty, inf), batch.group)
        has_empty = group_ops.max(empty.to(answer), batch.group) > 0
        is_dropped = has_empty & (best < worst_empty) & (lowest != best)
        kept = thinks & ((met >= reference) | (scored < 0.5)) & ~is_dropped
        return kept[batch.rollout, None]


def raif(
    group_size: PositiveInt = 8,
    kl_coef: NonNegative = 0.001,
    sft_coef: NonNegative = 1.0,
    *,
    contrast: bool = True,
) -> Method:
    """loss = clipped policy loss where thoughts help + kl_coef KL + sft_coef SFT of the solutions.

    A = (r - mean) / std over the group, with the rollouts without thoughts. The KL divergence is
    that of all rollouts.

    Args:
        group_size: Rollouts per task (the script: 8).
        kl_coef: Weight of the KL divergence from the reference policy (the script: 0.001).
        sft_coef: Weight of the likelihood of the column `solution` (the script: 1); 0 leaves the
            solutions out.
        contrast: Force a quarter of a group to answer without thoughts, and mask by them.
    """
    sampler = WithoutThoughts(group_size) if contrast else GroupSampler(group_size)
    clip = WhereLoss(Clip(), BeatsNoThoughts()) if contrast else Clip()
    policy_loss = clip + kl_coef * KL()
    advantage = chain(Center(), ScaleByStd())
    if not sft_coef:
        return Method(sampler=sampler, advantage=advantage, loss=policy_loss)
    return Method(
        sampler=WithExpertSolution(sampler),
        advantage=SeparateDemos(advantage),
        loss=SelectBySource(policy_loss, sft_coef * NLL()),
        aggregation=PerSourceMean(sequence_mean),
    )


def reference_count(
    rollouts: Sequence[Rollout], solves: Callable[[Rollout], bool]
) -> Sequence[Mapping[str, Any]]:
    """A row with the mean number of constraints that answers without thoughts meet.

    Args:
        rollouts: The answers.
        solves: Whether an answer meets all constraints; it is not read.
    """
    met = [rollout.reward_terms[f"{TERM}/met"] for rollout in rollouts]
    return [{REFERENCE: fmean(met)}] if met else []


def base_recipe(model: str, seed: int = 0) -> Recipe:
    """Policy, environment and tasks of all stages.

    Args:
        model: Folder of the model after supervised training.
        seed: Seed of the run.
    """
    return Recipe(
        policy=CausalLM(model, max_new_tokens=40, tokens_per_microbatch=8192),
        env=SingleTurn((RewardTerm(TERM, ConstraintReward()),)),
        tasks=FromFunction(training_tasks),
        eval_tasks=FromFunction(held_out_tasks),
        method=raif(),
        max_steps=60,
        prompts_per_step=8,
        learning_rate=5e-4,
        save_every=1000,
        evaluation=Evaluation(attempts=4, success=SuccessCriterion(TERM, FULL + 1)),
        seed=seed,
    )


def pipeline(model: str, seed: int = 0) -> Pipeline:
    """The reference answers without thoughts, then RL.

    Args:
        model: Folder of the model after supervised training.
        seed: Seed of all stages.
    """
    base = base_recipe(model, seed)
    forced = replace(base.evaluation, turn_strategy=ForcedStart(EMPTY_THINKING, train_text=False))
    return Pipeline(
        (
            CollectStage(
                "reference", base.replace(evaluation=forced), attempts=1, rows=reference_count
            ),
            Stage("raif", base.replace(tasks=CollectedTasks("reference")), start=""),
        )
    )


def save_model(folder: Path, steps: int = 1000) -> Path:
    """Train a model of 50,000 parameters on imperfect demonstrations, and return its folder."""
    return train_tiny_lm(folder, tasks(), demonstrations, steps=steps, tags=TAGS)


MODEL = models_dir() / "word-constraints"
PIPELINE = pipeline(str(MODEL / "model"))

if __name__ == "__main__":
    save_model(MODEL)
