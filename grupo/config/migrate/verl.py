"""Translation of verl's configuration, in YAML or as arguments of main_ppo in a shell script."""

from typing import Any

from grupo.config.migrate.settings import OptionValues, learning_rate, template_kwargs
from grupo.config.migrate.verl_objective import ACTOR, ROLLOUT, translate_objective
from grupo.config.migrate.verl_steps import prompts_per_step, staleness, steps

MODEL = "actor_rollout_ref.model."
OPTIM = f"{ACTOR}optim."
REWARD_FUNCTIONS = ("reward.custom_reward_function", "custom_reward_function")  # now, and before
BUILT_IN_SCORE = "verl.utils.reward_score:default_compute_score"


def translate(source: OptionValues) -> dict[str, Any]:
    """The data of a recipe."""
    if not source.flag(f"{ROLLOUT}multi_turn.enable"):
        source.used |= {name for name in source.values if name.startswith(f"{ROLLOUT}multi_turn.")}
    if source.get("algorithm.adv_estimator", "gae") != "gae":
        source.used |= {name for name in source.values if name.startswith("critic.")}
    length = int(source.number("data.max_response_length", 512))
    prompts = prompts_per_step(source)
    max_steps = steps(source, prompts)
    source.used.add("data.gen_batch_size")
    return {
        "tasks": _table(source, "data.train_files", "train.parquet"),
        "eval_tasks": _table(source, "data.val_files", "test.parquet"),
        "max_steps": max_steps,
        "prompts_per_step": prompts,
        "learning_rate": _learning_rate(source, max_steps),
        "optimizer": _optimizer(source),
        "max_grad_norm": source.number(f"{ACTOR}grad_clip", 1.0),
        **_overlong(source),
        **_intervals(source),
        **staleness(source),
        "policy": _policy(source, length),
        "env": {"rewards": [_reward(source)]},
        "method": translate_objective(source, length, prompts).table(),
    }


def _table(source: OptionValues, name: str, default: str) -> str:
    files = source.get(name, default)
    if isinstance(files, list):
        if len(files) > 1:
            source.remarks.append(f"of {name} the first file was taken: join {', '.join(files)}")
        files = files[0]
    key = source.get("data.prompt_key", "prompt")
    return files if key == "prompt" else f"{files}(prompt={key!r})"


def _overlong(source: OptionValues) -> dict[str, str]:
    """The choice for prompts that are too long, which verl measures by max_prompt_length."""
    is_dropped = source.flag("data.filter_overlong_prompts")
    truncation = str(source.get("data.truncation", "error"))
    if "data.max_prompt_length" in source.values:
        source.differs(
            "data.max_prompt_length",
            "a prompt may have the context of the model less policy.max_new_tokens",
        )
    if is_dropped:
        return {"overlong": "drop"}
    return {} if truncation == "error" else {"overlong": "truncate"}


def _intervals(source: OptionValues) -> dict[str, Any]:
    save = int(source.number("trainer.save_freq", -1))
    test = int(source.number("trainer.test_freq", -1))
    attempts = int(source.number(f"{ROLLOUT}val_kwargs.n", 1))
    data: dict[str, Any] = {"evaluation": {"every": max(0, test), "attempts": attempts}}
    return data | ({"save_every": save} if save > 0 else {})


def _learning_rate(source: OptionValues, total: int) -> float | str:
    rate = source.number(f"{OPTIM}lr", 1e-6)
    kind = source.get(f"{OPTIM}lr_scheduler_type", source.get(f"{OPTIM}warmup_style", "constant"))
    source.used.add(f"{OPTIM}warmup_style")
    warmup = source.number(f"{OPTIM}lr_warmup_steps_ratio", 0.0)
    steps = source.number(f"{OPTIM}lr_warmup_steps", -1)
    warmup = steps / total if steps > 0 else warmup
    end = rate * source.number(f"{OPTIM}min_lr_ratio", 0.0)
    return learning_rate(rate, str(kind), warmup, end)


def _optimizer(source: OptionValues) -> str:
    beta1, beta2 = source.pair(f"{OPTIM}betas", (0.9, 0.999))
    decay = source.number(f"{OPTIM}weight_decay", 0.01)
    return f"Adam(beta1={beta1}, beta2={beta2}, weight_decay={decay})"


def _policy(source: OptionValues, length: int) -> dict[str, Any]:
    policy: dict[str, Any] = {
        "model": source.get(f"{MODEL}path", "MODEL"),
        "dtype": "bfloat16",
        "max_new_tokens": length,
        "gradient_checkpointing": source.flag(f"{MODEL}enable_gradient_checkpointing", True),
        "tokens_per_microbatch": int(source.number(f"{ACTOR}ppo_max_token_len_per_gpu", 16384)),
        "sampling": {
            "temperature": source.number(f"{ROLLOUT}temperature", 1.0),
            "top_p": source.number(f"{ROLLOUT}top_p", 1.0),
            "top_k": max(0, int(source.number(f"{ROLLOUT}top_k", -1))),
        },
    }
    policy |= template_kwargs(source, "data.apply_chat_template_kwargs")
    if f"{MODEL}custom_chat_template" in source.values:
        reason = "write the text to a file and name it in policy.chat_template"
        source.differs(f"{MODEL}custom_chat_template", reason)
    if policy["model"] == "MODEL":
        source.remarks.append("no constant model was found: set policy.model")
    policy |= _lora(source)
    source.remarks.append("verl generates with an engine of its own: set policy.engine for vLLM")
    source.used |= {f"{ROLLOUT}name", f"{ROLLOUT}gpu_memory_utilization", f"{ROLLOUT}dtype"}
    return policy


def _lora(source: OptionValues) -> dict[str, Any]:
    """The adapters: of FSDP, or of Megatron, whose options and default alpha are others."""
    rank = int(source.number(f"{MODEL}lora_rank", 0))
    targets = source.get(f"{MODEL}target_modules", "all-linear")
    alpha = source.number(f"{MODEL}lora_alpha", 16.0)
    if megatron_rank := int(source.number(f"{MODEL}lora.rank", 0)):
        rank, alpha = megatron_rank, source.number(f"{MODEL}lora.alpha", 32.0)
    return {"lora": {"rank": rank, "alpha": alpha, "targets": targets}} if rank else {}


def _reward(source: OptionValues) -> dict[str, Any]:
    path = source.first(*(f"{place}.path" for place in REWARD_FUNCTIONS))
    name = source.first(*(f"{place}.name" for place in REWARD_FUNCTIONS)) or "compute_score"
    if path:
        return {"name": name, "fn": f"{path}:{name}"}
    source.remarks.append("the reward is verl's own function, which verl must be installed for")
    return {"name": "score", "fn": BUILT_IN_SCORE}
