"""Decoding of images and animations, whose sizes are checked before their pixels are read."""

import warnings
from collections.abc import Iterator
from functools import cache
from io import SEEK_CUR
from typing import Any

import numpy as np
from jaxtyping import UInt8

from grupo.core.counted_file import CountedFile
from grupo.core.file_types import sniff_type
from grupo.core.limits import IMAGE_PIXELS, JPEG_SCANS, VIDEO_FRAMES, VIDEO_PIXELS
from grupo.util.errors import ConfigError
from grupo.util.limits import Limit
from grupo.util.optional_deps import optional_dependency

_JPEG_SCAN = b"\xff\xda\0"  # its marker, and the first byte of the length of its header
_JPEG_EXIF = b"Exif\0\0"  # begins a segment
_GIF_HEADER = 13  # bytes before the table of colours
_GIF_EXTENSION, _GIF_IMAGE = 0x21, 0x2C


def open_picture(data: bytes) -> Any:
    """Pillow's picture of a file. Only the header is read; pixels are decoded later.

    Raises:
        ConfigError: The file has more pixels than `IMAGE_PIXELS` allows, more scans than
            `JPEG_SCANS`, or more parts than `MEDIA_READS`. The last one may also be raised when the
            pixels are decoded.
        ValueError: The bytes are no PNG, JPEG, GIF, BMP or WebP file.
    """
    media_type = sniff_type(data)
    if media_type not in _readers():
        raise ValueError("cannot identify the format of the image")
    if media_type == "image/jpeg":
        for name, mark in (("scans", _JPEG_SCAN), ("segments of Exif", _JPEG_EXIF)):
            count = data.count(mark)
            _check("a JPEG file", f" of {count} {name}", count, JPEG_SCANS)
    picture = _readers()[media_type](CountedFile(data))
    check_pixels(*picture.size)
    return picture


def check_pixels(width: int, height: int) -> None:
    """Raise `ConfigError` if an image has too many pixels."""
    _check("an image", f" of {width} x {height} pixels", width * height, IMAGE_PIXELS)


def check_frames(count: int, width: int, height: int) -> None:
    """Raise `ConfigError` if a video has too many frames, or too many pixels in all of them."""
    _check("a video", f" of {count} frames", count, VIDEO_FRAMES)
    size = f" of {count} frames of {width} x {height} pixels"
    _check("a video", size, count * width * height, VIDEO_PIXELS)


def frames_of(picture: Any) -> UInt8[np.ndarray, "T H W 3"]:
    """RGB values from 0 to 255 of each frame of a picture of Pillow.

    Raises:
        ConfigError: It has too many frames or pixels; they are counted before one is decoded.
    """
    check_pixels(*picture.size)
    width, height = picture.size
    count = _count_frames(picture)
    check_frames(count, width, height)
    frames = np.empty((count, height, width, 3), np.uint8)
    for index in range(count):
        picture.seek(index)
        check_pixels(*picture.size)  # a frame of a GIF file may be larger than those before it
        frames[index] = np.asarray(picture.convert("RGB"))
    return frames


def count_gif_frames(data: bytes, most: int) -> int:
    """The number of frames of a GIF file, by its blocks; counting ends above `most`.

    >>> count_gif_frames(b"GIF89a" + bytes(7) + b";", 10)
    0
    """
    count = 0
    for _ in _gif_frames(data):
        count += 1
        if count > most:
            break
    return count


def _gif_frames(data: bytes) -> Iterator[int]:
    """Where each frame of a GIF file begins; its pixels are skipped, not decoded."""
    file = CountedFile(data)
    file.seek(_GIF_HEADER + _color_table_size(data, 10))
    while kind := file.read(1):
        start = file.tell() - 1
        if kind[0] == _GIF_EXTENSION:
            _skip_blocks(file, start + 2)
        elif kind[0] == _GIF_IMAGE:
            _skip_blocks(file, start + 11 + _color_table_size(data, start + 9))
            yield start
        else:
            return


def _color_table_size(data: bytes, flags: int) -> int:
    """Bytes of the table of colours that the flags at an offset announce."""
    packed = data[flags] if flags < len(data) else 0
    return 3 << (packed & 7) + 1 if packed & 0x80 else 0


def _skip_blocks(file: CountedFile, position: int) -> None:
    """Move a file behind a list of blocks, each of which begins with its length."""
    file.seek(position)
    while (length := file.read(1)) and length[0]:
        file.seek(length[0], SEEK_CUR)


def _count_frames(picture: Any) -> int:
    """The number of frames of a picture. Those of a GIF file are counted without Pillow: faster."""
    if picture.format == "GIF" and isinstance(picture.fp, CountedFile):
        count = count_gif_frames(picture.fp.getvalue(), VIDEO_FRAMES.maximum)
        if count > VIDEO_FRAMES.maximum:
            return count
    return int(getattr(picture, "n_frames", 1))


def _check(subject: str, size: str, count: int, limit: Limit) -> None:
    if count > limit.maximum:
        raise ConfigError(f"{subject}{size}. Allowed: {limit.allowed}.")


@cache
def _readers() -> dict[str, Any]:
    """Pillow's reader of each type of file.

    `PIL.Image.open` would try all formats that it knows, and warn of sizes that are allowed here.
    """
    with optional_dependency("Pillow", "images"):
        from PIL import (
            BmpImagePlugin,
            GifImagePlugin,
            JpegImagePlugin,
            PngImagePlugin,
            WebPImagePlugin,
        )
    # of files that are damaged; those that cannot be decoded are errors
    warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")
    return {
        "image/png": PngImagePlugin.PngImageFile,
        "image/jpeg": JpegImagePlugin.JpegImageFile,
        "image/gif": GifImagePlugin.GifImageFile,
        "image/bmp": BmpImagePlugin.BmpImageFile,
        "image/webp": WebPImagePlugin.WebPImageFile,
    }
