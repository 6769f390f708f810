"""DUMP's bandit over sources of tasks, against sources in equal shares.

Wang et al., 2025, arXiv:2504.09710; `grupo/rollouts/curricula/sources.py` has its record.

Answers of six items are correct if the items at some key positions are. A tabular policy solves the
first source of tasks before training and can learn the second; the correct items of the third have
a probability below 1e-5. Named before the first run of all seeds: the share of the second source
among the tasks of steps 41 to 80 of 120 exceeds 60 % with the bandit: `middle` - 0.6 > 0.

python recipes/guidance/dump.py
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np
import torch

from grupo.core.component import component
from grupo.core.ranges import PositiveInt
from grupo.evidence.claims.claim import Setting
from grupo.evidence.claims.environments import KeyPositions, TabularEnv
from grupo.evidence.claims.paired_table import paired_table, signed
from grupo.evidence.claims.rewarded import RewardedArm
from grupo.evidence.claims.train import TabularRun
from grupo.method import Method
from grupo.methods.grpo import grpo
from grupo.rollouts.curricula import SourceBandit
from grupo.util.statistics import student_t_mean

SEEDS = 8
STEPS = 120
SOURCES = ("trivial", "learnable", "impossible")  # of task k: number k mod 3
LOGIT_SHIFTS = (8.0, 0.0, -12.0)  # of the correct item at the key positions of each source


@component
class ThreeSources:
    """`KeyPositions` of one, two and three keys, whose correct items have other prior logits.

    Args:
        tasks_per_source: Number of tasks of each source.
        length: Items of an answer.
    """

    tasks_per_source: PositiveInt = 16
    length: PositiveInt = 6

    def __call__(self, seed: int) -> TabularEnv:
        env = KeyPositions(3 * self.tasks_per_source, length=self.length, max_keys=3)(seed)
        task, position = np.divmod(np.arange(len(env.prior)), self.length)
        shift = np.array(LOGIT_SHIFTS)[task % 3] * (position < self.length - 1)
        return replace(env, prior=env.prior + shift[:, None] * (env.preferred > 0))


class SourcedRun(TabularRun):
    """A run whose tasks name their source."""

    def __init__(self, method: Method, seed: int) -> None:
        setting = Setting("sources", "", ThreeSources(), steps=STEPS, learning_rate=0.05)
        super().__init__(setting, RewardedArm("bandit", built=method), seed)
        self.tasks = [replace(task, source=SOURCES[int(task.key) % 3]) for task in self.tasks]
        self.drawn: list[str] = []  # the source of every task

    def sampled_and_kept_groups(self, method: Method) -> tuple[list, list]:
        """The groups of a step; their sources are added to `drawn`."""
        sampled, kept = super().sampled_and_kept_groups(method)
        self.drawn += [group.task.source for group in sampled]
        return sampled, kept

    def solved(self) -> float:
        """The success on the tasks that can be learned."""
        return float(self.success()[1::3].mean())


def method(*sources: str) -> Method:
    """GRPO with the bandit over these sources, over all of them by default."""
    return replace(grpo(8, kl_coef=0.0), curriculum=SourceBandit(sources))


ARMS: Mapping[str, Method] = {
    "equal shares": grpo(8, kl_coef=0.0),
    "learnable only": method("learnable"),
    "bandit": method(),
}


def run(built: Method, seed: int) -> dict[str, float]:
    """Success on the learnable tasks, and their share among those that were drawn.

    Args:
        built: The method.
        seed: Draws the tasks and all random numbers.
    """
    trained = SourcedRun(built, seed)
    curve = [trained.solved()]
    for _ in range(STEPS):
        trained.step()
        curve.append(trained.solved())
    is_learnable = [source == "learnable" for source in trained.drawn]
    third = len(is_learnable) // 3
    parts = [is_learnable[i * third : (i + 1) * third] for i in range(3)]
    shares = dict(zip(("first", "middle", "last"), map(fmean, parts), strict=True))
    return {"before": curve[0], "mean": fmean(curve), "after": curve[-1], **shares}


def main(seeds: Sequence[int] = range(SEEDS)) -> None:
    """Train all arms and print the table."""
    torch.set_num_threads(1)
    runs = {name: [run(built, seed) for seed in seeds] for name, built in ARMS.items()}
    metrics = ["before", "mean", "after", "first", "middle", "last"]
    print(paired_table(runs, metrics, "equal shares"))
    print("middle - 0.6:", signed(student_t_mean([x["middle"] - 0.6 for x in runs["bandit"]])))


if __name__ == "__main__":
    main()
