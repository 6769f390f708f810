"""Which folder of a step's checkpoints a policy is loaded from."""

import shutil
from pathlib import Path

import pytest

from grupo.storage import checkpoint
from grupo.storage.checkpoint import CorruptRun
from grupo.training.resume.journals import JOURNAL_CHECKSUMS
from grupo.training.resume.load_run import find_checkpoint, load_checkpoint
from grupo.training.resume.run_folder import RunFolder
from grupo.util.run_files import CHECKPOINTS_FOLDER
from tests.helpers.run_data import CHECKSUMS, RUN_DATA, WEIGHTS
from tests.helpers.run_outcomes import flip_bit
from tests.helpers.training_recipes import base

RECIPE = base("model")


@pytest.fixture
def checkpoints(tmp_path: Path) -> Path:
    """The checkpoints of steps 1 and 2. Step 2 was trained twice and has two folders."""
    run_folder, lock = RunFolder.create(tmp_path / "run", RECIPE)
    with lock:
        folder = run_folder.folder / CHECKPOINTS_FOLDER
        tensors = {"weights": WEIGHTS, JOURNAL_CHECKSUMS: CHECKSUMS}
        checkpoint.save(folder, 1, tensors, RUN_DATA)
        first = checkpoint.save(folder, 2, tensors, {**RUN_DATA, "generated_tokens": 2})
        shutil.copytree(first, folder / "step-00000002.1")
        return folder


def test_the_older_checkpoint_of_a_step_is_loaded_if_the_newer_one_is_damaged(checkpoints):
    flip_bit(checkpoints / "step-00000002.1" / "weights.safetensors")
    loaded = load_checkpoint(checkpoints.parent, RECIPE, "2")
    assert (loaded.step, loaded.data["generated_tokens"]) == (2, 2)
    path, digests = find_checkpoint(checkpoints.parent, RECIPE, "2")
    assert path.name == "step-00000002"
    assert "weights.safetensors" in digests


def test_a_step_with_damaged_checkpoints_only_is_not_replaced_by_another_step(checkpoints):
    for name in ("step-00000002", "step-00000002.1"):
        flip_bit(checkpoints / name / "weights.safetensors")
    with pytest.raises(CorruptRun) as caught:
        load_checkpoint(checkpoints.parent, RECIPE, "2")
    message = str(caught.value)
    assert "step-00000002/weights.safetensors: its bytes" in message
    assert "step-00000002.1/weights.safetensors: its bytes" in message
