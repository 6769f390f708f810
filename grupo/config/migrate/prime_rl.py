"""Translation of a TOML file of prime-rl's `rl` command."""

from typing import Any

from grupo.algo.advantages import Center
from grupo.algo.aggregation import token_mean
from grupo.algo.divergences import k2
from grupo.algo.losses import KL
from grupo.algo.minibatches import SingleUpdate
from grupo.config.migrate.settings import (
    PLACEHOLDER_STEPS,
    PLACEHOLDER_TASKS,
    OptionValues,
    learning_rate,
)
from grupo.config.recipe_files import method_to_data
from grupo.method import Method
from grupo.methods.dppo_tv import dppo_tv
from grupo.methods.max_rl import RelativeToMean

SAMPLING = "orchestrator.train.sampling."
ADVANTAGES = {"grpo": Center(), "max_rl": RelativeToMean()}


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
    source.used.add("orchestrator.train.filter_zero_advantages")
    if source.get("trainer.loss.type", "default") != "default":
        source.differs("trainer.loss.type", "prime-rl's default loss is in its place")
    if algorithm not in ADVANTAGES:
        source.remarks.append(f"orchestrator.algo.type={algorithm!r} became grpo")
    low, high = (source.number(f"trainer.loss.dppo_mask_{end}", 0.2) for end in ("low", "high"))
    kl_coef = 2 * source.number("trainer.loss.kl_tau", 1e-3)  # of the squared log-ratio, 2 k2
    source.remarks.append("the loss is that of dppo_tv, with a KL divergence to the sampler")
    dppo = dppo_tv(group_size, low, high)
    return dppo.replace(
        advantage=ADVANTAGES.get(algorithm, Center()),
        loss=dppo.loss + kl_coef * KL(k2, "sampler") if kl_coef else dppo.loss,
        aggregation=token_mean,
        updates=SingleUpdate(),
    )
