"""The options of TRL's examples/scripts/grpo_2048.py: an environment with tools, adapters."""

from datasets import Dataset
from peft import LoraConfig
from trl import GRPOConfig, GRPOTrainer


class Board:
    def move(self, side: str) -> str:
        """Moves all tiles."""
        return side


def largest_tile(environments, **columns):
    return [0.0 for _ in environments]


trainer = GRPOTrainer(
    model="owner/four-billion",
    reward_funcs=largest_tile,
    train_dataset=Dataset.from_list([{"prompt": "Play."}]),
    args=GRPOConfig(
        chat_template_kwargs={"enable_thinking": True},
        logging_steps=2,
        log_completions=True,
        num_completions_to_print=1,
        report_to="trackio",
        trackio_space_id="board",
        max_completion_length=1024,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=4,
    ),
    environment_factory=Board,
    peft_config=LoraConfig(),
)
