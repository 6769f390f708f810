"""Checkpoints of given steps are kept when older ones are removed."""

import os
from pathlib import Path

from tests.helpers.run_outcomes import flip_bit
from tests.helpers.saved_states import save


def kept(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name != "latest")


def test_the_checkpoint_of_a_kept_step_outlives_newer_ones(tmp_path):
    for step in (1, 2, 3, 4, 5):
        save(tmp_path, step, keep=2, keep_steps=[2])
    assert kept(tmp_path) == ["step-00000002", "step-00000004", "step-00000005"]
    save(tmp_path, 6, keep=2, keep_steps=[4])
    assert kept(tmp_path) == ["step-00000004", "step-00000005", "step-00000006"]


def test_a_kept_step_among_the_newest_counts_once(tmp_path):
    for step in (1, 2, 3):
        save(tmp_path, step, keep=2, keep_steps=[2, 3])
    assert kept(tmp_path) == ["step-00000002", "step-00000003"]


def test_of_a_kept_step_that_was_saved_twice_the_newest_complete_checkpoint_stays(tmp_path):
    save(tmp_path, 1, keep=9)
    assert save(tmp_path, 1, keep=9).name == "step-00000001.1"
    assert save(tmp_path, 1, keep=9).name == "step-00000001"
    save(tmp_path, 1, keep=9)
    os.truncate(tmp_path / "step-00000001.1" / "weights.safetensors", 3)
    save(tmp_path, 2, keep=1, keep_steps=[1])
    assert kept(tmp_path) == ["step-00000002"]
    save(tmp_path, 3, keep=1, keep_steps=[2])
    flip_bit(tmp_path / "step-00000002" / "manifest.json")
    save(tmp_path, 4, keep=1, keep_steps=[2])  # damaged: it is no checkpoint
    assert kept(tmp_path) == ["step-00000004"]
