"""Images, videos and audio from the values that users have: files, arrays, data URLs, frames."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, unquote_to_bytes, urlsplit
from weakref import WeakValueDictionary

import numpy as np
from jaxtyping import UInt8

from grupo.core.file_types import sniff_type
from grupo.core.limits import MEDIA_FILE_SIZE
from grupo.core.media import Audio, Image, Media, Video
from grupo.core.pictures import check_frames, check_pixels, frames_of
from grupo.core.sizes import describe_number
from grupo.core.wave_files import check_sound
from grupo.util.errors import ConfigError
from grupo.util.regular_files import read_regular_file

KINDS: Mapping[str, type[Media]] = {cls.kind: cls for cls in (Image, Video, Audio)}
DEFAULT_FPS = 1.0  # of frames without a rate
MIN_FPS, MAX_FPS = 0.02, 1000.0  # a frame lasts 1 to 65,535 milliseconds in an animated PNG file
LOCAL_HOSTS = ("", "localhost")  # of an address of a file
_FILE = "(a path, its bytes or a data URL)"
ALLOWED = {
    "image": (
        f"a PNG, JPEG, WebP, GIF or BMP file {_FILE}, a PIL image, or an array of uint8 of shape"
        " (H, W, 3) or (H, W)"
    ),
    "video": (
        f"an animated PNG, WebP or GIF file {_FILE}, or one frame or more: a list of images, an"
        " array of uint8 of shape (T, H, W, 3), or a pair of either and the frames per second"
    ),
    "audio": f"a WAV file of PCM samples {_FILE}, or a pair (samples from -1 to 1, rate)",
}
TYPES_OF_KIND = {
    "image": ("image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp"),
    "video": ("image/apng", "image/png", "image/webp", "image/gif"),
    "audio": ("audio/wav",),
}
# equal files are one object, so that its cached properties are computed only once
_KNOWN: "WeakValueDictionary[tuple[str, str], Media]" = WeakValueDictionary()


class _Refused(Exception):
    """A value that is no file of its kind; the message says why."""


def as_media(kind: str, value: Any, place: str = "", folder: Path = Path()) -> Media:
    """The image, video or audio of a value; equal ones are the same object.

    Files are kept as they are, arrays and PIL images become PNG files, which lose nothing.

    Args:
        kind: "image", "video" or "audio".
        value: A path, bytes, a data URL, a PIL image, an array, a list of frames, a pair of samples
            and rate, or a dict of `datasets` with one of these.
        place: Names the value in errors, such as "rows.jsonl, line 3, column 'images'".
        folder: Relative paths begin here.

    Raises:
        ConfigError: The value is none of these, its file does not decode, or it is larger than
            `grupo.core.limits` allows.

    >>> pixels = np.zeros((2, 3, 3), np.uint8)
    >>> as_media("image", pixels) is as_media("image", as_media("image", pixels).data)
    True
    """
    try:
        media = _convert(kind, value, folder)
        if len(media.data) > MEDIA_FILE_SIZE.maximum:
            size = f"a file of {len(media.data):,} bytes"
            raise _Refused(f"{size}. Allowed: {MEDIA_FILE_SIZE.allowed}")
        if (kind, media.digest) not in _KNOWN:
            media.check()
    except (_Refused, ConfigError, RecursionError) as error:
        subject = place or kind
        problem = str(error).rstrip(".")
        allowed = "" if "Allowed: " in problem else f" Allowed: {ALLOWED[kind]}."
        raise ConfigError(f"{subject}: {problem}.{allowed}") from error
    return interned(media)


def interned(media: Media) -> Media:
    """The first object with this content that is still in use, or this one."""
    return _KNOWN.setdefault((media.kind, media.digest), media)


def _convert(kind: str, value: Any, folder: Path) -> Media:
    match value:
        case Media():
            if value.kind != kind:
                raise _Refused(f"{value!r} is {value.kind}, not {kind}")
            return value
        case str():
            return _from_text(kind, value, folder)
        case Path():
            return _from_file(kind, folder / value)
        case bytes() | bytearray():
            return _from_bytes(kind, bytes(value))
        case Mapping():
            return _from_mapping(kind, value, folder)
    if kind == "image":
        return Image.from_pixels(_pixels(value, folder))
    if kind == "video":
        return _video(value, folder)
    return _audio(value)


def _from_text(kind: str, text: str, folder: Path) -> Media:
    try:
        scheme, host, *_ = urlsplit(text[:200])
        path = unquote(urlsplit(text).path) if scheme == "file" else text
    except ValueError as error:
        raise _Refused(f"{text[:100]!r} is no address: {error}") from error
    is_file = scheme == "file" and host in LOCAL_HOSTS
    if text.lower().startswith(f"{scheme or ' '}://") and not is_file:
        raise _Refused(f"{text[:100]!r} is an address, and nothing is downloaded")
    if scheme == "data":
        head, _, body = text.partition(",")
        try:
            is_base64 = head.endswith(";base64")
            data = base64.b64decode(body, validate=True) if is_base64 else unquote_to_bytes(body)
        except ValueError as error:  # also for characters that no file can hold
            raise _Refused(f"{text[:60]!r} is no data URL: {error}") from error
        return _from_bytes(kind, data)
    return _from_file(kind, folder / path)


def _from_file(kind: str, path: Path) -> Media:
    try:
        data = read_regular_file(path.expanduser(), MEDIA_FILE_SIZE)
    except ConfigError as error:
        raise _Refused(str(error)) from error
    except (OSError, ValueError, RuntimeError) as error:  # a zero byte, an unknown user's home
        reason = getattr(error, "strerror", None) or error
        raise _Refused(f"{str(path)[:200]!r} cannot be read: {reason}") from error
    try:
        return _from_bytes(kind, data)
    except _Refused as error:
        raise _Refused(f"{str(path)[:200]!r}: {error}") from error


def _from_bytes(kind: str, data: bytes) -> Media:
    media_type = sniff_type(data)
    if media_type not in TYPES_OF_KIND[kind]:
        raise _Refused(f"a file of {len(data)} bytes, {media_type or 'of an unknown type'}")
    is_animated = kind == "video" and media_type == "image/png"
    return KINDS[kind](data, "image/apng" if is_animated else media_type)


def _from_mapping(kind: str, value: Mapping[str, Any], folder: Path) -> Media:
    """The media of `datasets`' {"bytes", "path"} or {"array", "sampling_rate"}, or of a part."""
    content = value.get("bytes")
    if content is not None and not isinstance(content, bytes | bytearray):
        raise _Refused(f"a dict whose bytes are a {type(content).__name__}")
    if content is not None:
        return _from_bytes(kind, bytes(content))
    if kind == "audio" and value.get("array") is not None:
        return _audio((value["array"], value.get("sampling_rate")))
    for name in (kind, "path", "url"):
        if value.get(name) is not None:
            rate = value.get("fps") if kind == "video" else None
            inner = value[name]
            return _convert(kind, (inner, rate) if rate and _is_frames(inner) else inner, folder)
    raise _Refused(f"a dict with the keys {', '.join(map(str, value))[:100] or '(none)'}")


def _is_frames(value: Any) -> bool:
    return isinstance(value, list | np.ndarray)


def _pixels(value: Any, folder: Path) -> UInt8[np.ndarray, "H W 3"]:
    if _is_pillow(value):
        check_pixels(*value.size)
        return np.asarray(value.convert("RGB"))
    if not isinstance(value, np.ndarray):
        raise _Refused(f"a {type(value).__name__}")
    has_channels = value.ndim == 3 and value.shape[2] in (3, 4)
    if value.dtype != np.uint8 or not (has_channels or value.ndim == 2) or not value.size:
        raise _Refused(f"an array of {value.dtype} of shape {value.shape}")
    check_pixels(value.shape[1], value.shape[0])
    return value[:, :, :3] if has_channels else np.repeat(value[:, :, None], 3, axis=2)


def _video(value: Any, folder: Path) -> Video:
    fps = DEFAULT_FPS
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], int | float):
        value, fps = value
    if not MIN_FPS <= fps <= MAX_FPS:
        allowed = f"{MIN_FPS} to {MAX_FPS:.0f} per second"
        raise _Refused(f"frames with {describe_number(fps)} per second. Allowed: {allowed}")
    if _is_pillow(value):
        frames = list(frames_of(value))
    elif isinstance(value, np.ndarray | Sequence):
        frames = list(_frames(value, folder))
    else:
        raise _Refused(f"a {type(value).__name__}")
    if not frames:
        raise _Refused("a video without frames")
    shapes = {frame.shape for frame in frames}
    if len(shapes) > 1:
        raise _Refused(f"frames of different sizes, {' and '.join(map(str, sorted(shapes)))}")
    return Video.from_frames(np.stack(frames), fps)


def _frames(values: Any, folder: Path) -> Iterator[UInt8[np.ndarray, "H W 3"]]:
    """The pixels of each image of a video, whose size is checked with the first one."""
    check_frames(len(values), 1, 1)
    for value in values:
        media = _convert("image", value, folder)
        assert isinstance(media, Image)
        pixels = media.pixels()
        check_frames(len(values), pixels.shape[1], pixels.shape[0])
        yield pixels


def _audio(value: Any) -> Audio:
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise _Refused(f"a {type(value).__name__}")
    samples, rate = value
    try:
        with np.errstate(over="ignore"):  # too large numbers become infinite, which is refused
            array = np.asarray(samples, np.float32)
        rate = int(rate)
    except (TypeError, ValueError, OverflowError) as error:
        raise _Refused(f"a pair of {type(samples).__name__} and {rate!r}") from error
    if array.ndim != 1 or not array.size or rate <= 0 or not np.isfinite(array).all():
        raise _Refused(f"samples of shape {array.shape} with the rate {describe_number(rate)}")
    check_sound(len(array), 1, rate)
    return Audio.from_samples(array, rate)


def _is_pillow(value: Any) -> bool:
    """True for an image of Pillow, which need not be installed."""
    return any(cls.__module__ == "PIL.Image" for cls in type(value).__mro__)
