"""The options of TRL's paper_index.md for GSPO: sequence ratios, four minibatches, small clips."""

from datasets import load_dataset
from rewards_of_mine import correct
from trl import GRPOConfig, GRPOTrainer

config = GRPOConfig(
    importance_sampling_level="sequence",
    loss_type="grpo",
    beta=0.0,
    epsilon=2e-4,
    epsilon_high=5e-4,
    gradient_accumulation_steps=2,
    steps_per_generation=8,
    per_device_train_batch_size=16,
    max_steps=60,
)
data = load_dataset("owner/olympiad", split="train")
GRPOTrainer(model="owner/moe", reward_funcs=[correct], args=config, train_dataset=data)
