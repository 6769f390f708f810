"""Training of one arm: vectorised sampling, and the trainer's own functions for the rest.

Curriculum, filter, batch, signals, advantages, minibatches, gradients, optimizer, history and
schedules are those of `grupo.training`; only generation is replaced, by one vectorised call.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from grupo.algo.filters import select_groups_of_step
from grupo.algo.optimizers import Adam
from grupo.algo.optimizers.update import optimizer_step
from grupo.core.batch import Batch
from grupo.core.schedules import resolve_schedules
from grupo.core.types import Group, Rollout
from grupo.evidence.claims.claim import Arm, ArmBudget, Setting
from grupo.evidence.claims.environments import Scores
from grupo.evidence.claims.environments.tabular import Attempts
from grupo.evidence.claims.metrics import evaluate, run_metrics, success_per_task
from grupo.evidence.claims.policy import LinearPolicy
from grupo.evidence.claims.rollouts import group_size_of, make_tasks, sample_groups
from grupo.method import Method
from grupo.rollouts.curricula import CurriculumRequest
from grupo.rollouts.history import History
from grupo.rollouts.statistic_store import StatisticStore
from grupo.training.update.collate import collate
from grupo.training.update.gradients import accumulate_gradients
from grupo.training.update.metrics import advantage_metrics, combine_update_metrics
from grupo.training.update.signals import add_signals, signals_of_all_rows
from grupo.util.rng import derive_key, make_rng

EVALUATIONS = 10  # during training
MAX_GRAD_NORM = 1.0
HEAD_LEARNING_RATE = 0.1


def train_arm(setting: Setting, arm: Arm, seed: int) -> dict[str, float]:
    """Train an arm and return the metrics of the run.

    Args:
        setting: The conditions.
        arm: The method.
        seed: Draws the tasks and all random numbers; both arms of a pair have the same.
    """
    run = TabularRun(setting, arm, seed)
    curve = [run.success()]
    for number in range(1, EVALUATIONS + 1):
        while run.progress < number / EVALUATIONS:
            run.step()
        curve.append(run.success())
    return run.metrics(curve)


class TabularRun:
    """A run of one arm and the state that its steps change.

    Args:
        setting: The conditions.
        arm: The method.
        seed: Draws the tasks and all random numbers.
    """

    def __init__(self, setting: Setting, arm: Arm, seed: int) -> None:
        self.setting = setting
        self.arm = arm
        self.seed = derive_key(seed, "repetition", arm.repetition)
        self.method = arm.build().replace(updates=setting.updates)
        self.env = setting.env(derive_key(seed, "tasks"))
        self.tasks = make_tasks(self.env)
        requires = self.method.requires
        self.policy = LinearPolicy(self.env, requires.heads)
        self.reference = LinearPolicy(self.env)
        self.policy.compared = {"ref": self.reference}
        self.optimizers = [(Adam()(self.policy.parameters()), setting.learning_rate)]
        if requires.heads:
            heads = Adam()(list(self.policy.heads.parameters()))
            self.optimizers.append((heads, HEAD_LEARNING_RATE))
        self.history = History(
            statistics_by_task=StatisticStore(requires.task_statistics),
            statistics_by_source=StatisticStore(requires.source_statistics),
        )
        self.group_size = group_size_of(self.method.sampler)
        self.num_groups = (arm.rollouts_per_step or setting.rollouts_per_step) // self.group_size
        self.step_number = 0
        self.num_rollouts = 0

    @property
    def progress(self) -> float:
        """The used fraction of the arm's budget."""
        setting = self.setting
        used = {
            ArmBudget.STEPS: self.step_number / setting.steps,
            ArmBudget.ROLLOUTS: self.num_rollouts / (setting.steps * setting.rollouts_per_step),
        }
        return used[self.arm.budget]

    def step(self) -> None:
        """Collect groups, update the policy on them and record the step."""
        method: Method = resolve_schedules(
            self.method, min(1.0, self.progress), self.history.metrics
        )
        sampled, kept = self.sampled_and_kept_groups(method)
        metrics: dict[str, float] = {}
        if kept:
            metrics = self.run_updates(method, self.build_batch(method, kept))
        self._record(sampled, metrics)

    def sampled_and_kept_groups(self, method: Method) -> tuple[list[Group], list[Group]]:
        """The groups of the step, and those that the filter keeps; dynamic sampling refills."""
        logp = self._sampler_table()
        sampled: list[Group] = []
        kept: list[Group] = []
        round_index = 0
        while tasks := method.curriculum(self._request(self.num_groups - len(kept), round_index)):
            self.history.count_drawn_tasks(len(tasks))
            key = derive_key(self.seed, "sample", self.step_number, round_index)
            tasks = [self.history.with_replays(task) for task in tasks]
            groups = sample_groups(self.env, logp, tasks, self.group_size, key)
            sampled += groups
            kept += method.filter(groups)
            round_index += 1
        return sampled, [*select_groups_of_step(method.filter, kept, sampled, self.num_groups)]

    def build_batch(self, method: Method, groups: Sequence[Group]) -> Batch:
        """The collated batch with measured signals and advantages."""
        batch = collate(groups, _no_inputs, self.history.statistics_of_task)
        if self.setting.engine_noise:
            old_logp = signals_of_all_rows(self.policy, self.policy, batch, ["logp"])["logp"]
            batch = replace(batch, old_logp=old_logp)
        models = {"ref": self.reference}
        batch = add_signals(self.policy, models, batch, method.requires.signals)
        return batch.with_advantage(method.advantage)

    def run_updates(self, method: Method, batch: Batch) -> dict[str, float]:
        """Update the policy on each minibatch of the plan and return the mean metrics."""
        values: list[dict[str, float]] = []
        for minibatch in method.updates(batch, make_rng(self.seed, "plan", self.step_number)):
            values.append(
                accumulate_gradients(
                    self.policy,
                    method,
                    minibatch,
                    include_rows_without_gradient=bool(self.method.controller_metric_names),
                )
            )
            for optimizer, learning_rate in self.optimizers:
                optimizer_step(optimizer, learning_rate, MAX_GRAD_NORM)
        return advantage_metrics(method, batch) | combine_update_metrics(values)

    def success(self) -> np.ndarray:
        """Fraction of correct rollouts of each task (K,)."""
        return success_per_task(self.env, self._evaluate()[1])

    def metrics(self, curve: Sequence[np.ndarray]) -> dict[str, float]:
        """The metrics of the run; `curve` has the success of each evaluation."""
        attempts, scores = self._evaluate()
        values = run_metrics(self.env, self._policy_table(), attempts, scores, curve)
        return values | {"rollouts": float(self.num_rollouts)}

    def _evaluate(self) -> tuple[Attempts, Scores]:
        rng = np.random.default_rng(derive_key(self.seed, "evaluate", self.step_number))
        return evaluate(self.env, self._policy_table(), rng)

    @torch.no_grad()
    def _policy_table(self) -> np.ndarray:
        return self.policy.logp_table().numpy()

    @torch.no_grad()
    def _sampler_table(self) -> np.ndarray:
        """Log-probabilities of the policy as the inference engine computes them."""
        table = self.policy.logp_table()
        if not self.setting.engine_noise:
            return table.numpy()
        rng = np.random.default_rng(derive_key(self.seed, "engine", self.step_number))
        noise = self.setting.engine_noise * rng.standard_normal(table.shape)
        return (table + torch.as_tensor(noise, dtype=table.dtype)).log_softmax(-1).numpy()

    def _request(self, num_tasks: int, round_index: int) -> CurriculumRequest:
        return CurriculumRequest(self.tasks, self.history, num_tasks, self.seed, round_index)

    def _record(self, sampled: Sequence[Group], metrics: dict[str, float]) -> None:
        self.history.append_groups(self.step_number, sampled, self.method.requires.replay_rules)
        controlled = self.method.controller_metric_names
        self.history.append_metrics({k: v for k, v in metrics.items() if k in controlled})
        self.num_rollouts += sum(len(group.rollouts) for group in sampled)
        self.step_number += 1
        update = self.method.reference
        if self.step_number % update.every == 0:
            self.reference.move_towards(self.policy, update.rate)


def _no_inputs(rollouts: Sequence[Rollout]) -> Any:
    """No inputs: the policy reads signals of the batch."""
    return {}
