"""Answers of masked diffusion models in several unmasking orders."""

import asyncio

import torch
from transformers import AutoModelForMaskedLM

from grupo.core.types import Response, Rollout
from grupo.models.masked.logp_estimators import AutoregressiveEstimator, CoupledEstimator
from grupo.models.masked.unmask_order import ConfidenceOrder, LeftToRight
from grupo.models.masked_diffusion import MaskedPolicy
from grupo.util.event_loop import run_coroutine
from tests.helpers.tiny_lm import PROMPTS, batch_of

ORDERS = {
    "left": (LeftToRight(), AutoregressiveEstimator()),
    "coupled": (LeftToRight(), CoupledEstimator()),
    "confident": (ConfidenceOrder(4), CoupledEstimator()),
    "parallel": (ConfidenceOrder(5, tokens_per_step=2), CoupledEstimator(0.3, 0.6)),
}


def answers(policy: MaskedPolicy, attempts: int = 3, key: int = 7) -> list[Response]:
    """Several answers to every prompt, generated in one batch."""

    async def generate_all() -> list[Response]:
        actor = policy.actor(key)
        return await asyncio.gather(
            *(
                actor.fork(p, i)(Rollout(), prompt)
                for p, prompt in enumerate(PROMPTS)
                for i in range(attempts)
            )
        )

    return run_coroutine(generate_all())


def batch(policy: MaskedPolicy, responses: list[Response]):
    """A batch with a row for each response."""
    return batch_of(policy, [Rollout((("", response),)) for response in responses])


def expected_logp(policy: MaskedPolicy, prefix: list[int], width: int) -> torch.Tensor:
    """Log-probabilities at every position, all after `prefix` masked, by transformers."""
    model = AutoModelForMaskedLM.from_pretrained(policy.spec.model).eval()
    mask = policy.denoiser.mask_token
    token = torch.tensor([prefix + [mask] * (width - len(prefix))])
    logits = model(token).logits[0].detach()
    logits[:, mask] = -torch.inf
    return logits.log_softmax(-1)
