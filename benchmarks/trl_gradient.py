"""Save the rollouts and the gradient of one TRL step, for `benchmarks.check`.

python -m benchmarks.trl_gradient WORKLOAD PRECISION FILE
"""

import sys
import tempfile
from typing import Any

import torch
from torch import Tensor
from transformers import TrainerCallback

from benchmarks import trl_worker
from benchmarks.models import randomize_adapters
from benchmarks.workloads import WORKLOADS


class RecordingTrainer(trl_worker.TimedTrainer):
    """Records the prompt ids, completion ids and policy mask of every rollout."""

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        batch = super()._generate_and_score_completions(inputs)
        completions, is_token = batch["completion_ids"], batch["completion_mask"].bool()
        from_policy = batch.get("tool_mask", batch["completion_mask"])
        prompts = _unpadded_rows(batch["prompt_ids"], batch["prompt_mask"].bool())
        self.token_rows = list(
            zip(
                prompts,
                _unpadded_rows(completions, is_token),
                _unpadded_rows(from_policy, is_token),
                strict=True,
            )
        )
        return batch


def _unpadded_rows(values: Tensor, is_token: Tensor) -> list[list[int]]:
    return [row[mask].tolist() for row, mask in zip(values, is_token, strict=True)]


class SaveGradient(TrainerCallback):
    """Writes the token rows and the gradient to a file and exits before the optimizer step."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.trainer = None

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        model = self.trainer.model
        trained = ((n, p) for n, p in model.named_parameters() if p.requires_grad)
        gradient = {name: parameter.grad for name, parameter in trained}
        torch.save({"token_rows": self.trainer.token_rows, "gradient": gradient}, self.file)
        raise SystemExit


def main() -> None:
    """Run one step up to its gradient."""
    _, name, precision, file = sys.argv
    trl_worker.silence_libraries()
    callback = SaveGradient(file)
    workload = WORKLOADS[name]
    with tempfile.TemporaryDirectory() as output:
        config = trl_worker.trl_config(workload, precision, output)
        config.max_grad_norm = 0.0  # no clipping
        callback.trainer = trl_worker.build_trainer(workload, config, callback, RecordingTrainer)
        randomize_adapters(callback.trainer.model)
        callback.trainer.train()


if __name__ == "__main__":
    main()
