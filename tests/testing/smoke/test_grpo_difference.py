"""Every method acts under its own update plan, or declares when it is GRPO; checks of the check."""

from dataclasses import replace

import pytest
import torch

from grupo.algo.advantages import Center
from grupo.algo.aggregation import token_mean
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import KL, Clip, Loss, Reinforce
from grupo.algo.minibatches import Updates
from grupo.algo.replay_rules import FillFromBuffer
from grupo.catalogue.entries import methods
from grupo.core.batch import Batch, PerAction, Signals
from grupo.core.component import component
from grupo.core.paper import MATCHED_ENGINE, ONE_UPDATE, SAME_POLICY, Paper
from grupo.core.reference_update import ReferenceUpdate
from grupo.core.schedules import Linear
from grupo.method import Method
from grupo.rollouts.curricula import ShuffledTasks
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.grpo_gradient import grpo_counterpart, has_equal_gradients
from grupo.testing.smoke.grpo_difference import (
    acting_parts,
    filter_acts,
    gradient_acts,
    gradient_differs_from_grpo,
    reference_acts,
)
from grupo.testing.smoke.report_card import report_card
from tests.helpers.fast_cases import fast_cases

ENTRIES = {entry.key: entry for entry in methods()}
# GRPO's gradient and filter on rollouts of their own: steps are generated to see the difference
OTHER_ROLLOUTS = ("elastic_reasoning", "scaf_grpo", "vade")
TWO = Updates(minibatches=2)
# DPPO's weight is 1 in the first update if the engine computes as the trainer does
WITH_GRPO_ADVANTAGES = ENTRIES["dppo_tv"].method.replace(advantage=Method().advantage)


def check(key):
    gradient_differs_from_grpo(ENTRIES[key].method, ENTRIES[key].equals_grpo_when)


@pytest.mark.parametrize("key", [key for key in ENTRIES if key not in OTHER_ROLLOUTS])
def test_every_method_differs_from_grpo_or_declares_when_not(key):
    check(key)


@pytest.mark.slow
@pytest.mark.parametrize("key", OTHER_ROLLOUTS)
def test_methods_with_grpos_gradient_generate_other_rollouts(key):
    torch.set_num_threads(1)
    assert not gradient_acts(ENTRIES[key].method)
    check(key)


@component
class InertLoss(Loss):
    """GRPO's clip, whose new coefficient is multiplied by log ratios of 0."""

    coefficient: float = 5.0

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        log_ratio = pi.logp - batch.old_logp
        return Clip()(pi, batch) + self.coefficient * log_ratio.detach() * pi.logp


@component
class InertSampler:
    """A sampler of its own that returns the rollouts of another."""

    inner: GroupSampler = GroupSampler(8)

    async def __call__(self, task, env, actor):
        return await self.inner(task, env, actor)


@pytest.mark.parametrize(
    "method",
    [
        Method(),
        Method(sampler=GroupSampler(16), loss=Clip(0.3, 0.3) + 0.1 * KL()),
        Method(loss=InertLoss(), aggregation=token_mean),
        Method(loss=Clip(clip_high=Linear(0.2, 0.4))),
        Method(reference=ReferenceUpdate(rate=1.0)),  # nothing reads the reference
        Method(filter=list),
    ],
    ids=["grpo", "clip and KL", "ratio loss", "schedule", "unread reference", "filter"],
)
def test_an_inert_method_is_found(method):
    with pytest.raises(AssertionError, match=r"a step with SingleUpdate\(\) is GRPO's: no part"):
        gradient_differs_from_grpo(method)


@pytest.mark.slow
def test_a_sampler_that_returns_the_rollouts_of_groups_is_inert():
    torch.set_num_threads(1)
    with pytest.raises(AssertionError, match="no part of the method acts"):
        gradient_differs_from_grpo(Method(sampler=InertSampler()))


@pytest.mark.parametrize(
    ("method", "part"),
    [
        (Method(advantage=Center()), "gradient"),
        (Method(aggregation=token_mean), "gradient"),
        (Method(loss=Clip(0.3, 0.3), updates=TWO), "gradient"),
        (Method(loss=InertLoss(), updates=Updates(epochs=2)), "gradient"),
        (Method(loss=Clip(clip_high=Linear(0.2, 0.4)), updates=TWO), "gradient"),
        (Method(filter=keep_nonzero_std), "filter"),
        (Method(loss=Clip() + KL(), reference=ReferenceUpdate(rate=1.0)), "reference"),
        pytest.param(Method(replay=FillFromBuffer()), "replay", marks=pytest.mark.slow),
    ],
)
def test_the_first_acting_part_is_named(method, part):
    assert next(acting_parts(method)) == part


def test_more_updates_alone_are_not_a_difference():
    method = Method(updates=Updates(2, 2))
    assert not any(acts(method) for acts in (gradient_acts, filter_acts, reference_acts))


@pytest.mark.parametrize(
    ("method", "condition", "problem"),
    [
        (Method(advantage=Center()), ONE_UPDATE, r"it differs with SingleUpdate\(\)"),
        (Method(), ONE_UPDATE, "the method never acts"),
        (WITH_GRPO_ADVANTAGES, ONE_UPDATE, "it differs with SingleUpdate"),
        (ENTRIES["gspo"].method, SAME_POLICY, "it differs with Updates"),
        (Method(), "the moon is full", "'the moon is full' cannot be checked"),
    ],
)
def test_a_false_declaration_is_found(method, condition, problem):
    with pytest.raises(AssertionError, match=problem):
        gradient_differs_from_grpo(method, condition)


@pytest.mark.parametrize(
    ("method", "condition"),
    [
        (ENTRIES["gspo"].method, ONE_UPDATE),
        (WITH_GRPO_ADVANTAGES, MATCHED_ENGINE),
        (ENTRIES["soft_grpo"].method, SAME_POLICY),
    ],
    ids=["gspo", "dppo_tv with GRPO's advantages", "soft_grpo"],
)
def test_a_true_declaration_holds_whatever_the_default_plan(method, condition):
    gradient_differs_from_grpo(method.replace(updates=TWO), condition)


def test_the_gradient_of_every_update_is_compared():
    late = Method(loss=Clip(0.3, 0.3), updates=TWO)
    assert not has_equal_gradients(late, grpo_counterpart(late))
    assert has_equal_gradients(late, replace(late))


def test_the_counterpart_keeps_the_kl_divergence_and_the_update_plan():
    method = Method(loss=Reinforce() + 0.1 * KL(), updates=TWO, curriculum=ShuffledTasks())
    expected = Method(loss=Clip() + 0.1 * KL(), updates=TWO)
    assert grpo_counterpart(method) == expected


@pytest.mark.parametrize(
    ("paper", "status", "passed"),
    fast_cases(
        1,
        [
            (None, "no", True),
            (Paper("A title"), "FAILED", False),
            (Paper("A title", equals_grpo_when=SAME_POLICY), "passed", True),
        ],
    ),
    ids=["no paper", "undeclared", "declared"],
)
def test_only_a_method_with_a_paper_can_fail_to_differ(paper, status, passed):
    name = "gradient_differs_from_grpo"
    result = next(r for r in report_card(Method(), paper=paper) if r.name == name)
    assert (result.status, result.passed) == (status, passed)
