"""Translation of the arguments of OpenRLHF's train_ppo_ray in a shell script."""

from typing import Any

from grupo.config.migrate.openrlhf_objective import translate_objective
from grupo.config.migrate.settings import (
    PLACEHOLDER_STEPS,
    PLACEHOLDER_TASKS,
    OptionValues,
    learning_rate,
)

# names before the options were grouped
SHORT_NAMES = {
    "n_samples_per_prompt": "rollout.n_samples_per_prompt",
    "rollout_batch_size": "rollout.batch_size",
    "train_batch_size": "train.batch_size",
    "generate_max_len": "rollout.max_new_tokens",
    "pretrain": "actor.model_name_or_path",
    "prompt_data": "data.prompt_dataset",
    "input_key": "data.input_key",
    "label_key": "data.label_key",
    "apply_chat_template": "data.apply_chat_template",
    "remote_rm_url": "reward.remote_url",
    "reward_pretrain": "reward.model_name_or_path",
    "advantage_estimator": "algo.advantage.estimator",
    "init_kl_coef": "algo.kl.init_coef",
    "use_kl_loss": "algo.kl.use_loss",
    "kl_estimator": "algo.kl.estimator",
    "eps_clip_low_high": "actor.eps_clip_low_high",
    "eps_clip": "actor.eps_clip",
    "actor_learning_rate": "actor.adam.lr",
    "max_epochs": "train.max_epochs",
    "num_episodes": "train.num_episodes",
    "gradient_checkpointing": "actor.gradient_checkpointing_enable",
    "dual_clip": "actor.dual_clip",
    "policy_loss_type": "actor.policy_loss_type",
    "entropy_loss_coef": "actor.entropy_coef",
    "no_advantage_std_norm": "algo.advantage.no_std_norm",
    "reward_clip_range": "reward.clip_range",
    "overlong_buffer_len": "reward.overlong_buffer_len",
    "overlong_penalty_factor": "reward.overlong_penalty_factor",
    "value_clip": "critic.value_clip",
    "dynamic_filtering": "algo.dynamic_filtering_enable",
    "dynamic_filtering_reward_range": "algo.dynamic_filtering_range",
    "bf16": "ds.param_dtype",
    "max_samples": "data.max_samples",
    "temperature": "rollout.temperature",
    "top_p": "rollout.top_p",
    "gamma": "algo.advantage.gamma",
    "lambd": "algo.advantage.lambd",
}


def translate(source: OptionValues) -> dict[str, Any]:
    """The data of a recipe."""
    source.values = {SHORT_NAMES.get(name, name): x for name, x in source.values.items()}
    length = int(source.number("rollout.max_new_tokens", 1024))
    prompts = int(source.number("rollout.batch_size", 1024))
    rate = source.number("actor.adam.lr", 1e-6)
    end = rate * source.number("actor.min_lr_ratio", 0.1)
    schedule = str(source.get("actor.lr_scheduler", "cosine_with_min_lr"))
    beta1, beta2 = source.pair("actor.adam.betas", (0.9, 0.95))
    decay = source.number("actor.adam.weight_decay", 0.0)
    save = int(source.number("ckpt.save_steps", -1))
    warmup = source.number("actor.lr_warmup_ratio", 0.03)
    return {
        "tasks": _tasks(source),
        "max_steps": _steps(source, prompts),
        "prompts_per_step": prompts,
        "learning_rate": learning_rate(rate, schedule, warmup, end),
        "optimizer": f"Adam(beta1={beta1}, beta2={beta2}, weight_decay={decay})",
        "max_grad_norm": source.number("actor.max_norm", 1.0),
        "seed": int(source.number("train.seed", 42)),
        "evaluation": {"every": max(0, int(source.number("eval.steps", -1)))},
        **({"save_every": save} if save > 0 else {}),
        "policy": _policy(source, length),
        "env": {"rewards": [_reward(source)]},
        "method": translate_objective(source, length, prompts).table(),
    }


def _tasks(source: OptionValues) -> str:
    name = source.get("data.prompt_dataset", PLACEHOLDER_TASKS)
    columns = {
        "prompt": source.get("data.input_key", "input"),
        "answer": source.get("data.label_key", ""),
        "split": source.get("data.prompt_split", "train"),
    }
    defaults = {"prompt": "prompt", "answer": "", "split": "train"}
    changed = [f"{key}={x!r}" for key, x in columns.items() if x != defaults[key]]
    return f"{name}({', '.join(changed)})" if changed else name


def _steps(source: OptionValues, prompts: int) -> int:
    samples = source.get("data.max_samples")
    episodes = source.number("train.num_episodes", 1)
    if samples:
        source.remarks.append(f"max_steps is for {samples} tasks at most")
        return max(1, round(episodes * float(samples) / prompts))
    source.remarks.append(
        f"set max_steps to {episodes:g} x number of tasks / {prompts}: {PLACEHOLDER_STEPS} is a"
        " placeholder"
    )
    return PLACEHOLDER_STEPS


def _policy(source: OptionValues, length: int) -> dict[str, Any]:
    source.used.add("ds.param_dtype")
    policy: dict[str, Any] = {
        "model": source.get("actor.model_name_or_path", "MODEL"),
        "dtype": "bfloat16",
        "max_new_tokens": length,
        "apply_chat_template": source.flag("data.apply_chat_template"),
        "gradient_checkpointing": source.flag("actor.gradient_checkpointing_enable"),
        "tokens_per_microbatch": int(source.number("train.max_tokens_per_gpu", 16192)),
        "sampling": {
            "temperature": source.number("rollout.temperature", 1.0),
            "top_p": source.number("rollout.top_p", 1.0),
        },
    }
    if rank := int(source.number("ds.lora.rank", 0)):
        policy["lora"] = {"rank": rank, "alpha": source.number("ds.lora.alpha", 16.0)}
    return policy


def _reward(source: OptionValues) -> dict[str, Any]:
    path = str(source.get("reward.remote_url", ""))
    if path.endswith(".py"):
        source.remarks.append(
            "reward_func(queries, prompts, labels) needs a signature of grupo: docs/graders.md"
        )
        return {"name": "reward", "fn": f"{path}:reward_func"}
    source.remarks.append("no reward function was found: set env.rewards")
    return {"name": "reward", "fn": "rewards.py:reward"}
