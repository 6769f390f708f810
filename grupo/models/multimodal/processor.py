"""The processor of a multimodal model: it turns text with media into tokens and tensors."""

import inspect
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from transformers import PreTrainedConfig

from grupo.core.media import Audio, Image, Media
from grupo.core.types import Message
from grupo.models.multimodal.media_tokens import (
    MAX_TOKENS,
    media_key,
    media_of_key,
    media_tokens,
    register_media,
)
from grupo.models.tokenizer_trial import check_template_works
from grupo.util.errors import ConfigError
from grupo.util.optional_deps import optional_dependency

TOKEN_TYPES = {"image": 1, "video": 2, "audio": 3}  # in `mm_token_type_ids`
# outputs of a processor that describe tokens, and not the media
TOKEN_OUTPUTS = {"input_ids", "attention_mask", "mm_token_type_ids", "token_type_ids"}
MAX_ENCODED_BYTES = 1 << 30  # of tensors that stay in memory


@dataclass(frozen=True)
class EncodedMedia:
    """An image or audio as the model's tower reads it.

    Args:
        kind: "image" or "audio".
        key: Identifies the content: `media_key`.
        num_tokens: Number of its positions in a context.
        token_id: Token that the processor writes there.
        inputs: Outputs of the processor, by name, for this content alone.
    """

    kind: str
    key: int
    num_tokens: int
    token_id: int
    inputs: Mapping[str, Tensor]

    @property
    def num_bytes(self) -> int:
        """Memory of the tensors."""
        return sum(x.numel() * x.element_size() for x in self.inputs.values())


class MediaProcessor:
    """Tokens of texts with media, and the tensors of media by their keys.

    Args:
        processor: Processor of transformers.
        config: Configuration of the model.
        name: Folder or hub name of the model, for messages.
    """

    def __init__(self, processor: Any, config: PreTrainedConfig, name: str) -> None:
        self.processor = processor
        self.name = name
        ids = {kind: getattr(config, f"{kind}_token_id", None) for kind in TOKEN_TYPES}
        # token that the processor writes at each position of a kind of media
        self.placeholder_ids = {kind: token for kind, token in ids.items() if token is not None}
        self.encoded: OrderedDict[int, EncodedMedia] = OrderedDict()
        self.num_bytes = 0

    def __deepcopy__(self, memo: object) -> "MediaProcessor":
        """The processor itself: copies of a model share it."""
        return self

    @property
    def tokenizer(self) -> Any:
        """Tokenizer of transformers."""
        return self.processor.tokenizer

    def tokens(self, text: str, media: Sequence[Media]) -> tuple[int, ...]:
        """Tokens of a rendered text, with media tokens at the positions of its media.

        Raises:
            ConfigError: The text has other placeholders than there are media.
        """
        register_media(media)
        encoded = [self.encode(media_key(x.digest)) for x in media]
        output = self._call(text, media)
        tokens = output["input_ids"][0].tolist()
        ids = {self.placeholder_ids[x.kind] for x in encoded}
        places = [i for i, token in enumerate(tokens) if token in ids]
        counts = (x.num_tokens for x in encoded)
        new = [t for m, n in zip(media, counts, strict=True) for t in media_tokens(m.digest, n)]
        if len(new) != len(places):
            raise ConfigError(
                f"prompt: the processor of {self.name!r} writes {len(places)} tokens for"
                f" {len(media)} media, which have {len(new)} one by one. Allowed: as many"
                " placeholders as media, and none in the text itself."
            )
        for place, token in zip(places, new, strict=True):
            tokens[place] = token
        return tuple(tokens)

    def encode(self, key: int) -> EncodedMedia:
        """The tensors of a registered content."""
        if key not in self.encoded:
            encoded = self._encode(media_of_key(key), key)
            self.encoded[key] = encoded
            self.num_bytes += encoded.num_bytes
            while self.num_bytes > MAX_ENCODED_BYTES and len(self.encoded) > 1:
                self.num_bytes -= self.encoded.popitem(last=False)[1].num_bytes
        self.encoded.move_to_end(key)
        return self.encoded[key]

    def render(self, message: Message) -> str:
        """The text of one message, with a placeholder for each content."""
        options = {"tools": None, "add_generation_prompt": False, "continue_final_message": False}
        check_template_works(self.processor.tokenizer, [message], options)
        return self.processor.apply_chat_template([message], tokenize=False)

    def _encode(self, media: Media, key: int) -> EncodedMedia:
        """Processes the content alone, in a message of its own."""
        kind = media.kind
        if kind not in self.placeholder_ids:
            allowed = ", ".join(self.placeholder_ids)
            raise ConfigError(
                f"prompt: it holds a part of type {kind!r}, which {self.name!r} does not read."
                f" Allowed: text, {allowed}."
            )
        message = {"role": "user", "content": [{"type": kind}]}
        output = self._call(self.render(message), [media])
        token_id = self.placeholder_ids[kind]
        count = int((output["input_ids"] == token_id).sum())
        if count > MAX_TOKENS:
            raise ConfigError(f"prompt: an {kind} of {count} tokens. Allowed: {MAX_TOKENS}.")
        inputs = {n: x for n, x in output.items() if n not in TOKEN_OUTPUTS}
        return EncodedMedia(kind, key, count, token_id, inputs)

    def _call(self, text: str, media: Sequence[Media]) -> Mapping[str, Tensor]:
        """Outputs of the processor for a text and its media."""
        arguments: dict[str, Any] = {}
        if images := [_pillow_image(x) for x in media if isinstance(x, Image)]:
            arguments["images"] = images
        if sounds := [x for x in media if isinstance(x, Audio)]:
            arguments["audio"] = [_resampled(x, self.sampling_rate) for x in sounds]
            arguments["sampling_rate"] = self.sampling_rate
        try:
            output = self.processor(
                text=[text], **arguments, add_special_tokens=False, return_tensors="pt"
            )
        except (ValueError, TypeError, IndexError) as error:
            raise ConfigError(
                f"prompt: the processor of {self.name!r} rejects it: {error} Allowed: as many"
                " placeholders as media, and none in the text itself."
            ) from error
        return {name: x for name, x in output.items() if isinstance(x, Tensor)}

    @property
    def sampling_rate(self) -> int:
        """Samples per second of the audio that the model reads."""
        return int(self.processor.feature_extractor.sampling_rate)


def accepted_inputs(function: Any, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The inputs that a function names among its parameters."""
    names = inspect.signature(function).parameters
    return {name: x for name, x in inputs.items() if name in names}


def _pillow_image(image: Image) -> Any:
    with optional_dependency("Pillow", "images"):
        from PIL import Image as PillowImage

    return PillowImage.fromarray(image.pixels())


def _resampled(audio: Audio, rate: int) -> Any:
    """Samples at another rate, interpolated in the frequency domain."""
    if audio.rate == rate:
        return audio.samples()
    from scipy.signal import resample

    samples = audio.samples()
    resampled: Any = resample(samples, round(len(samples) * rate / audio.rate))
    return resampled.astype(samples.dtype)
