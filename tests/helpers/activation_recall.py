"""Sampled batches, and their signals and gradients with cached or recomputed activations."""

import asyncio
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from grupo.core.batch import Batch
from grupo.core.types import Rollout
from grupo.models.causal_actor import CausalActor
from grupo.models.causal_policy import CausalPolicy
from grupo.util.event_loop import run_coroutine
from tests.helpers.llama_backends import count_calls, relative_error, with_hf_backend
from tests.helpers.tiny_lm import batch_of

NAMES = ("logp", "entropy")
PROMPTS = ("Hi", "What is 2+2?", "A longer question", "Hi")


def generate_rollouts(
    actor: CausalActor, prompts: Sequence[str] = PROMPTS, turns: int = 1, attempts: int = 2
) -> list[Rollout]:
    """Rollouts of so many turns, so many for every prompt."""

    async def roll_out(number: int) -> Rollout:
        rollout, own_actor = Rollout(), actor.fork(number)
        for observation in (prompts[number // attempts], *["And?"] * (turns - 1)):
            action = await own_actor(rollout, observation)
            rollout = rollout.append_turn(observation, action)
        return rollout

    async def roll_out_all() -> list[Rollout]:
        return await asyncio.gather(*map(roll_out, range(len(prompts) * attempts)))

    return run_coroutine(roll_out_all())


def sampled_batch(policy: CausalPolicy, turns: int = 1, **options: Any) -> Batch:
    """A batch that a new engine of the policy has sampled."""
    return batch_of(policy, generate_rollouts(policy.actor(7), turns=turns, **options))


def signals_and_grads(policy: CausalPolicy, batch: Batch) -> list[Tensor]:
    """Log-probabilities and entropies, and gradients with a different weight for each action."""
    policy.module.zero_grad()
    weight = torch.linspace(-1, 1, batch.mask.numel()).view(batch.mask.shape)
    logp, entropy = torch.zeros(2, *batch.mask.shape, dtype=batch.old_logp.dtype)
    for micro in policy.microbatches(batch):
        pi = policy.signals(batch.select_rows(micro), NAMES)
        (weight[micro] * (pi.logp + 0.5 * pi.entropy)).sum().backward()
        logp[micro] = pi.logp.detach().to(logp)
        entropy[micro] = pi.entropy.detach().to(entropy)
    return [logp, entropy, *(p.grad.clone() for p in policy.parameters() if p.grad is not None)]


def assert_all_close(actual: Sequence[Tensor], expected: Sequence[Tensor]) -> None:
    """Equal to 1e-5 of the largest number of each tensor."""
    assert len(actual) == len(expected) > 2
    assert all(x < 1e-5 for x in map(relative_error, actual, expected))


def with_cached_activations(policy: CausalPolicy, batch: Batch) -> list[Tensor]:
    """Signals and gradients of a batch, without any forward pass."""
    with count_calls() as counts:
        numbers = signals_and_grads(policy, batch)
    assert not counts
    return numbers


def with_recomputed_activations(
    policy: CausalPolicy, batch: Batch, num_cached: int = 0
) -> list[Tensor]:
    """Signals and gradients, with a forward pass for all micro-batches but `num_cached`."""
    with count_calls() as counts:
        numbers = signals_and_grads(policy, batch)
    assert counts["forward"] == len(list(policy.microbatches(batch))) - num_cached > 0
    return numbers


def with_hf_modules(policy: CausalPolicy, batch: Batch) -> list[Tensor]:
    """Signals and gradients of a batch, computed by the model's own modules."""
    with count_calls() as counts:
        numbers = signals_and_grads(with_hf_backend(policy), batch)
    assert not counts
    return numbers
