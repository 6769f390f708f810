"""The options of TRL's paper_index.md for Dr. GRPO with vllm_integration.md's server."""

from datasets import load_dataset
from rewards_of_mine import correct
from trl import GRPOConfig, GRPOTrainer

LENGTH = 3 * 512
GRPOTrainer(
    "owner/base",
    model="owner/base",
    reward_funcs=correct,
    train_dataset=load_dataset("owner/olympiad", split="train"),
    args=GRPOConfig(
        loss_type="dr_grpo",
        scale_rewards=False,
        beta=0.02,
        epsilon=0.25,
        max_completion_length=LENGTH,
        num_iterations=2,
        use_vllm=True,
        vllm_mode="server",
        vllm_server_base_url="http://127.0.0.1:9000",
        vllm_gpu_memory_utilization=0.4,
        vllm_tensor_parallel_size=2,
        temperature=0.8,
        top_p=0.95,
        lr_scheduler_type="cosine",
        warmup_ratio=0.05,
        max_steps=80,
        seed=5,
    ),
)
