"""A language model that reads the texts of messages and ignores their pictures and sounds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from grupo.core.component import component
from grupo.core.media import Image
from grupo.core.types import Observation, Rollout, Task
from grupo.models.causal_lm import CausalLM
from grupo.models.causal_policy import CausalPolicy
from grupo.models.chat_history import ChatSoFar
from grupo.models.chat_tokenizer import ChatTokenizer, EncodedObservation
from grupo.tasks.base import task_key

LETTERS = "abcdefg"


class BlindTokenizer(ChatTokenizer):
    """Encodes the texts of messages, without a chat template."""

    def encode_turn(
        self,
        rollout: Rollout,
        observation: Observation,
        tools: Sequence[Mapping[str, Any]] = (),
        chat: ChatSoFar | None = None,
    ) -> EncodedObservation:
        return super().encode_turn(rollout, words(observation), tools, chat)


class BlindPolicy(CausalPolicy):
    """A causal language model with a `BlindTokenizer`."""

    def __init__(self, spec: CausalLM) -> None:
        super().__init__(spec)
        values = {f.name: getattr(self.chat_tokenizer, f.name) for f in fields(ChatTokenizer)}
        self.chat_tokenizer = BlindTokenizer(**values)


@component
class BlindLM(CausalLM):
    """A causal language model that ignores pictures."""

    def build(self) -> BlindPolicy:
        self.check()
        return BlindPolicy(self)


def words(observation: Observation) -> str:
    """The texts of an observation's messages."""
    if isinstance(observation, str):
        return observation
    return "".join(part.get("text", "") for m in observation for part in m["content"])


def picture(shade: int) -> Image:
    """A picture of one colour."""
    return Image.from_pixels(np.full((2, 2, 3), shade, np.uint8))


def message(text: str, shade: int) -> Observation:
    """A message with a picture and a text."""
    parts = [{"type": "image", "image": picture(shade)}, {"type": "text", "text": text}]
    return ({"role": "user", "content": parts},)


def pictured_tasks() -> Iterator[Task]:
    """Seven tasks, two of which share a picture."""
    for i, letter in enumerate(LETTERS):
        prompt = message(letter, i % 6)
        yield Task(task_key(prompt), prompt, columns={"images": [picture(i % 6)]})


class PictureGame:
    """A multi-turn environment that returns a letter with a picture of the answer's length."""

    def reset(self, task: Task) -> Observation:
        return task.prompt

    def step(self, text: str) -> tuple[Observation, float, bool]:
        letter = LETTERS[sum(map(ord, text)) % 7]
        reward = sum(c < "P" for c in text) / 6
        return message(letter, 100 + len(text)), reward, text.startswith("Z")
