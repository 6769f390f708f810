"""Training on one example, chosen by a preliminary run: the table of `docs/small_claims.md`."""

import random
from collections.abc import Sequence

import numpy as np
import torch

from grupo.algo.advantages.kl_in_reward import zero_advantage
from grupo.algo.losses import KL, Clip
from grupo.algo.losses.regularizers import Entropy
from grupo.core.types import Group, Task
from grupo.evidence.claims.claim import Setting
from grupo.evidence.claims.environments import PaddedAnswers
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.rewarded import RewardedArm
from grupo.evidence.claims.train import TabularRun
from grupo.evidence.survey import visits_of
from grupo.method import Method
from grupo.methods.grpo import grpo
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.tasks import Highest, InMemoryTasks, Repeated

SEEDS = 8
SETTING = Setting(
    "one_example",
    "The padded answers of docs/claims.md: what the tasks share is when to stop and how long.",
    PaddedAnswers(num_tasks=32, filler_logit=2.5, max_length=32),
    steps=80,
    learning_rate=0.05,
)
LOSS = Clip() + 0.001 * KL() + (-0.001) * Entropy()
METHOD = grpo(kl_coef=0.0).replace(loss=LOSS)
ENTROPY_ONLY = METHOD.replace(advantage=zero_advantage)


class RecordedRun(TabularRun):
    """A run that keeps what `rollouts.jsonl` would have of its rollouts."""

    def __init__(self, method: Method, seed: int) -> None:
        super().__init__(SETTING, RewardedArm("", built=method), seed)
        self.records: list[dict] = []

    def sampled_and_kept_groups(self, method: Method) -> tuple[list[Group], list[Group]]:
        sampled, kept = super().sampled_and_kept_groups(method)
        self.records += [
            {
                "step": self.step_number,
                "task": group.task.key,
                "reward": rollout.reward,
                "reward_terms": rollout.reward_terms,
                "error": "",
            }
            for group in sampled
            for rollout in group.rollouts
        ]
        return sampled, kept

    def train(self) -> "RecordedRun":
        """Use up the budget."""
        while self.progress < 1:
            self.step()
        return self


def best_task(run: RecordedRun) -> int:
    """The task whose accuracy varied most in a run."""
    rows = visits_of(run.records, SuccessCriterion("correct"))
    (index,) = Highest("history_std", 1)([row.history_std for row in rows])
    return int(rows[index].key)


def trained_on(method: Method, seed: int, task: int) -> np.ndarray:
    """Accuracy of each task after training on one of them (K,)."""
    run = RecordedRun(method, seed)
    tasks: Sequence[Task] = Repeated(InMemoryTasks([run.tasks[task]]), 128).load()
    run.tasks = list(tasks)
    return run.train().success()


def accuracies(seed: int) -> dict[str, float]:
    """Mean accuracy on the tasks that no arm but the first was trained on."""
    preliminary = RecordedRun(METHOD, seed).train()
    best = best_task(preliminary)
    others = [k for k in range(preliminary.env.num_tasks) if k != best]
    drawn = random.Random(seed).choice(others)
    success = {
        "untrained": RecordedRun(METHOD, seed).success(),
        "all 32 tasks": preliminary.success(),
        "the task of highest variance": trained_on(METHOD, seed, best),
        "a random task": trained_on(METHOD, seed, drawn),
        "the task of highest variance, entropy alone": trained_on(ENTROPY_ONLY, seed, best),
    }
    held_out = [k for k in others if k != drawn]
    return {arm: float(values[held_out].mean()) for arm, values in success.items()}


def main() -> None:
    """Train all arms and print the tables."""
    torch.set_num_threads(1)
    by_seed = [accuracies(seed) for seed in range(SEEDS)]
    runs = {arm: [{"held_out": found[arm]} for found in by_seed] for arm in by_seed[0]}
    print(paired_table(runs, ["held_out"], "untrained"))
    one = {
        arm: runs[arm] for arm in runs if arm in ("a random task", "the task of highest variance")
    }
    print(paired_table(one, ["held_out"], "a random task"))


if __name__ == "__main__":
    main()
