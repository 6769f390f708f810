"""A state that is a function of its step, so that loaded checkpoints can be compared exactly."""

import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from grupo.storage import checkpoint
from grupo.storage.checkpoint import Checkpoint


def tensors(step: int) -> dict[str, dict[str, Tensor]]:
    numbers = torch.arange(768, dtype=torch.float32).reshape(16, 48)
    return {
        "weights": {"w": numbers / (step + 3), "b": (numbers[0] * step).bfloat16()},
        "optimizer": {"m": numbers * step, "step": torch.tensor(step)},
        "history": {"log": torch.arange(5 + step, dtype=torch.uint8)},
        "journal_checksums": {"metrics": torch.arange(step, dtype=torch.int32).view(torch.uint32)},
    }


def data(step: int) -> dict[str, Any]:
    metrics = [{"loss": 1 / (n + 3)} for n in range(step)]
    return {"metrics": metrics, "length": 1000 * step, "text": "é\n\ud800"}


def save(folder: Path, step: int, *, version: int | None = None, **more: Any) -> Path:
    """Save the tensors and data of step `version` as those of `step`."""
    version = step if version is None else version
    return checkpoint.save(folder, step, tensors(version), data(version), **more)


def loaded(folder: Path) -> Checkpoint:
    """The loaded checkpoint, after a check that all of it belongs to one version."""
    found = checkpoint.load_newest(folder)
    assert found.data == data(version(found))
    expected = tensors(version(found))
    assert {name: set(tree) for name, tree in found.tensors.items()} == {
        name: set(tree) for name, tree in expected.items()
    }
    for name, tree in expected.items():
        for key, tensor in tree.items():
            assert bits(found.tensors[name][key]) == bits(tensor), (name, key)
    return found


def unsynced(call, /, *args: Any, **kwargs: Any) -> Any:
    """A syscall hook that skips fsync, for tests without power loss."""
    return None if call is os.fsync else call(*args, **kwargs)


def version(found: Checkpoint) -> int:
    return found.data["length"] // 1000


def bits(tensor: Tensor) -> tuple[torch.dtype, torch.Size, bytes]:
    content = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return tensor.dtype, tensor.shape, content
