"""Rollouts written by hand, and what a policy reads of them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor

from grupo.core.batch import Batch
from grupo.core.types import Action, Rollout
from grupo.models.causal_policy import CausalPolicy
from tests.helpers.tiny_lm import ALPHABET, batch_of


def said(text: str) -> Action:
    """An answer of one token for each letter."""
    tokens = tuple(map(ALPHABET.index, text))
    return Action(tokens, (-1.0,) * len(tokens), ())


def conversation(policy: CausalPolicy, *turns: str) -> Rollout:
    """Prompts and answers by turns."""
    rollout = Rollout()
    for prompt, answer in zip(turns[::2], turns[1::2], strict=True):
        seen = policy.encode_observation(rollout, prompt)
        rollout = rollout.append_turn(prompt, replace(said(answer), observation=seen))
    return rollout


@contextmanager
def counted(policy: CausalPolicy) -> Iterator[list[int]]:
    """How many tokens the model reads, each time that it reads."""
    counts = list[int]()
    embedding = policy.hf_model.get_input_embeddings()
    handle = embedding.register_forward_pre_hook(lambda _, args: counts.append(args[0].numel()))
    yield counts
    handle.remove()


def shuffled(policy: CausalPolicy, prompts: Sequence[str], attempts: int) -> tuple[Batch, Tensor]:
    """Answers of 4 tokens to prompts, in any order, and whose they are."""
    order = torch.randperm(len(prompts) * attempts)
    rollouts = [
        conversation(policy, prompts[i // attempts], "abcdefgh"[i % attempts] * 4)
        for i in order.tolist()
    ]
    return batch_of(policy, rollouts), order // attempts
