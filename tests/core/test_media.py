"""Images, videos and audio: their files, and the values that they are made of."""

import base64
import wave
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as PillowImage

from grupo.core.file_types import sniff_type
from grupo.core.media import Audio, Image, Video, media_of
from grupo.core.media_values import as_media
from grupo.util.errors import ConfigError


@pytest.fixture
def pixels():
    return np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)


@pytest.fixture
def picture(pixels):
    return Image.from_pixels(pixels)


def file_of(pixels, file_format):
    file = BytesIO()
    PillowImage.fromarray(pixels).save(file, file_format)
    return file.getvalue()


def test_an_image_keeps_every_pixel_of_an_array(pixels):
    assert (as_media("image", pixels).pixels() == pixels).all()
    assert (as_media("image", pixels[:, :, 0]).pixels() == pixels[:, :, :1]).all()


def test_values_with_the_same_file_are_one_object(picture, tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(picture.data)
    url = f"data:image/png;base64,{base64.b64encode(picture.data).decode()}"
    values = [
        picture.data,
        path,
        str(path),
        f"file://{path}",
        url,
        {"bytes": picture.data, "path": None},
        {"bytes": None, "path": str(path)},
        {"image": str(path)},
        PillowImage.open(path),
    ]
    media = [as_media("image", value) for value in values]
    assert {x.digest for x in media} == {picture.digest}
    assert len(set(map(id, media))) == 1


def test_a_relative_path_begins_in_the_folder(picture, tmp_path):
    (tmp_path / "a.png").write_bytes(picture.data)
    assert as_media("image", "a.png", folder=tmp_path) == picture


def test_a_file_is_kept_as_it_is(pixels):
    data = file_of(pixels, "JPEG")
    media = as_media("image", data)
    assert (media.data, media.media_type) == (data, "image/jpeg")


@pytest.mark.parametrize("file_format", ["PNG", "JPEG", "GIF", "WEBP", "BMP"])
def test_the_type_of_a_file_is_that_of_its_bytes(pixels, file_format):
    assert sniff_type(file_of(pixels, file_format)) == f"image/{file_format.lower()}"


def test_a_video_keeps_frames_that_repeat_and_their_rate(pixels):
    frames = np.stack([pixels, pixels, 9 * pixels, pixels])
    for value in (frames, list(frames), [PillowImage.fromarray(x) for x in frames]):
        assert (as_media("video", (value, 4.0)).frames() == frames).all()
    video = as_media("video", (frames, 4.0))
    assert (video.fps, video.media_type) == (4.0, "image/apng")
    assert as_media("video", video.data) is video
    assert as_media("video", {"video": list(frames), "fps": 4.0}) is video


def test_audio_is_the_samples_to_16_bits():
    samples = np.array([0.0, 0.5, -1.0])
    sound = as_media("audio", (samples, 8000))
    assert np.abs(sound.samples() - samples).max() < 1 / 32767
    assert sound.rate == 8000
    assert as_media("audio", {"array": samples, "sampling_rate": 8000}) is sound


@pytest.mark.parametrize("width", [1, 2, 3, 4])
def test_samples_of_all_widths_are_read_and_channels_averaged(width):
    largest = 2 ** (8 * width - 1) - 1
    left, right = largest, -largest
    values = [left, left, left, right]  # two samples of two channels
    shift = 128 if width == 1 else 0
    data = b"".join((v + shift).to_bytes(width, "little", signed=width > 1) for v in values)
    file = BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(2)
        writer.setsampwidth(width)
        writer.setframerate(100)
        writer.writeframes(data)
    assert as_media("audio", file.getvalue()).samples() == pytest.approx([1.0, 0.0], abs=1e-6)


def corrupt_png():
    data = bytearray(file_of(np.zeros((4, 4, 3), np.uint8), "PNG"))
    data[50] ^= 255
    return bytes(data)


@pytest.mark.parametrize(
    ("kind", "value", "problem"),
    [
        ("image", "https://example.org/a.png", "nothing is downloaded"),
        ("image", "missing.png", "'missing.png' cannot be read: No such file"),
        ("image", b"text", "a file of 4 bytes, of an unknown type"),
        ("image", corrupt_png(), "cannot be decoded"),
        ("image", file_of(np.zeros((64, 64, 3), np.uint8), "JPEG")[:300], "cannot be decoded"),
        ("image", "data:image/png;base64,%", "is no data URL"),
        ("image", np.zeros((2, 2, 3)), "an array of float64 of shape \\(2, 2, 3\\)"),
        ("image", 3, "a int"),
        ("image", {}, "a dict with the keys \\(none\\)"),
        ("image", Audio.from_samples(np.zeros(3), 8), "is audio, not image"),
        ("video", [], "a video without frames"),
        ("video", np.zeros((0, 2, 2, 3), np.uint8), "a video without frames"),
        ("video", b"\0\0\0\x18ftypisom", "video/mp4"),
        (
            "video",
            [np.zeros((2, 2, 3), np.uint8), np.zeros((3, 2, 3), np.uint8)],
            "frames of different sizes",
        ),
        ("video", ([np.zeros((2, 2, 3), np.uint8)], 0), "frames with 0 per second"),
        ("audio", np.zeros(3), "a ndarray"),
        ("audio", (np.zeros(3), 0), "with the rate 0"),
        ("audio", b"RIFF\0\0\0\0WAVE", "cannot be decoded"),
    ],
)
def test_a_value_that_is_no_medium_is_refused_with_its_place_and_what_is_allowed(
    kind, value, problem
):
    with pytest.raises(ConfigError, match=rf"^row 1: .*{problem}(?s:.)*\. Allowed: .*\.$"):
        as_media(kind, value, "row 1")


def test_media_of_messages_are_in_order(picture):
    sound = Audio.from_samples(np.zeros(3), 8)
    video = Video.from_frames(np.zeros((1, 2, 2, 3), np.uint8), 1.0)
    messages = (
        {"role": "system", "content": "Look."},
        {"role": "user", "content": [{"type": "audio", "audio": sound}]},
        {
            "role": "user",
            "content": [{"type": "image", "image": picture}, {"type": "video", "video": video}],
        },
    )
    assert list(media_of(messages)) == [sound, picture, video]
    assert list(media_of("image")) == []


def test_a_path_of_the_home_folder_is_read(picture, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "a.png").write_bytes(picture.data)
    assert as_media("image", Path("~/a.png")) == picture


def test_a_file_of_a_format_for_which_pillow_starts_a_program_is_not_opened(pixels, monkeypatch):
    started = []
    monkeypatch.setattr("subprocess.check_call", lambda *a, **k: started.append(a))
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    data = file_of(pixels, "EPS")
    for media in (Image(data, "image/png"), Video(data, "image/png")):
        with pytest.raises(ConfigError, match="cannot be decoded: ValueError: cannot identify"):
            media.check()
    assert started == []


@pytest.mark.parametrize("file_format", ["PNG", "JPEG", "WEBP", "GIF", "BMP"])
def test_pictures_of_every_allowed_format_are_opened(pixels, file_format):
    assert as_media("image", file_of(pixels, file_format)).pixels().shape == pixels.shape
