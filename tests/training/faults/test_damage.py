"""Damage to any byte of a checkpoint is detected and reported, and the older one is used."""

import os
import shutil

import pytest

from grupo.storage import checkpoint
from grupo.storage.checkpoint import CorruptRun
from tests.helpers import checkpoint_contents

SMALL = ("manifest.json", "data.json")
LARGE = ("weights.safetensors", "optimizer.safetensors")


@pytest.fixture
def run(tmp_path):
    """Steps 1 and 2; tests damage the second."""
    checkpoint_contents.save(tmp_path, 1)
    checkpoint_contents.save(tmp_path, 2)
    return tmp_path


def assert_detected(run, name, content) -> None:
    """With `content` in a file of step 2, step 1 is loaded and a note names the file."""
    path = run / "step-00000002" / name
    before = path.read_bytes()
    path.write_bytes(content)
    saved = checkpoint.load_newest(run)
    assert saved.step == 1
    file = f"step-00000002/{name}"
    assert any(
        file in note and "step-00000001 is used" in note for note in saved.skipped_checkpoints
    )
    path.write_bytes(before)


def flip_bit(content: bytes, at: int, bit: int) -> bytes:
    return content[:at] + bytes([content[at] ^ (1 << bit)]) + content[at + 1 :]


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_flipped_bit_in_any_byte_of_a_small_file_is_detected(run, name):
    content = (run / "step-00000002" / name).read_bytes()
    for at in range(len(content)):
        assert_detected(run, name, flip_bit(content, at, at % 8))
    assert checkpoint_contents.loaded(run).step == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_small_file_truncated_at_any_byte_is_detected(run, name):
    content = (run / "step-00000002" / name).read_bytes()
    for length in range(len(content)):
        assert_detected(run, name, content[:length])
    assert checkpoint_contents.loaded(run).step == 2


@pytest.mark.parametrize("name", LARGE)
def test_a_flipped_bit_in_a_tensor_file_is_detected(run, name):
    content = (run / "step-00000002" / name).read_bytes()
    for at in {*range(0, len(content), 64), *range(8), len(content) - 1}:
        assert_detected(run, name, flip_bit(content, at, at // 64 % 8))
    assert checkpoint_contents.loaded(run).step == 2


@pytest.mark.parametrize("name", LARGE)
def test_a_truncated_or_lengthened_tensor_file_is_detected(run, name):
    content = (run / "step-00000002" / name).read_bytes()
    for length in {*range(0, len(content), 64), *range(10), len(content) - 1}:
        assert_detected(run, name, content[:length])
        assert_detected(run, name, content[:length] + b"\0" * (len(content) - length - 1) + b"\1")
    assert_detected(run, name, content + b"\0")


def test_files_of_another_step_are_detected(run):
    for name in (*SMALL, *LARGE):
        assert_detected(run, name, (run / "step-00000001" / name).read_bytes())


@pytest.mark.slow
def test_damage_to_any_byte_of_the_pointer_is_detected_and_the_newest_checkpoint_used(run):
    content = (run / "latest").read_bytes()
    flips = [flip_bit(content, at, bit) for at in range(len(content)) for bit in range(8)]
    for damaged in (*flips, *(content[:length] for length in range(len(content)))):
        (run / "latest").write_bytes(damaged)
        saved = checkpoint.load_newest(run)
        assert saved.step == 2
        assert saved.skipped_checkpoints[0].startswith("latest: ")
        assert "step-00000002 is used instead" in saved.skipped_checkpoints[0]


@pytest.mark.parametrize("name", [*SMALL, *LARGE])
def test_without_an_intact_checkpoint_the_error_names_every_file(run, name):
    for step in (1, 2):
        path = run / f"step-0000000{step}" / name
        path.write_bytes(flip_bit(path.read_bytes(), 9, 3))
    with pytest.raises(CorruptRun) as caught:
        checkpoint.load_newest(run)
    assert f"step-00000001/{name}: " in str(caught.value)
    assert f"step-00000002/{name}: " in str(caught.value)


def test_the_next_save_succeeds_after_any_damage(run):
    for name in (*SMALL, *LARGE):
        copy = shutil.copytree(run, run.with_name(f"{run.name}-{name}"))
        (copy / "step-00000002" / name).write_bytes(b"damaged")
        (copy / "latest").write_bytes(b"damaged")
        assert checkpoint_contents.loaded(copy).step == 1
        checkpoint_contents.save(copy, 2)  # the run was resumed from step 1
        saved = checkpoint_contents.loaded(copy)
        assert (saved.step, saved.skipped_checkpoints) == (2, ())
        assert sorted(os.listdir(copy)) == ["latest", "step-00000001", "step-00000002.1"]
