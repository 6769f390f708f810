"""The options of the example in TRL's grpo_trainer.md: output_dir beside the defaults."""

from datasets import load_dataset
from trl import GRPOConfig, GRPOTrainer
from trl.rewards import accuracy_reward

texts = load_dataset("owner/sums", "easy", split="train[:90%]")
settings = GRPOConfig(output_dir="small-grpo", logging_steps=5)
trainer = GRPOTrainer(
    model="owner/instruct-model", reward_funcs=[accuracy_reward], args=settings, train_dataset=texts
)
