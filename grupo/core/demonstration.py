"""A demonstration: a conversation whose answers are given instead of generated."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from grupo.core.types import Message, Observation

Answer = str | Message  # a text, or a message of the assistant, which may call tools


@dataclass(frozen=True)
class Demonstration:
    """A conversation with given answers, on which a policy is trained.

    Args:
        turns: Pairs of an observation and the answer to it, in order. The first observation is ""
            if the answer is a text without a prompt.
        tools: Descriptions of the tools for the chat template, as functions of JSON schema.
        all_tokens: If True, all tokens but the first one are trained on, which no token precedes.
            If False, the tokens of the answers are trained on.
    """

    turns: tuple[tuple[Observation, Answer], ...]
    tools: tuple[Mapping[str, Any], ...] = ()
    all_tokens: bool = False
