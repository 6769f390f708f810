"""Rewards, policies, optimizers and masks that are wrong, and a world of two turns."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from grupo.algo.optimizer import Adam
from grupo.core.batch import Batch
from grupo.core.component import component
from grupo.core.types import Observation, RewardResult, Rollout, Task
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.weight_sync import CopiedWeights, SharedWeights, Weights
from grupo.training.collate import collate

LETTERS = "abcdefgh"


def by_letter(rollout: Rollout) -> float:
    """Pays where the first turn begins with a letter."""
    return float(rollout.text[:1] in LETTERS and bool(rollout.text))


def always(rollout: Rollout) -> float:
    return 1.0


def by_length(rollout: Rollout) -> float:
    return rollout.length / 40


def no_number(rollout: Rollout) -> float:
    return math.nan if rollout.length % 3 == 0 else by_letter(rollout)


def raises(task: Task, rollout: Rollout) -> float:
    return no_number(rollout)


@component
class TwoTurns:
    """A question, and one more."""

    reward: Callable[[Rollout], float] = by_letter

    async def reply(self, task: Task, rollout: Rollout) -> Observation | None:
        return (task.prompt, "?:")[len(rollout.turns)] if len(rollout.turns) < 2 else None

    async def score(self, task: Task, rollouts: Sequence[Rollout]) -> list[RewardResult]:
        return [RewardResult(self.reward(rollout)) for rollout in rollouts]


class Deaf(CopiedWeights):
    """Speaks with the weights that the policy began with."""

    def load(self, weights: Weights) -> None:
        pass


@component
class Stale(CausalLM):
    """Its sampler never hears of new weights."""

    def build(self) -> CausalPolicy:
        policy = CausalPolicy(self)
        policy.weight_sync = Deaf(policy.hf_model, policy.make_engine)
        return policy


@component
class Colder(CausalLM):
    """Its sampler draws from a sharper distribution than it says."""

    def build(self) -> CausalPolicy:
        policy = CausalPolicy(self)
        sharp, language = replace(policy.lm_head, scale=1.3), policy.chat_tokenizer
        engine = policy.evaluator.engine(sharp, language.tokenizer, policy.stop_conditions)
        policy.weight_sync = SharedWeights(policy.hf_model, lambda model: engine)
        return policy


@component
class Dead(CausalLM):
    """Both halves of its adapters are 0."""

    def build(self) -> CausalPolicy:
        policy = CausalPolicy(self)
        with torch.no_grad():
            for parameter in policy.parameters():
                parameter.zero_()
        return policy


@component
class Uphill(Adam):
    """It has the wrong sign."""

    def __call__(self, parameters: Sequence[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.AdamW(parameters, maximize=True, weight_decay=0.0)


def turned(x: Tensor, batch: Batch) -> Tensor:
    """The wrong sign."""
    return -x


def collated_with_the_world(*given: Any) -> Batch:
    """The world's words are to be learned, too."""
    batch = collate(*given)
    width = (batch.inputs["length"] - batch.inputs["start"])[:, None]
    return replace(batch, mask=torch.arange(batch.mask.shape[1]) < width)


def collated_one_off(*given: Any) -> Batch:
    """The mask is shifted by one."""
    batch = collate(*given)
    return replace(batch, mask=batch.mask.roll(1, 1))


MASKS = {"the world's words": collated_with_the_world, "one off": collated_one_off}
