"""Tree and single-step branching of flow rollouts."""

from dataclasses import replace

import pytest
import torch

from grupo.core.types import Rollout, Task
from grupo.methods.branch_grpo import branch_grpo
from grupo.methods.tempflow_grpo import ScaleByNoise, tempflow_grpo
from grupo.models.flow_matching.sampler import standard_normal
from grupo.rollouts.samplers import SingleStepBranching, SplitTree
from grupo.storage import tensor_text
from grupo.training.update.collate import collate
from grupo.util.event_loop import run_coroutine
from tests.helpers import tiny_flow


def sample_group(sampler, policy):
    """A group, its batch, and the latents of its rollouts (R, L, ...)."""
    task = Task("k", "a red square")
    group = run_coroutine(sampler(task, tiny_flow.ENV, policy.actor(3)))
    batch = collate([group], policy.encode)
    return group, batch, batch.inputs["latent"]


def num_distinct(latent, step):
    """Number of distinct latents before a step."""
    return len(latent[:, step].unique(dim=0))


@pytest.mark.parametrize("correlation", [0.0, 0.25])
def test_tree_shares_latents_above_its_splits(flow, correlation):
    _, _, latent = sample_group(SplitTree((0, 1, 3), sibling_correlation=correlation), flow.build())
    assert [num_distinct(latent, step) for step in range(5)] == [1, 2, 4, 4, 8]


def test_branch_steps_may_leave_steps_out(flow):
    group, _, _ = sample_group(SingleStepBranching(2, (0, 2)), flow.build())
    assert [rollout.reward_terms["branch_step"] for rollout in group.rollouts] == [0, 0, 2, 2]
    assert {rollout.length for rollout in group.rollouts} == {4}


@pytest.mark.parametrize("window", [(), (0, 1), (1, 3)])
@pytest.mark.parametrize(
    "sampler",
    [SplitTree((0, 2)), SplitTree((0, 1), sibling_correlation=0.25), SingleStepBranching(2)],
    ids=["tree", "correlated", "single_step"],
)
def test_evaluated_logp_matches_generation(flow, sampler, window):
    policy = replace(flow, sde_window=window).build()
    group, batch, _ = sample_group(sampler, policy)
    signals = policy.signals(batch)
    assert batch.mask.any()
    assert (signals.logp - batch.old_logp)[batch.mask].abs().max() < 1e-5
    assert all(r.length == 4 and not r.truncated for r in group.rollouts)


def test_sibling_noise_is_correlated_at_the_split_only(flow):
    policy = flow.build()
    _, batch, _ = sample_group(SplitTree((0, 2), sibling_correlation=0.25), policy)
    steps, act = policy.distributions(batch), policy.actor(3)
    noise = (steps.next_x - steps.mean) / steps.std[:, None, None, None]
    noise = noise.detach().reshape(4, 4, *steps.x.shape[1:])  # leaves, steps

    def stream_noise(step, *label):
        return standard_normal(act.fork(*label).rng_key, step, steps.x.shape[1:])

    for leaf, node in ((0, 1), (2, 2)):
        correlated = 0.75**0.5 * stream_noise(0, "node", node) + 0.5 * stream_noise(0, "split", 0)
        assert torch.allclose(noise[leaf, 0], correlated, atol=1e-4)
        assert torch.allclose(noise[leaf, 1], stream_noise(1, "node", node), atol=1e-4)
    for leaf, node in enumerate((3, 4, 5, 6)):
        correlated = 0.75**0.5 * stream_noise(2, "node", node) + 0.5 * stream_noise(
            2, "split", 1 + leaf // 2
        )
        assert torch.allclose(noise[leaf, 2], correlated, atol=1e-4)
        assert torch.allclose(noise[leaf, 3], stream_noise(3, "node", node), atol=1e-4)


def test_tree_is_deterministic_outside_the_sde_window(flow):
    policy = replace(flow, sde_window=(0, 2)).build()
    _, batch, latent = sample_group(SplitTree((0, 2)), policy)
    assert batch.mask.tolist() == [[True, False, True, False]] * 4
    assert [num_distinct(latent, step) for step in range(5)] == [1, 2, 2, 4, 4]


def test_tree_step_values_reach_the_batch(flow):
    _, batch, _ = sample_group(SplitTree((0, 2)), flow.build())
    assert batch.signals["step/node"].tolist() == [
        [1, 1, 3, 3],
        [1, 1, 4, 4],
        [2, 2, 5, 5],
        [2, 2, 6, 6],
    ]
    assert batch.signals["step/depth"].tolist() == [[1, 1, 2, 2]] * 4


def test_single_step_branching_adds_noise_in_one_step(flow):
    policy = flow.build()
    greedy = run_coroutine(policy.actor(3).with_sampling(top_k=1)(Rollout(), "a red square"))
    straight = torch.stack(
        [tensor_text.decode_tensor(x) for x in (greedy.observation[1], *greedy.items)]
    )
    group, batch, latent = sample_group(SingleStepBranching(2), policy)
    for row, rollout in enumerate(group.rollouts):
        k = int(rollout.reward_terms["branch_step"])
        assert batch.mask[row].nonzero().flatten().tolist() == [k]
        assert torch.allclose(latent[row, : k + 1], straight[: k + 1], atol=1e-6)
        assert not torch.allclose(latent[row, k + 1], straight[k + 1], atol=1e-2)
        logp = [x for _, response in rollout.turns for x in response.logp]
        assert [step for step in range(4) if logp[step]] == [k]


def test_noise_weights_advantages_and_shared_steps_count_once(flow):
    policy = flow.build()
    method = tempflow_grpo(branches_per_step=2, kl_coef=0.0)
    _, batch, _ = sample_group(method.sampler, policy)
    batch = batch.with_signals({"step/std": policy.signals(batch, ["step/std"])["step/std"]})
    weight = ScaleByNoise()(torch.ones_like(batch.reward), batch)[batch.mask]
    # 0.7 sqrt(t / (1 - t)) sqrt(1 / 4) at t = 1 (3/4 in 1 - t), 3/4, 1/2, 1/4
    s = torch.tensor([4.0, 3.0, 1.0, 1 / 3]).sqrt().repeat_interleave(2)
    assert weight.tolist() == pytest.approx((s / s.mean()).tolist(), rel=1e-5)
    _, tree, _ = sample_group(SplitTree((0, 2)), policy)
    weight = branch_grpo((0, 2)).aggregation(tree)
    assert weight[0].tolist() == pytest.approx([1 / 24, 1 / 24, 1 / 12, 1 / 12])
