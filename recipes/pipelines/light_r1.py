"""Light-R1: two supervised stages, preferences, a merge, and GRPO. Wen et al., arXiv:2503.10460.

A toy model shifts digits; `docs/pipelines_shown.md` has the tables of `light_r1_table.py`.

python recipes/pipelines/light_r1.py       # writes the untrained model
grupo train recipes/pipelines/light_r1.py:PIPELINE --run runs/light_r1
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from math import inf

from shifted_digits import base_recipe, held_out_tasks, save_model, shift_task, training_tasks
from torch import Tensor

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.losses import KL
from grupo.core import group_ops
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.numbers import NonNegative
from grupo.core.paper import Paper, Source
from grupo.core.requires import Requires
from grupo.core.schedules import Cosine, Warmup
from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.methods.dpo import dpo
from grupo.methods.dual_clip import dual_clip
from grupo.methods.nca import nca
from grupo.methods.sft import sft
from grupo.pipeline import (
    CollectedTasks,
    CollectStage,
    Pipeline,
    Stage,
    SurveyedTasks,
    SurveyStage,
    WeightMerge,
)
from grupo.rewards import FunctionReward
from grupo.tasks import Between, FromFunction, Lowest
from grupo.util.user_paths import models_dir

PAPER = Paper(
    title="Light-R1: Curriculum SFT, DPO and RL for Long COT from Scratch and Beyond",
    use="Demonstrations are to be used in stages: all, the hardest, pairs, a merge, then RL.",
    tags=("sft", "preferences", "curriculum", "length"),
    kind="pipeline",
    catalogue=("light-r1",),
    source=Source(
        "code",
        "Qihoo360/Light-R1 README.md (stages, merge); jinzhuer/Light-R1 verl-grpo.sh as"
        " cited in the plan of the catalogue: pass rates 0.2 to 0.625, 8 rollouts, KL 0.001",
    ),
    checked=("golden", "run"),
    missing=("The 1,000 hard tasks beside the band of pass rates in GRPO.",),
    deviations=(
        "The form and the coefficient (0.1) of the reward for brevity are our choice.",
        "Chosen answers of pairs are the policy's own best rollouts, not a teacher's.",
        "DPO and NCA of the merge have the same pairs; the authors merge DPO on two data sets.",
        "Difficulty is the policy's own pass rate after the first stage, not another model's.",
    ),
    shown=("docs/pipelines_shown.md#light-r1",),
)

HARDEST = 80  # a tenth of the training tasks
FILLERS = ("", ".", "..")  # before the answers of demonstrations
SFT_STEPS = 60
MORE_STEPS = 40


def demonstrations() -> Iterator[Task]:
    """The training tasks with right demonstrations of several lengths."""
    return (_padded(task) for task in training_tasks())


def held_out_demonstrations() -> Iterator[Task]:
    """The held-out tasks in the same form."""
    return (_padded(task) for task in held_out_tasks())


def _padded(task: Task) -> Task:
    right = shift_task(str(task.prompt)[:-1], wrong=0.0)
    filler = random.Random(f"filler {task.prompt}").choice(FILLERS)
    return replace(right, columns={"completion": filler + str(right.reference_answer)})


def ends_correctly(task: Task, rollout: Rollout) -> float:
    """1 if the answer behind its fillers is the reference answer and has ended, else 0."""
    answer = rollout.text.strip().lstrip(".")
    return float(not rollout.truncated and answer == str(task.reference_answer))


@component
class WeakBrevity:
    """x - coef (L - min L) / (max L - min L) for correct rollouts, L over those of the group.

    Args:
        coef: What the longest correct rollout of a group loses.
        reward_term: Reward term that is above 1/2 for a correct answer.

    >>> import torch
    >>> from grupo.testing.batches import make_batch
    >>> x = torch.tensor([1.0, 1.0, 0.0])
    >>> batch = make_batch(group=[0] * 3, length=[1, 3, 9], reward_terms={"correct": x.tolist()})
    >>> WeakBrevity()(x, batch).tolist()
    [1.0, 0.8999999761581421, 0.0]
    """

    coef: NonNegative = 0.1
    reward_term: str = "correct"

    @property
    def requires(self) -> Requires:
        return Requires(reward_terms=(self.reward_term,))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        correct, length = batch.reward_terms[self.reward_term] > 0.5, batch.lengths
        longest = group_ops.max(length.where(correct, -inf), batch.group)
        shortest = group_ops.min(length.where(correct, inf), batch.group)
        share = (length - shortest) / (longest - shortest).clamp(min=1)
        return x - self.coef * share.where(correct, 0.0)


def pipeline(model: str, seed: int = 0) -> Pipeline:
    """The stages, and the arms that they are compared with: `sft_more` and `grpo_no_length`.

    Args:
        model: Folder of the untrained model.
        seed: Seed of all stages.
    """
    base = base_recipe(model).replace(
        seed=seed,
        env=SingleTurn((RewardTerm("correct", FunctionReward(ends_correctly)),)),
        tasks=FromFunction(demonstrations),
        eval_tasks=FromFunction(held_out_demonstrations),
    )
    first = base.replace(method=sft(), max_steps=SFT_STEPS, learning_rate=Warmup(0.05, 3e-3))
    more = first.replace(max_steps=MORE_STEPS, learning_rate=Cosine(1e-3, 1e-4))
    pairs = base.replace(tasks=CollectedTasks("pairs"), max_steps=20, learning_rate=1e-4)
    band = SurveyedTasks("rates", Between("pass_rate", 0.2, 0.625))
    rl = base.replace(tasks=band, max_steps=30, learning_rate=3e-4, prompts_per_step=16)
    method = dual_clip()
    method = method.replace(loss=method.loss + 0.001 * KL())
    weak = method.replace(advantage=chain(WeakBrevity(), Center(), ScaleByStd()))
    hardest = SurveyedTasks("difficulty", Lowest("pass_rate", HARDEST))
    return Pipeline(
        (
            Stage("sft", first),
            SurveyStage("difficulty", base, attempts=4),
            Stage("sft_more", more, start="sft"),
            Stage("sft_hardest", more.replace(tasks=hardest), start="sft"),
            CollectStage("pairs", base, attempts=8),
            Stage("dpo", pairs.replace(method=dpo()), start="sft_hardest"),
            Stage("nca", pairs.replace(method=nca(beta=0.1)), start="sft_hardest"),
            SurveyStage("rates", base, attempts=8, start=MERGED),
            Stage("grpo", rl.replace(method=weak), start=MERGED),
            Stage("grpo_no_length", rl.replace(method=method), start=MERGED),
        )
    )


MERGED = WeightMerge({"sft_hardest": 1 / 3, "dpo": 1 / 3, "nca": 1 / 3})
MODEL = models_dir() / "shifted-digits"
PIPELINE = pipeline(str(MODEL))

if __name__ == "__main__":
    save_model(MODEL)
