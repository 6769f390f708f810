"""Translation of a script of TRL: GRPOTrainer, RLOOTrainer or AsyncGRPOTrainer."""

from typing import Any

from grupo.config.migrate.objective import Objective
from grupo.config.migrate.settings import (
    PLACEHOLDER_STEPS,
    PLACEHOLDER_TASKS,
    OptionValues,
    learning_rate,
    minibatches_of,
    template_kwargs,
)
from grupo.config.migrate.trl_objective import translate_objective
from grupo.config.migrate.trl_trainers import (
    DEFAULTS,
    TRAINER,
    async_objective,
    rloo_objective,
)


def translate(source: OptionValues) -> dict[str, Any]:
    """The data of a recipe."""
    trainer = str(source.get(TRAINER, "GRPO"))
    source.values = {**DEFAULTS.get(trainer, {}), **source.values}
    length = int(source.number("max_completion_length", 512))
    rewards = _rewards(source)
    minibatches = minibatches_of(source, *_answers(source), _prompts_per_step(source))
    data: dict[str, Any] = {
        "tasks": source.get("dataset", PLACEHOLDER_TASKS),
        **_batches(source),
        **_intervals(source),
        "learning_rate": _learning_rate(source),
        "optimizer": _optimizer(source),
        "max_grad_norm": source.number("max_grad_norm", 1.0),
        "seed": int(source.number("seed", 42)),
        "policy": _policy(source, length),
        "env": {"rewards": rewards},
        "method": _objective(source, trainer, length, minibatches, rewards).table(),
    }
    if trainer == "AsyncGRPO":
        data["max_staleness"] = int(source.number("max_staleness", 4))
    if "dataset" not in source.values:
        source.remarks.append(f"no constant data set was found: tasks = {PLACEHOLDER_TASKS!r}")
    if source.get("bf16", True) in (True, "True", "true") and not source.flag("fp16"):
        data["policy"]["dtype"] = "bfloat16"
    return data


def _objective(
    source: OptionValues,
    trainer: str,
    length: int,
    minibatches: int,
    rewards: list[dict[str, Any]],
) -> Objective:
    match trainer:
        case "RLOO":
            return rloo_objective(source, minibatches)
        case "AsyncGRPO":
            return async_objective(source, minibatches)
    return translate_objective(source, length, minibatches, rewards)


def _batches(source: OptionValues) -> dict[str, Any]:
    prompts = _prompts_per_step(source)
    steps = int(source.number("max_steps", -1))
    if steps < 1:
        epochs = source.number("num_train_epochs", 3)
        steps = PLACEHOLDER_STEPS
        source.remarks.append(
            f"set max_steps to {epochs:g} x number of tasks / {prompts}: {steps} is a placeholder"
        )
    source.used.add("num_train_epochs")
    return {"max_steps": steps, "prompts_per_step": prompts}


def _intervals(source: OptionValues) -> dict[str, Any]:
    """Steps between checkpoints and between evaluations; fractions of the run are left out."""
    save = source.number("save_steps", 0)
    evaluate = source.number("eval_steps", 0)
    data: dict[str, Any] = {"save_every": int(save)} if save >= 1 else {}
    return data | ({"evaluation": {"every": int(evaluate)}} if evaluate >= 1 else {})


def _answers(source: OptionValues) -> tuple[float, float]:
    """Answers per generation and per update, on one device."""
    per_update = source.number("per_device_train_batch_size", 8)
    accumulation = source.number("gradient_accumulation_steps", 1)
    generations = source.number("steps_per_generation", accumulation)
    per_step = source.number("generation_batch_size", per_update * generations)
    return per_step, per_update * accumulation


def _prompts_per_step(source: OptionValues) -> int:
    per_step, _ = _answers(source)
    return max(1, round(per_step / source.number("num_generations", 8)))


def _learning_rate(source: OptionValues) -> float | str:
    steps = source.number("max_steps", -1)
    warmup = source.number("warmup_ratio", 0.0)
    warmup_steps = source.number("warmup_steps", 0)
    if warmup_steps >= 1:
        warmup = warmup_steps / (steps if steps > 0 else PLACEHOLDER_STEPS)
    elif warmup_steps:  # releases of transformers from 5.0 take a fraction here
        warmup = warmup_steps
    rate = source.number("learning_rate", 1e-6)
    return learning_rate(rate, str(source.get("lr_scheduler_type", "linear")), warmup)


def _optimizer(source: OptionValues) -> str:
    betas = source.number("adam_beta1", 0.9), source.number("adam_beta2", 0.999)
    decay = source.number("weight_decay", 0.0)
    eps = source.number("adam_epsilon", 1e-8)
    name = str(source.get("optim", "adamw_torch_fused"))
    if "adamw" not in name or "8bit" in name:
        source.remarks.append(f"optim={name!r} became AdamW")
    return f"Adam(beta1={betas[0]}, beta2={betas[1]}, eps={eps}, weight_decay={decay})"


def _policy(source: OptionValues, length: int) -> dict[str, Any]:
    policy: dict[str, Any] = {
        "model": source.get("model_name_or_path", "MODEL"),
        "max_new_tokens": length,
        "gradient_checkpointing": source.flag("gradient_checkpointing", True),
        "sampling": {
            "temperature": source.number("temperature", 1.0),
            "top_p": source.number("top_p", 1.0),
            "top_k": max(0, int(source.number("top_k", 0))),
            "min_p": source.number("min_p", 0.0),
        },
    }
    policy |= template_kwargs(source, "chat_template_kwargs")
    if str(template := source.get("chat_template_path", "")).endswith(".jinja"):
        policy["chat_template"] = template
    elif template:
        source.differs("chat_template_path", "set policy.chat_template to a file of Jinja text")
    if "lora_r" in source.values or source.flag("use_peft"):
        policy["lora"] = {
            "rank": int(source.number("lora_r", 16)),
            "alpha": source.number("lora_alpha", 32.0),
            "targets": source.get("lora_target_modules", "all-linear"),
        }
    if (tokens := source.number("token_budget", 0)) > 0:
        policy["tokens_per_microbatch"] = int(tokens)
    if aux_loss := source.number("router_aux_loss_coef", 0.0):
        policy["router_aux_loss"] = aux_loss
    if source.flag("use_vllm"):
        policy["engine"] = _engine(source)
    source.used |= {"fp16", "torch_dtype", "dtype", "lora_target_modules"}
    if policy["model"] == "MODEL":
        source.remarks.append("no constant model was found: set policy.model")
    return policy


def _engine(source: OptionValues) -> dict[str, Any]:
    """The servers of vLLM; in place of vLLM in the trainer's process, one on the same device."""
    if source.get("vllm_mode", "colocate") == "server":
        source.used.add("vllm_gpu_memory_utilization")  # an option of the running server
        return {"urls": (source.get("vllm_server_base_url", "http://127.0.0.1:8000"),)}
    source.remarks.append(
        "TRL runs vLLM in its own process: policy.engine starts a server on the same device, with"
        " `python`, the interpreter of an environment with vLLM"
    )
    return {
        "python": "python",
        "gpu_memory_utilization": source.number("vllm_gpu_memory_utilization", 0.3),
        "sleep": source.flag("vllm_enable_sleep_mode"),
    }


def _rewards(source: OptionValues) -> list[dict[str, Any]]:
    functions = source.get("reward_funcs", [])
    weights = source.get("reward_weights", [1.0] * len(functions))
    if not functions:
        source.remarks.append("no reward function was found: set env.rewards")
        return [{"name": "reward", "fn": "rewards.py:reward"}]
    return [
        {"name": str(fn).rpartition(":")[2], "fn": fn, "weight": float(weight)}
        for fn, weight in zip(functions, weights, strict=False)
    ]
