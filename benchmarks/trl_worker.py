"""A worker that takes steps of TRL, in TRL's environment.

python -m benchmarks.peer WORKLOAD PRECISION [SETTINGS]
"""

import json
import tempfile
import time
from typing import Any

from datasets import Dataset, disable_progress_bars
from transformers import TrainerCallback
from transformers.utils import logging
from trl import GRPOConfig, GRPOTrainer

from benchmarks.conversation import RolloutFunction
from benchmarks.models import model_folder
from benchmarks.turns import WorkerChannel, worker_arguments
from benchmarks.workloads import WORKLOADS, Workload, random_prompts, reward, turn_contexts

STEPS = 64  # of different prompts
# What does the same work as grupo, and what `benchmarks.tune` finds fastest; the rest is default.
FIXED_SETTINGS = {
    "use_cpu": True,
    "gradient_checkpointing": False,
    "loss_type": "grpo",
    "scale_rewards": "group",
    "beta": 0.0,
    "num_iterations": 1,
    "max_grad_norm": 1.0,
    "learning_rate": 1e-6,
    "lr_scheduler_type": "constant",
    "adam_beta2": 0.99,
    "max_steps": 10_000,
    "shuffle_dataset": False,
    "dataloader_pin_memory": False,
    "report_to": [],
    "logging_strategy": "no",
    "save_strategy": "no",
    "disable_tqdm": True,
}


class TimedTrainer(GRPOTrainer):
    """Says how long sampling and judging took, and how many tokens were sampled."""

    sample_seconds, tokens, nonzero_std_frac = 0.0, 0, 0.0

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        began = time.perf_counter()
        batch = super()._generate_and_score_completions(inputs)
        self.sample_seconds = time.perf_counter() - began
        self.tokens = int((batch["completion_mask"] * batch.get("tool_mask", 1)).sum())
        groups = batch["advantages"].view(-1, self.num_generations)
        self.nonzero_std_frac = float((groups != 0).any(1).float().mean())
        return batch


class TurnCallback(TrainerCallback):
    """Waits before every step for its turn, and answers after it."""

    def __init__(self, turns: WorkerChannel) -> None:
        self.turns, self.trainer, self.step_start = turns, None, 0.0

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.turns.wait()
        self.step_start = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        seconds, trainer = time.perf_counter() - self.step_start, self.trainer
        self.turns.send(
            seconds=seconds,
            sample=trainer.sample_seconds,
            update=seconds - trainer.sample_seconds,
            tokens=trainer.tokens,
            signal=trainer.nonzero_std_frac,
        )


def trl_config(workload: Workload, precision: str, output: str, **other: Any) -> GRPOConfig:
    """What is fixed, what the workload asks for, and `other` settings instead of these."""
    micro = workload.microbatch_rows or workload.rows
    asked_for = {
        "output_dir": output,
        "bf16": precision == "bfloat16",  # float32 weights, computed with under autocast
        "per_device_train_batch_size": micro,
        "gradient_accumulation_steps": workload.rows // micro,
        "num_generations": workload.group_size,
        "max_completion_length": workload.max_new_tokens,
    }
    return GRPOConfig(**FIXED_SETTINGS | asked_for | other)


def prompt_texts(workload: Workload) -> list[str]:
    """The prompts of many steps."""
    made = turn_contexts if workload.turns_as_tasks else random_prompts
    return made(workload, STEPS * workload.prompts)


def build_trainer(
    workload: Workload,
    config: GRPOConfig,
    callback: TrainerCallback,
    trainer_class: type[TimedTrainer] = TimedTrainer,
) -> TimedTrainer:
    """The trainer of that workload."""

    def score(completion_ids: Any, policy_ids: Any = None, **_: Any) -> list[float]:
        return reward(workload, policy_ids or completion_ids)

    together = workload.turns > 1 and not workload.turns_as_tasks
    return trainer_class(
        model=str(model_folder(workload.shape)),
        args=config,
        train_dataset=Dataset.from_dict({"prompt": prompt_texts(workload)}),
        reward_funcs=score,
        callbacks=[callback],
        rollout_func=RolloutFunction(workload) if together else None,
    )


def silence_libraries() -> None:
    """No bars, no words."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    disable_progress_bars()


def main() -> None:
    """Load, then one step for each line that is read."""
    turns, (name, precision, *other) = WorkerChannel(), worker_arguments()
    silence_libraries()
    workload, callback = WORKLOADS[name], TurnCallback(turns)
    with tempfile.TemporaryDirectory() as output:
        config = trl_config(workload, precision, output, **json.loads(other[0] if other else "{}"))
        callback.trainer = build_trainer(workload, config, callback)
        turns.ready("trl", "torch", "transformers")
        callback.trainer.train()


if __name__ == "__main__":
    main()
