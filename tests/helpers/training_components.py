"""Components of the runs in fault tests: models, tasks, environments, rewards, losses."""

import asyncio
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random, SystemRandom

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from grupo.algo.losses import Loss
from grupo.core.aux_heads import DeepHead, LinearHead, OwnModelHead
from grupo.core.batch import Batch, Signals
from grupo.core.component import component
from grupo.core.requires import Requires
from grupo.core.task_statistic import ScoredGroup, StatisticState, TaskStatistic
from grupo.core.types import Group, Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.envs.game_env import StepResult
from grupo.envs.tools import Toolbox
from grupo.envs.tools.formats.hermes import CLOSE_TAG, OPEN_TAG
from grupo.method import Method
from grupo.models.flow_matching.unet import SmallFlow
from grupo.rewards.image_shapes import rollout_image
from grupo.rollouts.samplers import GroupSampler
from grupo.toy import ToyMaskedLM
from grupo.toy.tokenizers import phrase_tokenizer

LETTERS = "abcdefg"
MASKED = "masked"  # subfolder of the masked diffusion model
WIDE = "wide"  # subfolder of a causal model with operations that torch computes in parallel


def save_models(folder: Path) -> None:
    """Save a causal model with peaked distributions, a flow model and a masked diffusion model."""
    torch.manual_seed(1)
    tokenizer = phrase_tokenizer([])
    size = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 32}
    special_tokens = {"bos_token_id": None, "eos_token_id": 0, "pad_token_id": 0}
    config = LlamaConfig(
        vocab_size=len(tokenizer), tie_word_embeddings=True, **size, **heads, **special_tokens
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for parameter in (p for p in model.parameters() if p.ndim > 1):
            parameter.normal_(0, 0.4)
    wide = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "head_dim": 64}
    wide_model = LlamaForCausalLM(LlamaConfig(**{**config.to_dict(), **wide}))
    for path, saved in ((folder, model), (folder / WIDE, wide_model)):
        saved.save_pretrained(path)
        tokenizer.save_pretrained(path)
    flow = SmallFlow(tuple(letter * n for letter in LETTERS for n in (1, 2, 3)), 8, 8)
    torch.nn.init.normal_(flow.conv_out.weight, std=0.1)
    flow.save_pretrained(folder / "flow")
    ToyMaskedLM(hidden_size=16, num_layers=1, num_heads=2).save_untrained(folder / MASKED)


def tasks() -> Iterator[Task]:
    for i in range(23):
        yield Task(f"task {i}", LETTERS[i % 7] * (1 + i % 3))


def demonstrated() -> Iterator[Task]:
    """The tasks with an answer to learn from."""
    for i, task in enumerate(tasks()):
        yield replace(task, columns={"completion": LETTERS[i % 5] * (1 + i % 4)})


def few_tasks() -> Iterator[Task]:
    yield from list(tasks())[:7]


def sourced_tasks() -> Iterator[Task]:
    """The tasks, every third of them from another source."""
    for i, task in enumerate(tasks()):
        yield replace(task, source=f"source {i % 3}")


def hinted_tasks() -> Iterator[Task]:
    for task in tasks():
        yield replace(task, columns={"hint": "D", "hints": [["H"], ["L", "LP"]]})


def similar_tasks() -> Iterator[Task]:
    """Tasks of two words, which others share."""
    for i in range(12):
        yield Task(f"task {i}", f"{LETTERS[i % 4]},{LETTERS[i % 3]}")


def fine(task: Task, rollout: Rollout) -> float:
    """The fraction of characters before P: a reward of many values."""
    return sum(c < "P" for c in rollout.text) / 6


def coarse(task: Task, rollout: Rollout) -> float:
    """Correct or wrong, mostly wrong: many groups have equal rewards."""
    return float(ord(rollout.text[:1] or " ") % 4 == 0)


def same(task: Task, rollout: Rollout) -> float:
    """A constant reward: there is no training signal."""
    return 0.5


async def late(task: Task, rollout: Rollout) -> float:
    """As `coarse`, after a random delay."""
    await asyncio.sleep(SystemRandom().random() * 0.004)
    return coarse(task, rollout)


def failing(task: Task, rollout: Rollout) -> float:
    """As `fine`, but raises for a third of the answers."""
    if sum(map(ord, rollout.text)) % 3 == 0:
        raise ValueError(f"no reward for {rollout.text!r}")
    return fine(task, rollout)


def bright(task: Task, rollout: Rollout) -> float:
    """The mean brightness of an image."""
    return rollout_image(rollout).mean().item()


def brief(task: Task, attempt: Rollout) -> str:
    """A critique of one letter."""
    return attempt.text[:1]


def talkative(task: Task, rollout: Rollout) -> Mapping[str, float]:
    """As `fine`, with many reward terms: the journal outgrows the weights."""
    return {"score": fine(task, rollout), **{f"number {i}": i / 7 for i in range(60)}}


class LetterGame:
    """A multi-turn environment: it returns random letters and rewards letters before P.

    Each step takes a random time.
    """

    def reset(self, task: Task) -> str:
        self.letters = Random(task.key)
        return str(task.prompt)

    def step(self, text: str) -> tuple[str, float, bool]:
        time.sleep(SystemRandom().random() * 0.02)
        letter = self.letters.choice("abcdefg")
        return letter, sum(c < "P" for c in text) / 6, text.startswith("Z")


def before_p(letters: str) -> str:
    """A tool: the letters before P."""
    return "".join(c for c in letters if c < "P")


def swapped(letters: str) -> str:
    """A tool: the letters in the other case; fails if there are none."""
    if not letters:
        raise ValueError("no letters")
    return letters.swapcase()


class ToolLetters:
    """A session of tool calls: the first letter of a text selects the tool.

    An unknown tool, a failing tool and a text that calls no tool occur, too.
    """

    tools = ("before_p", "swapped", "missing")

    def reset(self, task: Task) -> str:
        self.session = Toolbox((before_p, swapped))()
        return str(task.prompt)

    def step(self, text: str) -> StepResult:
        number = ord(text[:1] or " ") % 4
        calls = [{"name": name, "arguments": {"letters": text[1:4]}} for name in self.tools]
        written = "".join(f"{OPEN_TAG}{json.dumps(call)}{CLOSE_TAG}" for call in calls[number:][:1])
        result = self.session.step(written)
        return result._replace(observation=str(result.observation)[:3])


@component
class SumOfMeans(TaskStatistic):
    """The number of a task's groups, and the sum of their mean rewards."""

    @property
    def initial_state(self) -> StatisticState:
        return (0.0, 0.0)

    def __call__(self, state: StatisticState, group: ScoredGroup) -> StatisticState:
        count, total = state
        return (count + 1, total + sum(group.rewards) / len(group.rewards))


@component
class MinusTaskMean:
    """The reward minus the mean of the task's earlier rewards: an estimator with history."""

    requires = Requires(task_statistics=(SumOfMeans(),))

    def __call__(self, x: Tensor, batch: Batch) -> Tensor:
        states = [history.state(SumOfMeans()) for history in batch.history]
        means = [total / max(1, count) for count, total in states]
        return x - torch.tensor(means).to(x)[batch.group]


def prompt_with_exclamation(group: Group, rollout: Rollout) -> str:
    """The prompt with an exclamation mark."""
    return f"{group.task.prompt}!"


def hint_prompt(task: Task, attempt: Rollout) -> str:
    """The prompt for generating a hint."""
    return f"{task.prompt}{attempt.text[:2]}"


def extract_hint(text: str) -> str:
    """The hint in a generated text."""
    return text[:2].strip()


HEADS = LinearHead("value"), DeepHead("deep_value"), OwnModelHead("model_value")


@component
class HeadsAndReverseKL(Loss):
    """Trains every kind of head, and compares the policy with itself under another prompt."""

    requires = Requires(
        recomputed_signals=("reverse_kl@hot", *(head.name for head in HEADS)), heads=HEADS
    )

    def __call__(self, pi: Signals, batch: Batch) -> Tensor:
        errors = (pi[head.name] - batch.advantage for head in HEADS)
        return sum(error**2 for error in errors) + 0.1 * pi["reverse_kl@hot"]


def env_with_reward(reward) -> SingleTurn:
    return SingleTurn((RewardTerm("part", reward),))


METHOD = Method(sampler=GroupSampler(4))
