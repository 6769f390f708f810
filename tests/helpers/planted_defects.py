"""Defective rewards, policies, optimizers and masks, and an environment with two turns."""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from grupo.algo.optimizers import Adam
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.types import Observation, RewardResult, Rollout, Task
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.weight_sync import CopiedWeights, SharedWeights, Weights
from grupo.training.update.collate import collate

LETTERS = "abcdefgh"


def letter_reward(rollout: Rollout) -> float:
    """1 if the text begins with a letter."""
    return float(rollout.text[:1] in LETTERS and bool(rollout.text))


def constant_reward(rollout: Rollout) -> float:
    return 1.0


def length_reward(rollout: Rollout) -> float:
    return rollout.length / 40


def nan_reward(rollout: Rollout) -> float:
    return math.nan if rollout.length % 3 == 0 else letter_reward(rollout)


def nan_term(task: Task, rollout: Rollout) -> float:
    return nan_reward(rollout)


@component
class TwoTurns:
    """An environment with a prompt and one further observation."""

    reward: Callable[[Rollout], float] = letter_reward

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        return (task.prompt, "?:")[len(rollout.turns)] if len(rollout.turns) < 2 else None

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> list[RewardResult]:
        return [RewardResult(self.reward(rollout)) for rollout in rollouts]


class FrozenCopy(CopiedWeights):
    """A copy of the initial weights that is never synced."""

    def load(self, weights: Weights) -> None:
        pass


@component
class StaleSampler(CausalLM):
    """Its sampler never receives new weights."""

    def build(self) -> CausalPolicy:
        policy = CausalPolicy(self)
        policy.weight_sync = FrozenCopy(policy.hf_model, policy.make_engine)
        return policy


@component
class SharperSampler(CausalLM):
    """Its sampler uses sharper logits than the trainer."""

    def build(self) -> CausalPolicy:
        policy = CausalPolicy(self)
        head, tokenizer = replace(policy.lm_head, scale=1.3), policy.chat_tokenizer.tokenizer
        engine = policy.evaluator.engine(head, tokenizer, policy.stop_conditions)
        policy.weight_sync = SharedWeights(policy.hf_model, lambda model: engine)
        return policy


@component
class ZeroAdapters(CausalLM):
    """Both matrices of its adapters are 0."""

    def build(self) -> CausalPolicy:
        policy = CausalPolicy(self)
        with torch.no_grad():
            for parameter in policy.parameters():
                parameter.zero_()
        return policy


@component
class AscentAdam(Adam):
    """Gradient ascent."""

    def __call__(
        self, parameters: Sequence[nn.Parameter], embeddings: Collection[nn.Parameter] = ()
    ) -> torch.optim.Optimizer:
        return torch.optim.AdamW(parameters, maximize=True, weight_decay=0.0)


def negate(x: Tensor, batch: Batch) -> Tensor:
    """Advantages with the wrong sign."""
    return -x


def collate_with_observations(*args: Any) -> Batch:
    """The mask includes the observations."""
    batch = collate(*args)
    width = (batch.inputs["length"] - batch.inputs["start"])[:, None]
    return replace(batch, mask=torch.arange(batch.mask.shape[1]) < width)


def collate_with_shifted_mask(*args: Any) -> Batch:
    """The mask is shifted by one token."""
    batch = collate(*args)
    return replace(batch, mask=batch.mask.roll(1, 1))


MASKS = {
    "observations in the mask": collate_with_observations,
    "shifted mask": collate_with_shifted_mask,
}
