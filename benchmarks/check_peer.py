"""A step of TRL for `benchmarks.check`: what it sampled, and the gradient that it made of that.

python -m benchmarks.check_peer WORKLOAD PRECISION FILE
"""

import sys
import tempfile
from typing import Any

import torch
from torch import Tensor
from transformers import TrainerCallback

from benchmarks import peer
from benchmarks.workloads import WORKLOADS


class Recorded(peer.Timed):
    """Remembers of every rollout what was read, what came then, and what of that is its own."""

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        batch = super()._generate_and_score_completions(inputs)
        said, there = batch["completion_ids"], batch["completion_mask"].bool()
        own = batch.get("tool_mask", batch["completion_mask"])
        read = _rows(batch["prompt_ids"], batch["prompt_mask"].bool())
        self.said = list(zip(read, _rows(said, there), _rows(own, there), strict=True))
        return batch


def _rows(values: Tensor, there: Tensor) -> list[list[int]]:
    return [row[mask].tolist() for row, mask in zip(values, there, strict=True)]


class Gradient(TrainerCallback):
    """Writes both to a file, and ends the program."""

    def __init__(self, file: str) -> None:
        self.file, self.trainer = file, None

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        model = self.trainer.model
        gradient = {name: p.grad for name, p in model.named_parameters()}
        torch.save({"said": self.trainer.said, "gradient": gradient}, self.file)
        raise SystemExit


def main() -> None:
    """One step, cut short before the update."""
    _, name, precision, file = sys.argv
    peer.quiet()
    callback, workload = Gradient(file), WORKLOADS[name]
    with tempfile.TemporaryDirectory() as output:
        config = peer.settings(workload, precision, output)
        config.max_grad_norm = 0.0  # no clipping
        callback.trainer = peer.trainer(workload, config, callback, Recorded)
        callback.trainer.train()


if __name__ == "__main__":
    main()
