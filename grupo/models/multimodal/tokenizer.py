"""Conversion between chat messages with media and tokens."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from grupo.core.media import Media, media_of
from grupo.core.types import Message, Observation, Rollout
from grupo.models.chat_tokenizer import ChatTokenizer
from grupo.models.multimodal.media_tokens import register_media
from grupo.models.multimodal.processor import MediaProcessor


@dataclass(frozen=True, kw_only=True)
class MultimodalTokenizer(ChatTokenizer):
    """A chat tokenizer whose messages may hold media, which become media tokens.

    Args:
        processor: processor of the model.
    """

    processor: MediaProcessor

    def encode_observation(
        self,
        rollout: Rollout,
        observation: Observation,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> tuple[int, ...]:
        """Tokens of the next observation of a rollout, media tokens among them."""
        self.register([rollout])
        return super().encode_observation(rollout, observation, tools)

    def register(self, rollouts: Sequence[Rollout]) -> None:
        """Make the media of rollouts known, which another process may have generated."""
        for rollout in rollouts:
            for observation, _ in rollout.turns:
                register_media(media_of(observation))

    def _tokenize_messages(self, text: str, messages: Sequence[Message]) -> tuple[int, ...]:
        media = tuple(media_of(tuple(messages)))
        if not media:
            return super()._tokenize_messages(text, messages)
        return self._cached_media_tokens(text, media)

    @cached_property
    def _cached_media_tokens(self) -> Callable[[str, tuple[Media, ...]], tuple[int, ...]]:
        """The tokens of a text with media; cached, because a group shares one prompt."""
        return lru_cache(maxsize=1 << 12)(self.processor.tokens)

    def _render(
        self,
        messages: list[dict[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        *,
        prompt: bool = False,
        prefill: bool = False,
    ) -> str:
        parts = [{**message, "content": _content_parts(message)} for message in messages]
        return super()._render(parts, tools, prompt=prompt, prefill=prefill)


def _content_parts(message: Message) -> list[dict[str, Any]]:
    """The content as a list of parts, as templates of multimodal models read it, without media."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [{name: x for name, x in part.items() if not isinstance(x, Media)} for part in content]
