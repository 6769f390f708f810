"""Conversion between chat messages with media and tokens."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any

from grupo.core.media import Media, Video, media_of
from grupo.core.types import Message, Observation, Rollout
from grupo.models.chat_history import ChatSoFar
from grupo.models.chat_tokenizer import ChatTokenizer, EncodedObservation
from grupo.models.multimodal.media_tokens import LITERAL, register_media
from grupo.models.multimodal.processor import MediaProcessor


@dataclass(frozen=True, kw_only=True)
class MultimodalTokenizer(ChatTokenizer):
    """A chat tokenizer whose messages may hold media, which become media tokens.

    Args:
        processor: processor of the model.
        max_frames: frames of a video that the model reads, as images.
    """

    processor: MediaProcessor
    max_frames: int = 8

    @classmethod
    def of(
        cls, plain: ChatTokenizer, processor: MediaProcessor, max_frames: int
    ) -> "MultimodalTokenizer":
        """The chat tokenizer of a model's text, which also encodes media."""
        values = {f.name: getattr(plain, f.name) for f in fields(plain)}
        return cls(**values, processor=processor, max_frames=max_frames)

    def encode_turn(
        self,
        rollout: Rollout,
        observation: Observation,
        tools: Sequence[Mapping[str, Any]] = (),
        chat: ChatSoFar | None = None,
    ) -> EncodedObservation:
        """The next observation of a rollout in tokens, media tokens among them."""
        self.register([rollout])
        return super().encode_turn(rollout, observation, tools, chat)

    def decode_all(self, tokens: Sequence[Any]) -> str:
        """The text of tokens, special ones by name, without those of media."""
        return super().decode_all([t for t in tokens if not isinstance(t, int) or t < LITERAL])

    def register(self, rollouts: Sequence[Rollout]) -> None:
        """Make the media of rollouts known, which another process may have generated."""
        for rollout in rollouts:
            for observation, _ in rollout.turns:
                register_media(self._read_media(observation))

    def _read_media(self, observation: Observation) -> Iterator[Media]:
        """The images and sounds that the model reads: of a video, some of its frames."""
        for media in media_of(observation):
            yield from self._frames(media) if isinstance(media, Video) else (media,)

    def _frames(self, video: Video) -> Sequence[Media]:
        """Frames at equal distances, the first and the last one among them."""
        last = len(video.images) - 1
        count = min(self.max_frames, last + 1)
        return [video.images[round(i * last / max(1, count - 1))] for i in range(count)]

    def _tokenize_messages(self, text: str, messages: Sequence[Message]) -> tuple[int, ...]:
        media = tuple(self._read_media(tuple(messages)))
        if not media:
            return super()._tokenize_messages(text, messages)
        return self._cached_media_tokens(text, media)

    @cached_property
    def _cached_media_tokens(self) -> Callable[[str, tuple[Media, ...]], tuple[int, ...]]:
        """The tokens of a text with media; cached, because a group shares one prompt."""
        return lru_cache(maxsize=1 << 12)(self.processor.tokens)

    def _template_message(self, message: Message) -> dict[str, Any]:
        return {**message, "content": self._content_parts(message)}

    def _content_parts(self, message: Message) -> list[dict[str, Any]]:
        """The content as a list of parts, as templates of multimodal models read it."""
        content = message.get("content") or ""
        if isinstance(content, str):
            return [{"type": "text", "text": content}]
        return [new for part in content for new in self._parts_without_media(part)]

    def _parts_without_media(self, part: Mapping[str, Any]) -> list[dict[str, Any]]:
        video = part.get("video")
        if isinstance(video, Video):
            return [{"type": "image"} for _ in self._frames(video)]
        return [{name: x for name, x in part.items() if not isinstance(x, Media)}]
