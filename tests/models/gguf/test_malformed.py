"""A GGUF file that cannot be converted ends in one `ConfigError` and leaves no file behind."""

import os
import struct
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from grupo.models.gguf.check import check_convertible
from grupo.models.gguf.header import read_header
from grupo.models.model_folder import model_folder
from grupo.util.errors import ConfigError
from grupo.util.limits import GGUF_ENTRIES, GGUF_STRING
from tests.helpers.tiny_gguf import Arrays, message_of, write_gguf

HUGE = 10**12


def header(*, tensors: int = 0, settings: int = 0, rest: bytes = b"", version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, settings) + rest


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


ARRAY, UINT8, STRING = (struct.pack("<I", number) for number in (9, 0, 8))
ARCHITECTURE = text("general.architecture") + STRING + text("llama")
# what is written, and what the message says
HOSTILE = {
    "no bytes": (b"", "it is no GGUF file"),
    "another file": (b"PK\x03\x04" + bytes(100), "it is no GGUF file"),
    "the magic alone": (b"GGUF", "its 4 bytes end within its header: it is cut off"),
    "a version of the future": (header(version=9), "its GGUF version is 9"),
    "a version of big-endian machines": (header(version=3 << 24), "its GGUF version is"),
    "10^9 tensors": (header(tensors=10**9), "its header has 1,000,000,000 tensors"),
    "10^9 settings": (header(settings=10**9), "its header has 1,000,000,000 settings"),
    "2^64 - 1 tensors": (header(tensors=2**64 - 1), "tensors, and at most"),
    "a name of 10^12 bytes": (
        header(settings=1, rest=struct.pack("<Q", HUGE)),
        "a text of 1,000,000,000,000 bytes",
    ),
    "a text of 10^12 bytes": (
        header(settings=1, rest=text("a") + STRING + struct.pack("<Q", HUGE)),
        "a text of 1,000,000,000,000 bytes",
    ),
    "a text that ends after the file": (
        header(settings=1, rest=text("a") + STRING + struct.pack("<Q", 100)),
        "it is cut off",
    ),
    "10^12 numbers": (
        header(settings=1, rest=text("a") + ARRAY + UINT8 + struct.pack("<Q", HUGE)),
        "its header has 1,000,000,000,000 entries",
    ),
    "lists whose entries exceed the limit together": (
        header(
            settings=2,
            rest=2 * (text("a") + ARRAY + UINT8 + struct.pack("<Q", 3 * 10**6) + bytes(3 * 10**6)),
        ).replace(text("a"), text("b"), 1),
        "its header has 3,000,000 entries",
    ),
    "texts without an end": (
        header(settings=1, rest=text("a") + ARRAY + STRING + struct.pack("<QQ", 3, HUGE)),
        "a text of 1,000,000,000,000 bytes",
    ),
    "a list of lists": (
        header(settings=1, rest=text("a") + ARRAY + ARRAY + struct.pack("<Q", 3)),
        "a setting in its header is of the unknown type 9",
    ),
    "an unknown type": (
        header(settings=1, rest=text("a") + struct.pack("<I", 77)),
        "a setting in its header is of the unknown type 77",
    ),
    "a setting twice": (
        header(settings=2, rest=2 * ARCHITECTURE),
        "'general.architecture' is twice in its header",
    ),
    "a name that is no text": (
        header(settings=1, rest=struct.pack("<Q", 2) + b"\xff\xfe"),
        "a text in its header is no UTF-8",
    ),
    "a tensor of 10^9 dimensions": (
        header(tensors=1, rest=text("a") + struct.pack("<I", 10**9)),
        "the tensor 'a' has 1000000000 dimensions",
    ),
    "no alignment": (
        header(settings=1, rest=text("general.alignment") + struct.pack("<II", 4, 0)),
        "its general.alignment is 0",
    ),
    "nothing in it": (header(), "its general.architecture is ''"),
    "an architecture alone": (header(settings=1, rest=ARCHITECTURE), "it has no tokenizer"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_malformed_header_ends_in_one_message(tmp_path, cache, case):
    contents, expected = HOSTILE[case]
    file = tmp_path / "x.gguf"
    file.write_bytes(contents)
    assert expected in message_of(file)
    assert not cache.exists()


@pytest.mark.parametrize("case", HOSTILE)
def test_a_malformed_header_fills_no_memory(tmp_path, case):
    file = tmp_path / "x.gguf"
    file.write_bytes(HOSTILE[case][0])
    tracemalloc.start()
    with suppress(ConfigError):
        read_header(file)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


def test_a_long_list_in_a_long_file_fills_no_memory(tmp_path):
    file = tmp_path / "x.gguf"
    entries = GGUF_ENTRIES.maximum - 1
    file.write_bytes(
        header(settings=1, rest=text("a") + ARRAY + UINT8 + struct.pack("<Q", entries))
    )
    os.truncate(file, 10**10)  # zeros, which take no room on the disk
    tracemalloc.start()
    settings = read_header(file).settings
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert settings == {"a": entries}
    assert peak < 100_000


def cut(file: Path, size: int) -> None:
    file.write_bytes(file.read_bytes()[:size])


@pytest.mark.parametrize("share", [0.01, 0.05, 0.5, 0.99])
def test_a_file_that_is_cut_off_says_so(file, cache, share):
    cut(file, int(share * file.stat().st_size))
    assert "it is cut off" in message_of(file)
    assert not cache.exists()


def test_every_prefix_of_the_header_is_cut_off(file):
    whole = file.read_bytes()
    start = read_header(file).data_start
    for size in range(4, start, 97):
        file.write_bytes(whole[:size])
        with pytest.raises(ConfigError, match="it is cut off"):
            read_header(file)


@pytest.mark.slow
def test_a_changed_byte_of_the_header_raises_nothing_but_our_errors(file):
    whole = file.read_bytes()
    refused = 0
    for place in range(4, read_header(file).data_start, 5):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x81]) + whole[place + 1 :])
        with suppress(ConfigError):
            check_convertible(file, read_header(file))
            refused -= 1
        refused += 1
    assert refused > 100


def without(name: str) -> Callable[[Arrays], Arrays]:
    return lambda arrays: {key: value for key, value in arrays.items() if key != name}


def also(name: str, *shape: int) -> Callable[[Arrays], Arrays]:
    return lambda arrays: {**arrays, name: np.ones(shape, np.float32)}


# other tensors, and what the message says
TENSORS = {
    "a missing one": (
        without("blk.1.ffn_up.weight"),
        "it lacks 1 tensors of the model, first 'model.layers.1.mlp.up_proj.weight'",
    ),
    "another shape": (
        also("blk.1.ffn_up.weight", 48, 32),
        "'model.layers.1.mlp.up_proj.weight' has shape (48, 32). Allowed: (64, 32)",
    ),
    "a bias that the architecture does not have": (
        also("blk.0.attn_q.bias", 32),
        "transformers does not read its tensor 'blk.0.attn_q.bias'",
    ),
    "scales of rotary embeddings": (
        also("rope_freqs.weight", 4),
        "transformers does not read its tensor 'rope_freqs.weight'",
    ),
    "none": (lambda arrays: {}, "it has no tensors"),
}


@pytest.mark.parametrize(
    ("offset", "problem"), [(1, "not at a multiple of 32"), (34_048, "within '")]
)
def test_a_tensor_in_the_place_of_another_is_refused(file, cache, offset, problem):
    whole = bytearray(file.read_bytes())
    name = read_header(file).tensors[0].name.encode()
    place = whole.index(struct.pack("<Q", len(name)) + name) + 8 + len(name)
    (dimensions,) = struct.unpack_from("<I", whole, place)
    struct.pack_into("<Q", whole, place + 4 + 8 * dimensions + 4, offset)
    file.write_bytes(whole)
    assert f"begins at byte {offset:,}, {problem}" in message_of(file)
    assert not cache.exists()


@pytest.mark.parametrize("case", TENSORS)
def test_tensors_that_are_not_those_of_the_model_end_in_one_message(tmp_path, cache, case):
    change, expected = TENSORS[case]
    assert expected in message_of(write_gguf(tmp_path / "x.gguf", change_arrays=change))
    assert not cache.exists()


def test_a_tensor_of_an_unknown_type_is_refused(file, cache):
    name = text("blk.0.attn_k.weight")
    contents = file.read_bytes()
    place = contents.index(name) + len(name) + 4 + 16  # after its two dimensions
    file.write_bytes(contents[:place] + struct.pack("<I", 99) + contents[place + 4 :])
    assert "'blk.0.attn_k.weight' is of the unknown type 99" in message_of(file)
    assert not cache.exists()


def test_a_file_that_is_missing_is_named_with_the_nearest_one(file):
    message = message_of(file.with_name("tyny.gguf"))
    assert "does not exist. Did you mean 'tiny.gguf'? Allowed: tiny.gguf." in message


def test_a_pipe_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "x.gguf")
    assert "is no file" in message_of(tmp_path / "x.gguf")


def test_a_directory_is_a_folder_without_a_model(tmp_path):
    from grupo.models.loading import check_model_exists

    folder = tmp_path / "x.gguf"
    folder.mkdir()
    assert model_folder(str(folder)) == str(folder)
    with pytest.raises(ConfigError, match=r"x\.gguf' has no config\.json; it holds nothing"):
        check_model_exists(str(folder))


def test_limits_hold_the_largest_published_vocabularies():
    # Gemma: tokens, scores and types of 262,144 tokens, and 514,906 merges
    assert GGUF_ENTRIES.maximum > 3 * 262_144 + 514_906
    assert GGUF_STRING.maximum > 1_000_000
