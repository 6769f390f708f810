"""Limits of images, videos and audio: files, arrays and other values beyond them are refused."""

import contextlib
import os
import socket
import struct
import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as PillowImage

from grupo.core import counted_file, pictures
from grupo.core.media_values import as_media
from grupo.util.errors import ConfigError
from grupo.util.limits import Limit
from tests.helpers.resource_use import limited_peak


def file_of(pixels, file_format):
    file = BytesIO()
    PillowImage.fromarray(pixels).save(file, file_format)
    return file.getvalue()


def bomb_png(width, height):
    """A small PNG file whose header announces a large image."""
    small = file_of(np.zeros((1, 1, 3), np.uint8), "PNG")
    header = struct.pack(">II", width, height) + small[24:29]
    checksum = struct.pack(">I", zlib.crc32(b"IHDR" + header))
    return small[:16] + header + checksum + small[33:]


def gif(frames, side=1):
    """A GIF file of as many equal frames, which are not compressed to one."""
    data = file_of(np.zeros((side, side, 3), np.uint8), "GIF")
    start = data.index(b",", 13)
    return data[:start] + data[start:-1] * frames + b";"


def jpeg(scans):
    """A JPEG file whose last scan is repeated."""
    data = BytesIO()
    PillowImage.new("L", (8, 8)).save(data, "JPEG", progressive=True)
    start, end = data.getvalue()[:-2], data.getvalue()[-2:]
    return start + start[start.rindex(b"\xff\xda") :] * scans + end


def wav(*, rate=8000, channels=1, frames=3, announced=None, junk=b""):
    """A WAV file of 16 bits, whose header may announce more frames than it has."""
    size = 2 * channels * (frames if announced is None else announced)
    form = struct.pack("<HHIIHH", 1, channels, rate, rate, min(2 * channels, 65_535), 16)
    chunks = b"fmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", size)
    begin = b"RIFF" + struct.pack("<I", 36 + len(junk)) + b"WAVE" + junk
    return begin + chunks + bytes(2 * channels * frames)


@pytest.mark.parametrize(
    ("kind", "make", "problem"),
    [
        ("image", lambda: bomb_png(50_001, 1_000), "an image of 50001 x 1000 pixels"),
        ("image", lambda: bomb_png(2**31 - 1, 2**31 - 1), "an image of 2147483647 x 2147483647"),
        ("image", lambda: np.zeros((7_100, 7_100), np.uint8), "an image of 7100 x 7100 pixels"),
        ("image", lambda: PillowImage.new("1", (7_100, 7_100)), "an image of 7100 x 7100 pixels"),
        ("image", lambda: b"\x89PNG\r\n\x1a\n" + bytes(2**27), "a file of 134,217,736 bytes"),
        ("image", lambda: jpeg(101), "a JPEG file of 1"),
        ("video", lambda: gif(10_001), "a video of 10001 frames"),
        ("video", lambda: gif(9_000, side=150), "a video of 9000 frames of 150 x 150 pixels"),
        ("video", lambda: bomb_png(50_001, 1_000), "an image of 50001 x 1000 pixels"),
        ("video", lambda: [np.zeros((1, 1), np.uint8)] * 10**6, "a video of 1000000 frames"),
        ("video", lambda: np.zeros((10_001, 1, 1, 3), np.uint8), "a video of 10001 frames"),
        ("audio", lambda: wav(rate=0), "a sound with the rate 0"),
        ("audio", lambda: wav(rate=2**31), "a sound with the rate 2147483648"),
        ("audio", lambda: wav(frames=0), "a sound without samples"),
        ("audio", lambda: wav(frames=0, announced=10**9), "a sound without samples"),
        ("audio", lambda: wav(channels=65_535), "a sound of 65,535 channels"),
        ("audio", lambda: wav(channels=65), "a sound of 65 channels"),
        ("audio", lambda: (np.zeros(60_000_001, np.float32), 8000), "a sound of 60,000,001 samp"),
        ("audio", lambda: (np.zeros(3), 10**18), "a sound with the rate 1000000"),
    ],
)
def test_media_beyond_a_limit_are_refused_before_they_are_decoded(kind, make, problem):
    value = make()
    with limited_peak(250 * 2**20), pytest.raises(ConfigError) as refused:
        as_media(kind, value, "row 1")
    message = str(refused.value)
    assert message.startswith(f"row 1: {problem}")
    assert message.count("Allowed: ") == 1


PARTS = {
    "comments": lambda n: ("image", inserted("GIF", b",", b"!\xfe" + b"\x01A" * n + b"\0")),
    "blocks of pixels": lambda n: ("video", with_blocks(n)),
    "chunks of PNG": lambda n: ("image", inserted("PNG", b"IDAT", n * chunk(b"prVt"))),
    "filling of JPEG": lambda n: ("image", inserted("JPEG", b"\xff", b"\xff" * n)),
    "segments of JPEG": lambda n: ("image", inserted("JPEG", b"\xff", n * b"\xff\xfe\0\x03A")),
    "chunks of WAV": lambda n: ("audio", wav(junk=n * b"junk\0\0\0\0")),
}


def inserted(file_format, mark, part):
    """The file of a picture with another part before a mark."""
    data = file_of(np.zeros((2, 2), np.uint8), file_format)
    position = data.index(mark, 2) - 4 * (mark == b"IDAT")  # before its length
    return data[:position] + part + data[position:]


def with_blocks(count):
    """A GIF file with blocks of one byte behind its pixels."""
    return gif(1).removesuffix(b"\0;") + b"\x01A" * count + b"\0;"


def chunk(name, content=b""):
    checksum = struct.pack(">I", zlib.crc32(name + content))
    return struct.pack(">I", len(content)) + name + content + checksum


@pytest.mark.parametrize("part", PARTS)
def test_files_of_many_small_parts_are_not_read_to_their_end(part, monkeypatch):
    small = Limit("reads", 1000, "reads", "a test")
    monkeypatch.setattr(counted_file, "MEDIA_READS", small)
    assert as_media(*PARTS[part](100))
    with pytest.raises(
        ConfigError, match=r"takes more than 1,000 reads\. Allowed: at most 1,000 r"
    ):
        as_media(*PARTS[part](1000))


def test_segments_of_exif_are_counted_as_each_copies_those_before_it():
    segment = b"\xff\xe1\0\x09Exif\0\0A"
    assert as_media("image", inserted("JPEG", b"\xff", 100 * segment))
    with pytest.raises(ConfigError, match=r"a JPEG file of 101 segments of Exif\. Allowed: at mo"):
        as_media("image", inserted("JPEG", b"\xff", 101 * segment))


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("image", lambda: bytes_of_large_image()),
        ("video", lambda: gif(10_000)),
        ("audio", lambda: wav(channels=64, rate=768_000)),
    ],
)
def test_media_within_the_limits_are_accepted(kind, make):
    assert as_media(kind, make()).kind == kind


def bytes_of_large_image():
    file = BytesIO()
    PillowImage.new("1", (7_000, 7_000)).save(file, "PNG")
    return file.getvalue()


@pytest.mark.parametrize("file_format", ["GIF", "PNG", "WEBP"])
def test_every_frame_of_an_animation_is_read(file_format):
    frames = [np.full((4, 4, 3), 60 * i, np.uint8) for i in range(4)]
    first, *rest = map(PillowImage.fromarray, frames)
    file = BytesIO()
    first.save(file, file_format, save_all=True, append_images=rest, lossless=True)
    assert (as_media("video", file.getvalue()).frames() == np.stack(frames)).all()


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda folder: Path("/dev/zero"), "'/dev/zero' is a device"),
        (lambda folder: Path("/dev/full"), "'/dev/full' is a device"),
        (lambda folder: os.mkfifo(folder / "x.png") or folder / "x.png", "x.png' is a named pipe"),
        (lambda folder: folder, "' is a folder"),
        (lambda folder: linked(folder), "x.png' is a device"),
        (lambda folder: listening(folder), "x.png' is a socket"),
        (lambda folder: sparse(folder), "x.png' has 134,217,729 bytes"),
    ],
)
def test_only_regular_files_are_read(make, problem, tmp_path):
    path = make(tmp_path)
    for value in (path, str(path), f"file://{path}", {"path": str(path)}):
        with limited_peak(2**24), pytest.raises(ConfigError, match=rf"row 1: .*{problem}\. Allow"):
            as_media("image", value, "row 1")


@pytest.mark.parametrize(
    "address",
    [
        *(
            "http://a/b.png",
            "http:///b.png",
            "HTTPS://a/b.png",
            "ftp://a/b.png",
            "s3a://a/b.png",
            "x://a",
        ),
        *("file://host/etc/passwd", "file://127.0.0.1/x.png", "zip://x.png::http://a/b.zip"),
    ],
)
def test_an_address_is_refused_and_no_file_is_looked_for(address):
    for value in (address, {"path": address}, {"url": address}):
        with pytest.raises(ConfigError, match=r"row 1: .* is an address, and nothing"):
            as_media("image", value, "row 1")


def test_a_link_to_a_regular_file_and_a_file_of_this_machine_are_read(tmp_path):
    image = as_media("image", np.zeros((2, 3, 3), np.uint8))
    (tmp_path / "a:b.png").write_bytes(image.data)
    (tmp_path / "link.png").symlink_to("a:b.png")  # as the cache of the hub has them
    for value in ("a:b.png", "link.png", f"file://localhost{tmp_path}/a:b.png"):
        assert as_media("image", value, folder=tmp_path) is image


def linked(folder):
    (folder / "x.png").symlink_to("/dev/zero")
    return folder / "x.png"


def listening(folder):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "x.png"))
    return folder / "x.png"


def sparse(folder):
    (folder / "x.png").touch()
    os.truncate(folder / "x.png", 2**27 + 1)
    return folder / "x.png"


def nested(depth):
    value = {"path": "a.png"}
    for _ in range(depth):
        value = {"image": value}
    return value


FRAME = np.zeros((1, 1, 3), np.uint8)


@pytest.mark.parametrize(
    ("kind", "value", "problem"),
    [
        ("image", {"bytes": 3}, "a dict whose bytes are a int"),
        ("audio", {"bytes": "a"}, "a dict whose bytes are a str"),
        ("image", "file://[", "'file://\\[' is no address"),
        ("audio", ([10**400], 8000), "a pair of list and 8000"),
        ("audio", ([1e308], 8000), "samples of shape"),
        ("audio", ([1.0], 10**5000), "the rate a whole number of about 5001 digits"),
        ("audio", ([[1.0]], 10**5000), "the rate a whole number of about 5001 digits"),
        ("image", "~nosuchuser/x.png", "'~nosuchuser/x.png' cannot be read: Could not determine"),
        ("image", "data:image/png;base64,é", "'data:image/png;base64,é' is no data URL"),
        ("image", "data:,\ud800", r"is no data URL: 'utf-8' codec can't encode"),
        ("image", nested(3000), "maximum recursion depth exceeded"),
        *(
            ("video", {"video": [FRAME], "fps": fps}, r"Allowed: 0\.02 to 1000 per second\.$")
            for fps in (10**5000, 10**400, 1e300, 1001, 1e-10, 5e-324, -1, float("nan"))
        ),
    ],
)
def test_a_value_of_another_type_is_one_error(kind, value, problem):
    with pytest.raises(ConfigError, match=problem):
        as_media(kind, value)


@pytest.mark.parametrize("fps", [0.02, 1000])
def test_the_frame_rate_of_a_video_is_kept_within_the_allowed_ones(fps):
    assert as_media("video", {"video": [FRAME, FRAME], "fps": fps}).fps == fps  # pyright: ignore


def test_a_damaged_animation_prints_no_warning(recwarn):
    pictures._readers.cache_clear()  # the filter of warnings is set with them
    file = BytesIO()
    frames = [PillowImage.new("RGB", (4, 4), color) for color in ("red", "blue")]
    frames[0].save(file, "PNG", save_all=True, append_images=frames[1:])
    data = file.getvalue()
    start = data.index(b"acTL") + 4
    damaged = data[:start] + bytes(4) + data[start + 4 :]
    with contextlib.suppress(ConfigError):
        as_media("video", damaged)
    assert recwarn.list == []
