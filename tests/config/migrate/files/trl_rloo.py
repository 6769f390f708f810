"""The options of TRL's RLOO: a KL divergence in the reward, clipped rewards, two updates a step."""

from datasets import load_dataset
from trl import RLOOConfig, RLOOTrainer


def short(completions, **columns):
    return [-len(completion) / 100 for completion in completions]


RLOOTrainer(
    model="owner/half-billion",
    reward_funcs=short,
    args=RLOOConfig(
        output_dir="runs/rloo",
        num_generations=4,
        per_device_train_batch_size=16,
        steps_per_generation=2,
        max_completion_length=256,
        beta=0.03,
        epsilon=0.1,
        reward_clip_range=(-5.0, 5.0),
        normalize_advantages=True,
        max_steps=80,
        learning_rate=2e-6,
        lr_scheduler_type="constant",
    ),
    train_dataset=load_dataset("owner/questions", split="train"),
)
