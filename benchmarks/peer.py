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

from benchmarks.conversation import Conversation
from benchmarks.models import folder
from benchmarks.turns import Turns, asked
from benchmarks.workloads import WORKLOADS, Workload, contexts, prompts, reward

STEPS = 64  # of different prompts
# What does the same work as grupo, and what `benchmarks.tune` finds fastest; the rest is default.
FIXED = {
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


class Timed(GRPOTrainer):
    """Says how long sampling and judging took, and how many tokens were sampled."""

    sample, tokens, signal = 0.0, 0, 0.0

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        began = time.perf_counter()
        batch = super()._generate_and_score_completions(inputs)
        self.sample = time.perf_counter() - began
        self.tokens = int((batch["completion_mask"] * batch.get("tool_mask", 1)).sum())
        groups = batch["advantages"].view(-1, self.num_generations)
        self.signal = float((groups != 0).any(1).float().mean())
        return batch


class OneByOne(TrainerCallback):
    """Waits before every step for its turn, and answers after it."""

    def __init__(self, turns: Turns) -> None:
        self.turns, self.trainer, self.began = turns, None, 0.0

    def on_step_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.turns.wait()
        self.began = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        seconds, trainer = time.perf_counter() - self.began, self.trainer
        self.turns.say(
            seconds=seconds,
            sample=trainer.sample,
            update=seconds - trainer.sample,
            tokens=trainer.tokens,
            signal=trainer.signal,
        )


def settings(workload: Workload, precision: str, output: str, **other: Any) -> GRPOConfig:
    """What is fixed, what the workload asks for, and `other` settings instead of these."""
    micro = workload.micro or workload.rows
    asked_for = {
        "output_dir": output,
        "bf16": precision == "bfloat16",  # float32 weights, computed with under autocast
        "per_device_train_batch_size": micro,
        "gradient_accumulation_steps": workload.rows // micro,
        "num_generations": workload.group,
        "max_completion_length": workload.new,
    }
    return GRPOConfig(**FIXED | asked_for | other)


def texts(workload: Workload) -> list[str]:
    """The prompts of many steps."""
    made = contexts if workload.apart else prompts
    return made(workload, STEPS * workload.prompts)


def trainer(
    workload: Workload, config: GRPOConfig, callback: TrainerCallback, made: type[Timed] = Timed
) -> Timed:
    """The trainer of that workload."""

    def score(completion_ids: Any, own: Any = None, **_: Any) -> list[float]:
        return reward(workload, own or completion_ids)

    together = workload.turns > 1 and not workload.apart
    return made(
        model=str(folder(workload.shape)),
        args=config,
        train_dataset=Dataset.from_dict({"prompt": texts(workload)}),
        reward_funcs=score,
        callbacks=[callback],
        rollout_func=Conversation(workload) if together else None,
    )


def quiet() -> None:
    """No bars, no words."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    disable_progress_bars()


def main() -> None:
    """Load, then one step for each line that is read."""
    turns, (name, precision, *other) = Turns(), asked()
    quiet()
    workload, callback = WORKLOADS[name], OneByOne(turns)
    with tempfile.TemporaryDirectory() as output:
        config = settings(workload, precision, output, **json.loads(other[0] if other else "{}"))
        callback.trainer = trainer(workload, config, callback)
        turns.ready("trl", "torch", "transformers")
        callback.trainer.train()


if __name__ == "__main__":
    main()
