"""The options of TRL's notebook grpo_trl_lora_qlora: peft, batch sizes, logs, 8-bit Adam."""

from datasets import load_dataset
from peft import LoraConfig
from trl import GRPOConfig, GRPOTrainer
from trl.rewards import accuracy_reward, think_format_reward

MODEL = "owner/one-billion"
ADAPTER = LoraConfig(
    task_type="CAUSAL_LM",
    r=24,
    lora_alpha=48,
    lora_dropout=0.0,
    target_modules=["q_proj", "v_proj"],
)
SETTINGS = GRPOConfig(
    learning_rate=3e-5,
    num_train_epochs=2,
    per_device_train_batch_size=6,
    gradient_accumulation_steps=2,
    num_generations=4,
    max_completion_length=384,
    max_steps=150,
    bf16=True,
    optim="paged_adamw_8bit",
    report_to=["trackio"],
    logging_steps=2,
    push_to_hub=True,
    save_steps=25,
)
GRPOTrainer(
    model=MODEL,
    args=SETTINGS,
    reward_funcs=[think_format_reward, accuracy_reward],
    train_dataset=load_dataset("owner/proofs", split="train"),
    peft_config=ADAPTER,
)
