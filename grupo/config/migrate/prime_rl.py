"""Translation of a TOML file of prime-rl's `rl` command."""

from typing import Any

from grupo.algo.minibatches import SingleUpdate
from grupo.catalogue.parse import parse_method
from grupo.config.migrate.settings import (
    PLACEHOLDER_STEPS,
    PLACEHOLDER_TASKS,
    OptionValues,
    learning_rate,
)
from grupo.config.recipe_files import method_to_data
from grupo.method import Method

SAMPLING = "orchestrator.train.sampling."
METHODS = {"grpo": "dppo_tv", "max_rl": "max_rl"}


def translate(source: OptionValues) -> dict[str, Any]:
    """The data of a recipe."""
    group_size = int(source.number("orchestrator.group_size", 1))
    steps = int(source.number("max_steps", PLACEHOLDER_STEPS))
    rate = source.number("trainer.optim.lr", 1e-6)
    kind = str(source.get("trainer.scheduler.type", "constant"))
    warmup = source.number("trainer.scheduler.warmup_steps", 10) if kind != "constant" else 0
    end = source.number("trainer.scheduler.min_lr", 0.0)
    save = int(source.number("ckpt.interval", 0))
    decay = source.number("trainer.optim.weight_decay", 0.01)
    if source.get("trainer.optim.type", "adamw") != "adamw":
        source.used.remove("trainer.optim.type")
    rollouts = source.number("orchestrator.batch_size", 128)
    return {
        "tasks": PLACEHOLDER_TASKS,
        "max_steps": steps,
        "prompts_per_step": max(1, round(rollouts / group_size)),
        "learning_rate": learning_rate(rate, kind, warmup / steps, end),
        "optimizer": f"Adam(beta2=0.999, weight_decay={decay})",
        "max_grad_norm": source.number("trainer.optim.max_norm", 1.0),
        "max_staleness": int(source.number("orchestrator.max_off_policy_steps", 8)),
        "evaluation": _evaluation(source),
        **({"save_every": save} if save > 0 else {}),
        "policy": _policy(source),
        "env": {"rewards": [{"name": "reward", "fn": "rewards.py:reward"}]},
        "method": method_to_data(_method(source, group_size)),
    }


def _evaluation(source: OptionValues) -> dict[str, Any]:
    every = int(source.number("orchestrator.eval.interval", 0))
    attempts = int(source.number("orchestrator.eval.group_size", 1))
    return {"every": every, "attempts": attempts}


def _policy(source: OptionValues) -> dict[str, Any]:
    policy: dict[str, Any] = {
        "model": source.get("model.name", "Qwen/Qwen3-0.6B"),
        "dtype": "bfloat16",
        "max_new_tokens": int(source.number(f"{SAMPLING}max_completion_tokens", 1024)),
        "gradient_checkpointing": True,
        "sampling": {"temperature": source.number(f"{SAMPLING}temperature", 1.0)},
    }
    source.used.add("trainer.model.ac")
    if any(name.startswith("trainer.model.lora") for name in source.values):
        policy["lora"] = {
            "rank": int(source.number("trainer.model.lora.rank", 16)),
            "alpha": source.number("trainer.model.lora.alpha", 32.0),
            "targets": source.get("trainer.model.lora.target_modules", "all-linear"),
        }
    return policy


def _method(source: OptionValues, group_size: int) -> Method:
    algorithm = str(source.get("orchestrator.algo.type", "grpo"))
    source.used |= {"trainer.loss.type", "orchestrator.train.filter_zero_advantages"}
    source.remarks.append("the loss is dppo_tv, the nearest to prime-rl's default loss")
    if algorithm not in METHODS:
        source.remarks.append(f"orchestrator.algo.type={algorithm!r} became grpo")
    name = METHODS.get(algorithm, "dppo_tv")
    return parse_method(f"{name}(group_size={group_size})").replace(updates=SingleUpdate())
