"""GGUF files that cannot be converted, one for each row of `docs/bad_input.md`."""

import struct
from pathlib import Path

import numpy as np

from tests.helpers.tiny_gguf import Arrays, write_gguf


def wrong_shape(arrays: Arrays) -> Arrays:
    return {**arrays, "blk.1.ffn_up.weight": np.ones((48, 32), np.float32)}


def without_a_tensor(arrays: Arrays) -> Arrays:
    return {name: values for name, values in arrays.items() if name != "blk.1.ffn_up.weight"}


def with_scales(arrays: Arrays) -> Arrays:
    return {**arrays, "rope_freqs.weight": np.ones(4, np.float32)}


def write_malformed_gguf(folder: Path) -> None:
    """Write the files, and a folder with the name of one."""
    whole = write_gguf(folder / "cut.gguf").read_bytes()
    contents = {
        "cut": whole[: len(whole) // 2],
        "empty": b"",
        "archive": b"PK\x03\x04" + bytes(60),
        "tensors": b"GGUF" + struct.pack("<IQQ", 3, 10**9, 0),
        "text": b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 10**12),
    }
    for name, data in contents.items():
        (folder / f"{name}.gguf").write_bytes(data)
    settings = {
        "no_tokenizer": {"tokenizer.ggml.tokens": None},
        "words": {"tokenizer.ggml.pre": "qwn2"},
        "yarn": {"llama.rope.scaling.type": "yarn"},
        "part": {"split.count": 3},
    }
    for name, changes in settings.items():
        write_gguf(folder / f"{name}.gguf", changes=changes)
    for name, change in (
        ("shape", wrong_shape),
        ("lost", without_a_tensor),
        ("scales", with_scales),
    ):
        write_gguf(folder / f"{name}.gguf", change_arrays=change)
    write_gguf(folder / "alien.gguf", architecture="rwkv7")
    (folder / "folder.gguf").mkdir()
