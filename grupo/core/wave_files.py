"""Sounds as WAV files of PCM samples, whose header is checked before a sample is read."""

import wave
from collections.abc import Generator
from contextlib import contextmanager
from io import BytesIO

import numpy as np
from jaxtyping import Float

from grupo.core.counted_file import CountedFile
from grupo.core.limits import AUDIO_CHANNELS, AUDIO_RATE, AUDIO_SAMPLES
from grupo.core.sizes import describe_number
from grupo.util.errors import ConfigError


def encode_wave(samples: Float[np.ndarray, "S"], rate: int) -> bytes:
    """A WAV file of one channel and 16 bits.

    Args:
        samples: Samples from -1 to 1.
        rate: Samples per second.
    """
    integers = np.round(np.clip(samples, -1.0, 1.0) * 32767.0).astype("<i2")
    file = BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(rate)
        writer.writeframes(integers.tobytes())
    return file.getvalue()


def decode_wave(data: bytes) -> Float[np.ndarray, "S"]:
    """Samples from -1 to 1 of a WAV file, the mean of its channels.

    Raises:
        ConfigError: It has no samples, or more samples or channels than are allowed.
        wave.Error, EOFError: It is no WAV file.
    """
    with _reading(data) as reader:
        width = reader.getsampwidth()
        samples = _pcm_samples(reader.readframes(reader.getnframes()), width)
        channels = samples.reshape(-1, reader.getnchannels())
    return channels[:, 0] if channels.shape[1] == 1 else channels.mean(1)


def wave_rate(data: bytes) -> int:
    """Samples per second of a WAV file; raises as `decode_wave` does."""
    with _reading(data) as reader:
        return reader.getframerate()


def check_sound(samples: int, channels: int, rate: int) -> None:
    """Raise `ConfigError` for a sound that no model reads.

    Args:
        samples: Samples of one channel.
        channels: Number of channels.
        rate: Samples per second.
    """
    if not samples:
        raise ConfigError("a sound without samples. Allowed: 1 sample or more.")
    if channels > AUDIO_CHANNELS.maximum:
        raise ConfigError(f"a sound of {channels:,} channels. Allowed: {AUDIO_CHANNELS.allowed}.")
    if not 0 < rate <= AUDIO_RATE.maximum:
        allowed = f"1 or more, {AUDIO_RATE.allowed}"
        raise ConfigError(f"a sound with the rate {describe_number(rate)}. Allowed: {allowed}.")
    if samples * channels > AUDIO_SAMPLES.maximum:
        count = samples * channels
        raise ConfigError(f"a sound of {count:,} samples. Allowed: {AUDIO_SAMPLES.allowed}.")


@contextmanager
def _reading(data: bytes) -> Generator[wave.Wave_read]:
    """The reader of a WAV file whose header is within the limits."""
    file = CountedFile(data)
    with wave.open(file, "rb") as reader:
        bytes_per_sample = reader.getnchannels() * reader.getsampwidth()
        present = len(data) - file.tell()  # a header may announce more samples than the file has
        samples = min(reader.getnframes(), present // bytes_per_sample)
        check_sound(samples, reader.getnchannels(), reader.getframerate())
        yield reader


def _pcm_samples(data: bytes, width: int) -> Float[np.ndarray, "N"]:
    """Samples from -1 to 1 of the bytes of a WAV file with `width` bytes for each sample."""
    if width == 1:  # unsigned
        return (np.frombuffer(data, np.uint8).astype(np.float32) - 128.0) / 127.0
    if width == 3:
        bytes_of_sample = np.frombuffer(data, np.uint8).reshape(-1, 3)
        padded = np.pad(bytes_of_sample, ((0, 0), (1, 0)))  # the lowest byte of four is 0
        return np.ascontiguousarray(padded).view("<i4")[:, 0].astype(np.float32) / 2.0**31
    integers = np.frombuffer(data, f"<i{width}")
    return integers.astype(np.float32) / np.float32(np.iinfo(integers.dtype).max)
