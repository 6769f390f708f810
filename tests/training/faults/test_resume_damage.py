"""With the newest checkpoint or the pointer damaged, a run still ends with the same bits."""

import os
import shutil
from pathlib import Path

import pytest

from tests.helpers.run_outcomes import differing, flip, outcome


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


DAMAGE = {
    "a bit of the weights": lambda c: flip(c / "step-00000004" / "weights.safetensors"),
    "a bit of the optimizer": lambda c: flip(c / "step-00000004" / "optimizer.safetensors", 200),
    "a bit of the history": lambda c: flip(c / "step-00000004" / "data.json", 9),
    "a bit of what tasks earned": lambda c: flip(c / "step-00000004" / "history.safetensors"),
    "half of the weights": lambda c: os.truncate(c / "step-00000004" / "weights.safetensors", 999),
    "the manifest": lambda c: (c / "step-00000004" / "manifest.json").unlink(),
    "all in it": lambda c: empty(c / "step-00000004"),
    "all of it": lambda c: shutil.rmtree(c / "step-00000004"),
}


@pytest.mark.parametrize("what", DAMAGE)
def test_with_the_newest_checkpoint_damaged_the_one_before_leads_to_the_same_bits(
    what, cut_short, trainee
):
    DAMAGE[what](cut_short / "checkpoints")
    answer = trainee("resume", cut_short)
    assert answer.lived
    assert "step-00000004" in answer.said[0]
    assert answer.said[0].endswith("step-00000002 is used instead")
    assert differing(trainee.whole("grpo").outcome_term, outcome(cut_short)) == []


@pytest.mark.parametrize("pointer", [None, b"", b"step-00000004 0\n", b"\0" * 79])
def test_with_the_pointer_damaged_the_newest_whole_checkpoint_is_used(pointer, cut_short, trainee):
    latest = cut_short / "checkpoints" / "latest"
    latest.unlink() if pointer is None else latest.write_bytes(pointer)
    answer = trainee("resume", cut_short)
    assert answer.said[0].startswith("latest")
    assert answer.said[0].endswith("step-00000004 is used instead")
    assert differing(trainee.whole("grpo").outcome_term, outcome(cut_short)) == []
