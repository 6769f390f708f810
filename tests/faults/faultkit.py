"""A run that is a function of its step, so that what was loaded can be compared bit for bit."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from grupo import checkpoint
from grupo.checkpoint import Checkpoint


def tensors(step: int) -> dict[str, dict[str, Tensor]]:
    numbers = torch.arange(256, dtype=torch.float32).reshape(16, 16)
    return {
        "weights": {"w": numbers / (step + 3), "b": (numbers[0] * step).bfloat16()},
        "optimizer": {"m": numbers * step, "step": torch.tensor(step)},
    }


def data(step: int) -> dict[str, Any]:
    metrics = [{"loss": 1 / (n + 3)} for n in range(step)]
    return {"metrics": metrics, "length": 1000 * step, "text": "é\n\ud800"}


def save(folder: Path, step: int, **more: Any) -> Path:
    return checkpoint.save(folder, step, tensors(step), data(step), **more)


def loaded(folder: Path) -> Checkpoint:
    """What can be loaded, every bit of it that of its step."""
    found = checkpoint.load(folder)
    assert found.data == data(found.step)
    expected = tensors(found.step)
    assert {name: set(tree) for name, tree in found.tensors.items()} == {
        name: set(tree) for name, tree in expected.items()
    }
    for name, tree in expected.items():
        for key, tensor in tree.items():
            assert bits(found.tensors[name][key]) == bits(tensor), (name, key)
    return found


def bits(tensor: Tensor) -> tuple[torch.dtype, torch.Size, bytes]:
    content = tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return tensor.dtype, tensor.shape, content
