"""What runs in tests of faults are made of: models, tasks, worlds, rewards, pieces of one's own."""

import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random, SystemRandom

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from grupo.algo.losses import Loss
from grupo.core.aux_heads import LinearHead
from grupo.core.batch import Batch, Signals
from grupo.core.component import component
from grupo.core.types import Group, Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.method import Method
from grupo.models.flow_matching.unet import SmallFlow
from grupo.rewards.image_shapes import rollout_image
from grupo.rollouts.samplers import GroupSampler
from grupo.toy import ToyMaskedLM
from grupo.toy.tokenizers import phrase_tokenizer

LETTERS = "abcdefg"
MASKED = "masked"  # where in the folder of the model the one lies that is not causal


def plant(folder: Path) -> None:
    """A model with peaked distributions over characters, as transformers saves it, and a masked."""
    torch.manual_seed(1)
    tokenizer = phrase_tokenizer([])
    wide = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 32}
    ends = {"bos_token_id": None, "eos_token_id": 0, "pad_token_id": 0}
    config = LlamaConfig(
        vocab_size=len(tokenizer), tie_word_embeddings=True, **wide, **heads, **ends
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for parameter in (p for p in model.parameters() if p.ndim > 1):
            parameter.normal_(0, 0.4)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    painter = SmallFlow(tuple(letter * n for letter in LETTERS for n in (1, 2, 3)), 8, 8)
    torch.nn.init.normal_(painter.conv_out.weight, std=0.1)
    painter.save_pretrained(folder / "flow")
    ToyMaskedLM(hidden_size=16, num_layers=1, num_heads=2).save_untrained(folder / MASKED)


def tasks() -> Iterator[Task]:
    for i in range(23):
        yield Task(f"task {i}", LETTERS[i % 7] * (1 + i % 3))


def few_tasks() -> Iterator[Task]:
    yield from list(tasks())[:7]


def hinted_tasks() -> Iterator[Task]:
    for task in tasks():
        yield replace(task, columns={"hint": "D", "hints": [["H"], ["L", "LP"]]})


def fine(task: Task, rollout: Rollout) -> float:
    """The share of characters that come before P: a reward of many values."""
    return sum(c < "P" for c in rollout.text) / 6


def coarse(task: Task, rollout: Rollout) -> float:
    """Right or wrong, mostly wrong: many groups are of one kind."""
    return float(ord(rollout.text[:1] or " ") % 4 == 0)


def same(task: Task, rollout: Rollout) -> float:
    """Always as good: there is nothing to learn."""
    return 0.5


async def late(task: Task, rollout: Rollout) -> float:
    """As `coarse`, after a time that nobody knows beforehand."""
    await asyncio.sleep(SystemRandom().random() * 0.004)
    return coarse(task, rollout)


def failing(task: Task, rollout: Rollout) -> float:
    """As `invalid_move_penalty`, but fails every third time."""
    if sum(map(ord, rollout.text)) % 3 == 0:
        raise ValueError(f"no mark for {rollout.text!r}")
    return fine(task, rollout)


def bright(task: Task, rollout: Rollout) -> float:
    """How light a picture is."""
    return rollout_image(rollout).mean().item()


def brief(task: Task, attempt: Rollout) -> str:
    """A critique of one letter."""
    return attempt.text[:1]


def talkative(task: Task, rollout: Rollout) -> Mapping[str, float]:
    """As `invalid_move_penalty`, with many more numbers: the journal outgrows the weights."""
    return {"score": fine(task, rollout), **{f"number {i}": i / 7 for i in range(60)}}


class Echoing:
    """A world of several turns: it says a letter that it draws, and pays for others.

    It takes a time that nobody knows beforehand.
    """

    def reset(self, task: Task) -> str:
        self.letters = Random(task.key)
        return str(task.prompt)

    def step(self, text: str) -> tuple[str, float, bool]:
        time.sleep(SystemRandom().random() * 0.02)
        wanted = self.letters.choice("abcdefg")
        return wanted, sum(c < "P" for c in text) / 6, text.startswith("Z")


@component
class Surprise:
    """The reward less the mean of what its task earned before: a credit that remembers."""

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        before = [sum(past.mean_rewards) / max(1, len(past.mean_rewards)) for past in batch.history]
        return x - torch.tensor(before).to(x)[batch.group]


def louder(group: Group, rollout: Rollout) -> str:
    """A view: the prompt, louder."""
    return f"{group.task.prompt}!"


def asked(task: Task, attempt: Rollout) -> str:
    """What who hints is shown."""
    return f"{task.prompt}{attempt.text[:2]}"


def begun(text: str) -> str:
    """The hint in what was said."""
    return text[:2].strip()


@component
class Valued(Loss):
    """Learns a value of each state, and compares the policy with itself in another view."""

    @property
    def required_signals(self) -> frozenset[str]:
        return frozenset({"value", "reverse_kl@hot"})

    @property
    def recomputed_signals(self) -> frozenset[str]:
        return self.required_signals

    @property
    def helpers(self) -> tuple[LinearHead, ...]:
        return (LinearHead("value"),)

    def __call__(self, pi: Signals, batch: Batch) -> Tensor:
        return (pi["value"] - batch.advantage) ** 2 + 0.1 * pi["reverse_kl@hot"]


def judged_by(reward) -> SingleTurn:
    return SingleTurn((RewardTerm("part", reward),))


METHOD = Method(sampler=GroupSampler(4))
