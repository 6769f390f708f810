"""Images, videos and audio in the messages of an observation, as encoded files with a digest."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float, UInt8

from grupo.core.optional_deps import optional_dependency

if TYPE_CHECKING:
    from grupo.core.types import Observation


@dataclass(frozen=True)
class Media:
    """An encoded file, the content of a part `{"type": kind, kind: media}` of a message.

    Args:
        data: Bytes of the file.
        media_type: Its type, such as "image/png".
    """

    kind: ClassVar[str] = ""

    data: bytes = field(repr=False)
    media_type: str

    @cached_property
    def digest(self) -> str:
        """Hexadecimal hash of the file's bytes, which identifies its content."""
        return hashlib.blake2b(self.data, digest_size=16).hexdigest()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.media_type}, {self.digest[:8]})"


class Image(Media):
    """A picture: a PNG, JPEG, WebP or GIF file."""

    kind = "image"

    @classmethod
    def from_pixels(cls, pixels: UInt8[np.ndarray, "H W 3"]) -> "Image":
        """A PNG file of RGB values from 0 to 255."""
        return cls(_encode([pixels], "PNG"), "image/png")

    def pixels(self) -> UInt8[np.ndarray, "H W 3"]:
        """RGB values from 0 to 255."""
        with optional_dependency("Pillow", "images"):
            from PIL import Image as PillowImage

        return np.asarray(PillowImage.open(BytesIO(self.data)).convert("RGB"))


class Video(Media):
    """A sequence of frames: an animated PNG, WebP or GIF file."""

    kind = "video"

    @classmethod
    def from_frames(cls, frames: UInt8[np.ndarray, "T H W 3"], fps: float) -> "Video":
        """An animated PNG file of RGB values from 0 to 255, with `fps` frames per second."""
        return cls(_encode(list(frames), "PNG", fps), "image/apng")

    def frames(self) -> UInt8[np.ndarray, "T H W 3"]:
        """RGB values from 0 to 255 of each frame."""
        with optional_dependency("Pillow", "images"):
            from PIL import Image as PillowImage
            from PIL import ImageSequence

        sequence = ImageSequence.Iterator(PillowImage.open(BytesIO(self.data)))
        return np.stack([np.asarray(frame.convert("RGB")) for frame in sequence])

    @property
    def fps(self) -> float:
        """Frames per second."""
        with optional_dependency("Pillow", "images"):
            from PIL import Image as PillowImage

        milliseconds = float(PillowImage.open(BytesIO(self.data)).info.get("duration", 0.0))
        return 1000.0 / milliseconds if milliseconds else 1.0


class Audio(Media):
    """A sound: a WAV file of one channel with 16 bits per sample."""

    kind = "audio"

    @classmethod
    def from_samples(cls, samples: Float[np.ndarray, "S"], rate: int) -> "Audio":
        """A WAV file of samples from -1 to 1, `rate` per second."""
        import wave

        integers = np.round(np.clip(samples, -1.0, 1.0) * 32767.0).astype("<i2")
        file = BytesIO()
        with wave.open(file, "wb") as writer:
            writer.setnchannels(1)
            writer.setsampwidth(2)
            writer.setframerate(rate)
            writer.writeframes(integers.tobytes())
        return cls(file.getvalue(), "audio/wav")

    def samples(self) -> Float[np.ndarray, "S"]:
        """Samples from -1 to 1."""
        import wave

        with wave.open(BytesIO(self.data), "rb") as reader:
            integers = np.frombuffer(reader.readframes(reader.getnframes()), "<i2")
        return integers.astype(np.float32) / 32767.0

    @property
    def rate(self) -> int:
        """Samples per second."""
        import wave

        with wave.open(BytesIO(self.data), "rb") as reader:
            return reader.getframerate()


def media_of(observation: "Observation") -> Iterator[Media]:
    """The images, videos and audio of an observation's messages, in order.

    >>> list(media_of(({"role": "user", "content": [{"type": "text", "text": "Hi"}]},)))
    []
    """
    for message in () if isinstance(observation, str) else observation:
        content = message.get("content")
        for part in content if isinstance(content, list | tuple) else ():
            value: Any = part.get(part.get("type", ""))
            if isinstance(value, Media):
                yield value


def _encode(frames: "list[np.ndarray]", file_format: str, fps: float = 1.0) -> bytes:
    with optional_dependency("Pillow", "images"):
        from PIL import Image as PillowImage

    first, *rest = map(PillowImage.fromarray, frames)
    file = BytesIO()
    animation: Any = {"save_all": True, "append_images": rest, "duration": 1000.0 / fps}
    first.save(file, file_format, **(animation if rest else {}))
    return file.getvalue()
