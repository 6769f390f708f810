"""The options of TRL's experimental AsyncGRPO: a vLLM server generates ahead of the updates."""

from datasets import load_dataset
from trl.experimental.async_grpo import AsyncGRPOConfig, AsyncGRPOTrainer
from trl.rewards import accuracy_reward

AsyncGRPOTrainer(
    model="owner/three-billion",
    reward_funcs=accuracy_reward,
    args=AsyncGRPOConfig(
        num_generations=16,
        per_device_train_batch_size=64,
        epsilon_high=0.28,
        token_budget=6000,
        max_staleness=2,
        max_inflight_tasks=128,
        queue_maxsize=256,
        heartbeat_stale_after_s=60.0,
        weight_sync_timeout=90,
        vllm_server_base_url="http://127.0.0.1:9100",
        fork_threshold_tokens=512,
        max_steps=40,
        dtype="bfloat16",
    ),
    train_dataset=load_dataset("owner/proofs", split="train"),
)
