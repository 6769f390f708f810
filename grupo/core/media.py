"""Images, videos and audio in the messages of an observation, as encoded files with a digest."""

import base64
import hashlib
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, UInt8

from grupo.core.pictures import frames_of, open_picture
from grupo.core.wave_files import decode_wave, encode_wave, wave_rate
from grupo.util.errors import ConfigError
from grupo.util.optional_deps import optional_dependency


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

    @property
    def data_url(self) -> str:
        """The file as an address that holds its bytes."""
        return f"data:{self.media_type};base64,{base64.b64encode(self.data).decode()}"

    def check(self) -> None:
        """Decode the file; raises `ConfigError` if that is impossible."""
        raise NotImplementedError

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
        """RGB values from 0 to 255; raises `ConfigError` if the file does not decode."""
        with decoding(self):
            return np.asarray(open_picture(self.data).convert("RGB"))

    def check(self) -> None:
        self.pixels()


class Video(Media):
    """A sequence of frames: an animated PNG, WebP or GIF file."""

    kind = "video"

    @classmethod
    def from_frames(cls, frames: UInt8[np.ndarray, "T H W 3"], fps: float) -> "Video":
        """An animated PNG file of RGB values from 0 to 255, with `fps` frames per second."""
        return cls(_encode(list(frames), "PNG", fps), "image/apng")

    def frames(self) -> UInt8[np.ndarray, "T H W 3"]:
        """RGB values from 0 to 255 of each frame; raises `ConfigError` if they do not decode."""
        with decoding(self):
            return frames_of(open_picture(self.data))

    @cached_property
    def images(self) -> "tuple[Image, ...]":
        """The frames as images."""
        return tuple(map(Image.from_pixels, self.frames()))

    @property
    def fps(self) -> float:
        """Frames per second."""
        with decoding(self):
            milliseconds = float(open_picture(self.data).info.get("duration", 0.0))
        return 1000.0 / milliseconds if milliseconds else 1.0

    def check(self) -> None:
        self.frames()


class Audio(Media):
    """A sound: a WAV file of PCM samples."""

    kind = "audio"

    @classmethod
    def from_samples(cls, samples: Float[np.ndarray, "S"], rate: int) -> "Audio":
        """A WAV file of one channel and 16 bits: samples from -1 to 1, `rate` per second."""
        return cls(encode_wave(samples, rate), "audio/wav")

    def samples(self) -> Float[np.ndarray, "S"]:
        """Samples from -1 to 1, the mean of the channels; raises `ConfigError` as `pixels` does."""
        with decoding(self):
            return decode_wave(self.data)

    @property
    def rate(self) -> int:
        """Samples per second."""
        with decoding(self):
            return wave_rate(self.data)

    def check(self) -> None:
        self.samples()


def media_of(observation: str | Iterable[Mapping[str, Any]]) -> Iterator[Media]:
    """The images, videos and audio of the messages of an observation, in order.

    >>> list(media_of(({"role": "user", "content": [{"type": "text", "text": "Hi"}]},)))
    []
    """
    for message in () if isinstance(observation, str) else observation:
        content = message.get("content")
        for part in content if isinstance(content, list | tuple) else ():
            value: Any = part.get(part.get("type", ""))
            if isinstance(value, Media):
                yield value


@contextmanager
def decoding(media: Media) -> Generator[None]:
    """Turn an error of a decoder into a `ConfigError` that names the file's type and size."""
    try:
        yield
    except ConfigError:  # of a limit
        raise
    except Exception as error:  # decoders raise errors of any type, also those of Python's syntax
        raise ConfigError(
            f"a file of {len(media.data)} bytes, {media.media_type}, cannot be decoded:"
            f" {type(error).__name__}: {error}"
        ) from error


def _encode(frames: "list[np.ndarray]", file_format: str, fps: float = 1.0) -> bytes:
    with optional_dependency("Pillow", "images"):
        from PIL import Image as PillowImage

    first, *rest = map(PillowImage.fromarray, frames)
    file = BytesIO()
    # Pillow drops a frame that equals the one before it, unless their blending differs. Blending
    # changes nothing in opaque frames.
    blend = [i % 2 for i in range(len(frames))]
    animation: Any = {"save_all": True, "append_images": rest, "duration": 1000.0 / fps}
    animation["blend"] = blend
    first.save(file, file_format, **(animation if rest else {}))
    return file.getvalue()
