"""Answers of masked diffusion models, drawn in every way that differs."""

import asyncio

import torch
from transformers import AutoModelForMaskedLM

from grupo.core.types import Action, Rollout
from grupo.models.masked.logp_estimators import AutoregressiveEstimator, CoupledEstimator
from grupo.models.masked.unmask_order import ConfidenceOrder, LeftToRight
from grupo.models.masked_diffusion import MaskedPolicy
from tests.helpers.tiny_lm import PROMPTS, batch_of

ORDERS = {
    "left": (LeftToRight(), AutoregressiveEstimator()),
    "coupled": (LeftToRight(), CoupledEstimator()),
    "confident": (ConfidenceOrder(4), CoupledEstimator()),
    "parallel": (ConfidenceOrder(5, tokens_per_step=2), CoupledEstimator(0.3, 0.6)),
}


def answers(policy: MaskedPolicy, attempts: int = 3, key: int = 7) -> list[Action]:
    """To every prompt so many."""

    async def everyone() -> list[Action]:
        act = policy.actor(key)
        return await asyncio.gather(
            *(act.fork(p, i)(Rollout(), q) for p, q in enumerate(PROMPTS) for i in range(attempts))
        )

    return asyncio.run(everyone())


def batch(policy: MaskedPolicy, actions: list[Action]):
    """A row for each."""
    return batch_of(policy, [Rollout((("", action),)) for action in actions])


def hand(policy: MaskedPolicy, shown: list[int], width: int) -> torch.Tensor:
    """Log-probabilities at every place after `shown`, the rest masked; by transformers alone."""
    model = AutoModelForMaskedLM.from_pretrained(policy.spec.model).eval()
    mask = policy.denoiser.mask_token
    token = torch.tensor([shown + [mask] * (width - len(shown))])
    logits = model(token).logits[0].detach()
    logits[:, mask] = -torch.inf
    return logits.log_softmax(-1)
