"""Batches that were sampled, and what is learned of them, read again or not."""

import asyncio
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from grupo.core.batch import Batch
from grupo.core.types import Rollout
from grupo.models.causal_actor import CausalActor
from grupo.models.causal_policy import CausalPolicy
from tests.helpers.llama_backends import by_modules, off, worked
from tests.helpers.tiny_lm import batch_of

NAMES = ("logp", "entropy")
PROMPTS = ("Hi", "What is 2+2?", "A longer question", "Hi")


def talked(
    act: CausalActor, prompts: Sequence[str] = PROMPTS, turns: int = 1, attempts: int = 2
) -> list[Rollout]:
    """So many answers to every prompt, each of so many turns."""

    async def one(place: int) -> Rollout:
        rollout, own = Rollout(), act.fork(place)
        for seen in (prompts[place // attempts], *["And?"] * (turns - 1)):
            rollout = rollout.append_turn(seen, await own(rollout, seen))
        return rollout

    async def everyone() -> list[Rollout]:
        return await asyncio.gather(*map(one, range(len(prompts) * attempts)))

    return asyncio.run(everyone())


def learned(policy: CausalPolicy, batch: Batch) -> list[Tensor]:
    """What a policy says of a batch, and the gradients of weighing each action differently."""
    policy.module.zero_grad()
    weight, said = torch.linspace(-1, 1, batch.mask.numel()).view(batch.mask.shape), []
    for micro in policy.microbatches(batch):
        pi = policy.signals(batch.select_rows(micro), NAMES)
        (weight[micro] * (pi.logp + 0.5 * pi.entropy)).sum().backward()
        said += [pi.logp.detach(), pi.entropy.detach()]
    return [*said, *(p.grad.clone() for p in policy.parameters() if p.grad is not None)]


def assert_alike(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> None:
    """The same numbers, to 1e-5 of the largest among each."""
    assert len(ours) == len(theirs) > 2
    assert all(x < 1e-5 for x in map(off, ours, theirs))


def sampled(policy: CausalPolicy, turns: int = 1, **more: Any) -> Batch:
    """What an engine that has just begun said, as a batch."""
    return batch_of(policy, talked(policy.actor(7), turns=turns, **more))


def recalled(policy: CausalPolicy, batch: Batch) -> list[Tensor]:
    """What is learned of a batch, none of which is read again."""
    with worked() as counts:
        found = learned(policy, batch)
    assert not counts
    return found


def read_again(policy: CausalPolicy, batch: Batch) -> list[Tensor]:
    """What is learned of a batch, all of which is read again."""
    with worked() as counts:
        found = learned(policy, batch)
    assert counts["forward"] == len(list(policy.microbatches(batch)))
    return found


def as_modules(policy: CausalPolicy, batch: Batch) -> list[Tensor]:
    """What is learned of it by the model's own modules."""
    with worked() as counts:
        found = learned(by_modules(policy), batch)
    assert not counts
    return found
