"""A worker that runs training steps of TRL, in TRL's own virtual environment.

python -m benchmarks.trl_worker WORKLOAD PRECISION [SETTINGS]
"""

import json
import tempfile
import time
from typing import Any

from datasets import Dataset, disable_progress_bars
from peft import LoraConfig
from transformers import TrainerCallback
from transformers.utils import logging
from trl import GRPOConfig, GRPOTrainer

from benchmarks.conversation import RolloutFunction
from benchmarks.models import model_folder
from benchmarks.turns import WorkerChannel, worker_arguments
from benchmarks.workloads import WORKLOADS, Workload, random_prompts, reward, turn_contexts

STEPS = 64  # steps with different prompts
# The algorithm equals grupo's; the other settings are the fastest according to `benchmarks.tune`.
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
    """Records the seconds of sampling and scoring, the tokens, and the groups with a gradient."""

    sample_seconds, tokens, nonzero_std_frac = 0.0, 0, 0.0

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        start = time.perf_counter()
        batch = super()._generate_and_score_completions(inputs)
        self.sample_seconds = time.perf_counter() - start
        self.tokens = int((batch["completion_mask"] * batch.get("tool_mask", 1)).sum())
        groups = batch["advantages"].view(-1, self.num_generations)
        self.nonzero_std_frac = float((groups != 0).any(1).float().mean())
        return batch


class StepCallback(TrainerCallback):
    """Waits for a request before every step and sends the measurements after it."""

    def __init__(self, channel: WorkerChannel) -> None:
        self.channel = channel
        self.trainer = None
        self.step_start = 0.0

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.channel.wait()
        self.step_start = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        seconds = time.perf_counter() - self.step_start
        trainer = self.trainer
        self.channel.send(
            seconds=seconds,
            sample=trainer.sample_seconds,
            update=seconds - trainer.sample_seconds,
            tokens=trainer.tokens,
            signal=trainer.nonzero_std_frac,
        )


def trl_config(workload: Workload, precision: str, output: str, **overrides: Any) -> GRPOConfig:
    """Combine the fixed settings, those of the workload, and overrides."""
    microbatch_rows = workload.microbatch_rows or workload.rows
    workload_settings = {
        "output_dir": output,
        "bf16": precision == "bfloat16",  # float32 weights under autocast
        "per_device_train_batch_size": microbatch_rows,
        "gradient_accumulation_steps": workload.rows // microbatch_rows,
        "num_generations": workload.group_size,
        "max_completion_length": workload.max_new_tokens,
    }
    return GRPOConfig(**FIXED_SETTINGS | workload_settings | overrides)


def adapter_config(workload: Workload) -> LoraConfig | None:
    """Return the settings of the adapters, which are grupo's defaults; None without adapters."""
    if not workload.lora_rank:
        return None
    return LoraConfig(
        r=workload.lora_rank,
        lora_alpha=32,
        target_modules="all-linear",
        lora_dropout=0.0,
        task_type="CAUSAL_LM",
    )


def prompt_texts(workload: Workload) -> list[str]:
    """Return the prompts of `STEPS` steps."""
    generate = turn_contexts if workload.turns_as_tasks else random_prompts
    return generate(workload, STEPS * workload.prompts)


def build_trainer(
    workload: Workload,
    config: GRPOConfig,
    callback: TrainerCallback,
    trainer_class: type[TimedTrainer] = TimedTrainer,
) -> TimedTrainer:
    """Build the trainer of a workload."""

    def score(completion_ids: Any, policy_ids: Any = None, **_: Any) -> list[float]:
        return reward(workload, policy_ids or completion_ids)

    multi_turn = workload.turns > 1 and not workload.turns_as_tasks
    return trainer_class(
        model=str(model_folder(workload.shape)),
        args=config,
        train_dataset=Dataset.from_dict({"prompt": prompt_texts(workload)}),
        reward_funcs=score,
        callbacks=[callback],
        peft_config=adapter_config(workload),
        rollout_func=RolloutFunction(workload) if multi_turn else None,
    )


def silence_libraries() -> None:
    """Disable progress bars and logs."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    disable_progress_bars()


def main() -> None:
    """Load the model, then run a step per request."""
    channel = WorkerChannel()
    name, precision, *settings = worker_arguments()
    silence_libraries()
    workload = WORKLOADS[name]
    callback = StepCallback(channel)
    overrides = json.loads(settings[0]) if settings else {}
    with tempfile.TemporaryDirectory() as output:
        config = trl_config(workload, precision, output, **overrides)
        callback.trainer = build_trainer(workload, config, callback)
        channel.ready("trl", "torch", "transformers")
        callback.trainer.train()


if __name__ == "__main__":
    main()
