"""Images of one tree, and images that differ by one step's noise."""

import asyncio
from dataclasses import replace

import pytest
import torch

from grupo.core.types import Rollout, Task
from grupo.methods.branch_grpo import branch_grpo
from grupo.methods.tempflow_grpo import tempflow_grpo
from grupo.models.flow_matching.sampler import standard_normal
from grupo.rollouts.samplers import SingleStepBranching, SplitTree
from grupo.storage import tensor_text
from grupo.training.collate import collate
from tests.helpers import tiny_flow


def grown(sampler, policy):
    """A group, its batch, and each rollout's latents (R, L, ...)."""
    world, act = tiny_flow.WORLD, policy.actor(3)
    group = asyncio.run(sampler(Task("k", "a red square"), world, act))
    batch = collate([group], policy.encode)
    return group, batch, batch.inputs["latent"]


def drawings(latent, step):
    """How many of the latents before this step are different."""
    return len(latent[:, step].unique(dim=0))


@pytest.mark.parametrize("alike", [0.0, 0.25])
def test_a_tree_shares_its_noise_and_the_steps_above_its_splits(flow, alike):
    _, _, latent = grown(SplitTree((0, 1, 3), sibling_correlation=alike), flow.build())
    assert [drawings(latent, step) for step in range(5)] == [1, 2, 4, 4, 8]


@pytest.mark.parametrize("window", [(), (0, 1), (1, 3)])
@pytest.mark.parametrize(
    "sampler",
    [SplitTree((0, 2)), SplitTree((0, 1), sibling_correlation=0.25), SingleStepBranching(2)],
    ids=["tree", "alike", "once"],
)
def test_what_was_drawn_is_as_likely_as_when_it_was(flow, sampler, window):
    policy = replace(flow, sde_window=window).build()
    group, batch, _ = grown(sampler, policy)
    said = policy.signals(batch)
    assert batch.mask.any()
    assert (said.logp - batch.old_logp)[batch.mask].abs().max() < 1e-5
    assert all(r.length == 4 and not r.truncated for r in group.rollouts)


def test_siblings_noises_are_of_one_correlation_at_their_split_and_then_their_own(flow):
    policy = flow.build()
    _, batch, _ = grown(SplitTree((0, 2), sibling_correlation=0.25), policy)
    steps, act = policy.spoken(batch), policy.actor(3)
    noise = (steps.drawn - steps.mean) / steps.std[:, None, None, None]
    noise = noise.detach().reshape(4, 4, *steps.x.shape[1:])  # leaves, steps

    def drawn(step, *label):
        return standard_normal(act.fork(*label).key, step, steps.x.shape[1:])

    for leaf, node in ((0, 1), (2, 2)):
        alike = 0.75**0.5 * drawn(0, "node", node) + 0.5 * drawn(0, "split", 0)
        assert torch.allclose(noise[leaf, 0], alike, atol=1e-4)
        assert torch.allclose(noise[leaf, 1], drawn(1, "node", node), atol=1e-4)
    for leaf, node in enumerate((3, 4, 5, 6)):
        alike = 0.75**0.5 * drawn(2, "node", node) + 0.5 * drawn(2, "split", 1 + leaf // 2)
        assert torch.allclose(noise[leaf, 2], alike, atol=1e-4)
        assert torch.allclose(noise[leaf, 3], drawn(3, "node", node), atol=1e-4)


def test_a_tree_within_a_window_follows_the_course_elsewhere(flow):
    policy = replace(flow, sde_window=(0, 2)).build()
    _, batch, latent = grown(SplitTree((0, 2)), policy)
    assert batch.mask.tolist() == [[True, False, True, False]] * 4
    assert [drawings(latent, step) for step in range(5)] == [1, 2, 2, 4, 4]


def test_marks_of_the_tree_reach_the_batch(flow):
    _, batch, _ = grown(SplitTree((0, 2)), flow.build())
    assert batch.signals["step/node"].tolist() == [
        [1, 1, 3, 3],
        [1, 1, 4, 4],
        [2, 2, 5, 5],
        [2, 2, 6, 6],
    ]
    assert batch.signals["step/depth"].tolist() == [[1, 1, 2, 2]] * 4


def test_an_image_leaves_the_course_by_one_step_and_follows_it_again(flow):
    policy = flow.build()
    course = asyncio.run(policy.actor(3).at(top_k=1)(Rollout(), "a red square"))
    straight = torch.stack([tensor_text.decode_tensor(x) for x in (course.seen[1], *course.parts)])
    group, batch, latent = grown(SingleStepBranching(2), policy)
    for row, rollout in enumerate(group.rollouts):
        k = int(rollout.reward_terms["place"])
        assert batch.mask[row].nonzero().flatten().tolist() == [k]
        assert torch.allclose(latent[row, : k + 1], straight[: k + 1], atol=1e-6)
        assert not torch.allclose(latent[row, k + 1], straight[k + 1], atol=1e-2)
        logp = [x for _, action in rollout.turns for x in action.logp]
        assert [step for step in range(4) if logp[step]] == [k]


def test_noise_weighs_the_steps_and_a_shared_step_counts_once(flow):
    policy = flow.build()
    method = tempflow_grpo(branches_per_step=2, kl_coef=0.0)
    _, batch, _ = grown(method.sampler, policy)
    batch = batch.with_signals({"step/std": policy.signals(batch, ["step/std"])["step/std"]})
    weight = method.aggregation(batch)[batch.mask]
    # 0.7 sqrt(t / (1 - t)) sqrt(1 / 4) at t = 1 (3/4 in 1 - t), 3/4, 1/2, 1/4
    s = torch.tensor([4.0, 3.0, 1.0, 1 / 3]).sqrt().repeat_interleave(2)
    assert weight.tolist() == pytest.approx((s / s.mean() / 8).tolist(), rel=1e-5)
    _, tree, _ = grown(SplitTree((0, 2)), policy)
    weight = branch_grpo((0, 2)).aggregation(tree)
    assert weight[0].tolist() == pytest.approx([1 / 24, 1 / 24, 1 / 12, 1 / 12])
