"""Checkpoints: saved state is loaded, or skipped with a reason."""

import errno
import math
import os
import shutil
from pathlib import Path

import pytest
import torch

from grupo.storage import checkpoint, manifest
from grupo.storage.checkpoint import CorruptRun, NoCheckpoint, SaveFailed
from grupo.util.errors import ConfigError
from tests.helpers.saved_states import save


def steps_in(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name != "latest")


def test_saved_state_is_loaded(tmp_path):
    data = {"rewards": [0.1, math.inf, -0.0], "tasks_drawn": 2**60, "text": "NaN", "none": None}
    tensors = {
        "weights": {"w": torch.randn(5).bfloat16()},
        "optimizer": {"step": torch.tensor(3), "m": torch.tensor([math.nan, -0.0])},
    }
    path = checkpoint.save(tmp_path / "run" / "checkpoints", 12, tensors, data)
    assert path == tmp_path / "run" / "checkpoints" / "step-00000012"
    loaded = checkpoint.load_newest(path.parent)
    assert (loaded.step, loaded.skipped_checkpoints) == (12, ())
    assert loaded.data == data
    assert math.copysign(1, loaded.data["rewards"][2]) == -1
    for name, tree in tensors.items():
        for key, tensor in tree.items():
            back = loaded.tensors[name][key]
            assert (back.dtype, back.shape) == (tensor.dtype, tensor.shape)
            assert torch.equal(
                back.reshape(-1).view(torch.uint8), tensor.reshape(-1).view(torch.uint8)
            )


def test_nan_in_the_data_is_loaded_as_nan(tmp_path):
    checkpoint.save(tmp_path, 0, {}, {"reward": math.nan})
    assert math.isnan(checkpoint.load_newest(tmp_path).data["reward"])


def test_missing_or_empty_folder_has_no_checkpoint(tmp_path):
    for folder in (tmp_path / "none", tmp_path):
        with pytest.raises(NoCheckpoint, match="nothing was saved"):
            checkpoint.load_newest(folder)


def test_interrupted_save_is_no_checkpoint(tmp_path):
    os.rename(save(tmp_path, 1), tmp_path / "tmp.0123")
    os.remove(tmp_path / "latest")
    with pytest.raises(NoCheckpoint):
        checkpoint.load_newest(tmp_path)


def test_save_keeps_the_newest_and_removes_interrupted_saves(tmp_path):
    (tmp_path / "tmp.0").mkdir()
    for step in (1, 2, 3, 4):
        save(tmp_path, step, keep=3)
    assert steps_in(tmp_path) == ["step-00000002", "step-00000003", "step-00000004"]
    save(tmp_path, 5, keep=1)
    assert steps_in(tmp_path) == ["step-00000005"]


def test_second_save_of_a_step_replaces_the_first_only_when_durable(tmp_path):
    save(tmp_path, 1)
    save(tmp_path, 2)
    assert save(tmp_path, 2).name == "step-00000002.1"
    assert steps_in(tmp_path) == ["step-00000001", "step-00000002.1"]
    assert checkpoint.load_newest(tmp_path).step == 2
    assert save(tmp_path, 2).name == "step-00000002"


def test_highest_step_number_alone_is_not_chosen(tmp_path):
    save(tmp_path, 1)
    shutil.copytree(save(tmp_path, 2), tmp_path / "step-00000009")
    assert checkpoint.load_newest(tmp_path).step == 2  # the one that `latest` names
    os.remove(tmp_path / "latest")
    loaded = checkpoint.load_newest(tmp_path)
    assert loaded.step == 2
    assert loaded.skipped_checkpoints == (
        "latest: No such file or directory; step-00000002 is used instead",
        "step-00000009: holds step 2, of another folder; step-00000002 is used instead",
    )


def test_checkpoint_with_a_missing_file_is_skipped_with_a_note(tmp_path):
    save(tmp_path, 1)
    os.remove(save(tmp_path, 2) / "data.json")
    loaded = checkpoint.load_newest(tmp_path)
    assert (loaded.step, loaded.data) == (1, {"step": 1})
    assert loaded.skipped_checkpoints == (
        "step-00000002/data.json: No such file or directory; step-00000001 is used instead",
    )


def test_pipes_are_not_read(tmp_path):
    save(tmp_path, 1)
    path = save(tmp_path, 2)
    for name in ("weights.safetensors", "data.json", "manifest.json"):
        content = (path / name).read_bytes()
        os.remove(path / name)
        os.mkfifo(path / name)  # reading it would block for ever
        loaded = checkpoint.load_newest(tmp_path)
        assert loaded.step == 1
        note = f"step-00000002/{name}: not a file; step-00000001 is used instead"
        assert loaded.skipped_checkpoints[-1] == note
        os.remove(path / name)
        (path / name).write_bytes(content)


def test_error_of_the_machine_is_not_taken_for_damage():
    with (
        pytest.raises(manifest.InvalidCheckpoint, match="data: Input/output error"),
        manifest.invalid_on_damage("data"),
    ):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    with pytest.raises(OSError, match="Too many open files"), manifest.invalid_on_damage("data"):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))


def test_checkpoint_of_another_version_is_skipped_and_kept(tmp_path):
    save(tmp_path, 1)
    path = save(tmp_path, 2) / "manifest.json"
    path.write_text(path.read_text().replace('"format": 7', '"format": 3'))
    loaded = checkpoint.load_newest(tmp_path)
    assert loaded.step == 1
    problem = "step-00000002/manifest.json: format 3, this version reads 7"
    assert loaded.skipped_checkpoints[-1] == f"{problem}; step-00000001 is used instead"
    for step in (3, 4, 5):
        save(tmp_path, step)
    assert steps_in(tmp_path) == ["step-00000002", "step-00000004", "step-00000005"]


def test_damaged_checkpoints_do_not_count_as_kept(tmp_path):
    save(tmp_path, 1)
    (save(tmp_path, 2) / "weights.safetensors").write_bytes(b"torn")
    save(tmp_path, 3)
    assert steps_in(tmp_path) == ["step-00000001", "step-00000003"]


def test_run_resumed_from_an_earlier_step_replaces_a_damaged_later_one(tmp_path):
    save(tmp_path, 1)
    (save(tmp_path, 3) / "weights.safetensors").write_bytes(b"torn")
    assert checkpoint.load_newest(tmp_path).step == 1
    save(tmp_path, 2)
    assert steps_in(tmp_path) == ["step-00000001", "step-00000002"]
    assert checkpoint.load_newest(tmp_path).skipped_checkpoints == ()


def test_save_of_an_earlier_step_is_rejected(tmp_path):
    save(tmp_path, 1000)
    with pytest.raises(ConfigError, match="step-00001000 is later than step 1"):
        save(tmp_path, 1)
    assert steps_in(tmp_path) == ["step-00001000"]


def test_only_damaged_checkpoints_raise_with_all_problems(tmp_path):
    for path in [save(tmp_path, step) for step in (1, 2)]:
        (path / "data.json").write_text("{}")
    with pytest.raises(CorruptRun) as caught:
        checkpoint.load_newest(tmp_path)
    assert str(caught.value) == (
        f"No checkpoint in {tmp_path} can be used. Found:\n"
        "  step-00000002/data.json: 2 bytes long, 11 were written\n"
        "  step-00000001/data.json: 2 bytes long, 11 were written\n"
        "Put back a copy of a damaged file, or start a new run in another folder."
    )


def test_a_pointer_to_nothing_is_not_an_empty_run(tmp_path):
    shutil.rmtree(save(tmp_path, 1))
    with pytest.raises(CorruptRun, match=r"latest: step-00000001/manifest.json: No such file"):
        checkpoint.load_newest(tmp_path)


@pytest.mark.parametrize(
    ("tensors", "data", "says"),
    [
        ({"../w": {}}, {}, "letters, digits and underscores"),
        ({"w": {"z": torch.zeros(1).to_sparse()}}, {}, r"w\['z'\]"),
        ({}, {"a": {1}}, "/a is a set"),
        ({}, {"a": {1: 2}}, "/a has the key 1"),
    ],
)
def test_what_cannot_come_back_bit_for_bit_is_refused_before_anything_is_written(
    tensors, data, says, tmp_path
):
    with pytest.raises(ConfigError, match=says):
        checkpoint.save(tmp_path / "run", 1, tensors, data)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("step", "keep"), [(-1, 2), (1, 0)])
def test_numbers_that_make_no_sense_are_refused(step, keep, tmp_path):
    with pytest.raises(ConfigError, match="Allowed: step from 0, keep from 1"):
        save(tmp_path / "run", step, keep=keep)


def test_a_folder_that_cannot_be_made_is_a_failed_save_that_names_it(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SaveFailed, match=r"Step 1 is not saved: .*/file: File exists") as caught:
        save(tmp_path / "file" / "run", 1)
    assert caught.value.file == str(tmp_path / "file")
