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


class RecordingTrainer(peer.TimedTrainer):
    """Remembers of every rollout what was read, what came then, and what of that is its own."""

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        batch = super()._generate_and_score_completions(inputs)
        said, there = batch["completion_ids"], batch["completion_mask"].bool()
        own = batch.get("tool_mask", batch["completion_mask"])
        read = _unpadded_rows(batch["prompt_ids"], batch["prompt_mask"].bool())
        self.token_rows = list(
            zip(read, _unpadded_rows(said, there), _unpadded_rows(own, there), strict=True)
        )
        return batch


def _unpadded_rows(values: Tensor, there: Tensor) -> list[list[int]]:
    return [row[mask].tolist() for row, mask in zip(values, there, strict=True)]


class SaveGradient(TrainerCallback):
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
    peer.silence_libraries()
    callback, workload = SaveGradient(file), WORKLOADS[name]
    with tempfile.TemporaryDirectory() as output:
        config = peer.trl_config(workload, precision, output)
        config.max_grad_norm = 0.0  # no clipping
        callback.trainer = peer.build_trainer(workload, config, callback, RecordingTrainer)
        callback.trainer.train()


if __name__ == "__main__":
    main()
