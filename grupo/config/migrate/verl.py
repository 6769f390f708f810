"""Translation of verl's configuration, in YAML or as arguments of main_ppo in a shell script."""

from typing import Any

from grupo.config.migrate.settings import (
    PLACEHOLDER_STEPS,
    Objective,
    OptionValues,
    learning_rate,
    minibatches_of,
)

ACTOR = "actor_rollout_ref.actor."
ROLLOUT = "actor_rollout_ref.rollout."
MODEL = "actor_rollout_ref.model."
OPTIM = f"{ACTOR}optim."
ESTIMATORS = {
    "rloo": "rloo",
    "rloo_vectorized": "rloo",
    "remax": "remax",
    "gae": "ppo",
    "opo": "opo",
    "gpg": "gpg",
    "reinforce_plus_plus": "reinforce_pp",
    "reinforce_plus_plus_baseline": "reinforce_pp_baseline",
}
LOSSES = ("gspo", "cispo", "sapo", "gpg", "gmpo", "clip_cov", "kl_cov", "dppo_tv", "dppo_kl")
AGGREGATIONS = {"token-mean": "token_mean", "seq-mean-token-mean": "sequence_mean"}
BUILT_IN_SCORE = "verl.utils.reward_score:default_compute_score"


def translate(source: OptionValues) -> dict[str, Any]:
    """The data of a recipe."""
    if not source.flag(f"{ROLLOUT}multi_turn.enable"):
        source.used |= {name for name in source.values if name.startswith(f"{ROLLOUT}multi_turn.")}
    length = int(source.number("data.max_response_length", 512))
    prompts = int(source.number("data.train_batch_size", 1024))
    source.used.add("data.gen_batch_size")
    return {
        "tasks": _table(source, "data.train_files", "train.parquet"),
        "eval_tasks": _table(source, "data.val_files", "test.parquet"),
        "max_steps": _steps(source, prompts),
        "prompts_per_step": prompts,
        "learning_rate": _learning_rate(source),
        "optimizer": _optimizer(source),
        "max_grad_norm": source.number(f"{ACTOR}grad_clip", 1.0),
        **_intervals(source),
        "policy": _policy(source, length),
        "env": {"rewards": [_reward(source)]},
        "method": _objective(source, length, prompts).table(),
    }


def _table(source: OptionValues, name: str, default: str) -> str:
    files = source.get(name, default)
    if isinstance(files, list):
        if len(files) > 1:
            source.remarks.append(f"of {name} the first file was taken: join {', '.join(files)}")
        files = files[0]
    key = source.get("data.prompt_key", "prompt")
    return files if key == "prompt" else f"{files}(prompt={key!r})"


def _steps(source: OptionValues, prompts: int) -> int:
    epochs = source.number("trainer.total_epochs", 30)
    steps = int(source.number("trainer.total_training_steps", 0))
    if steps < 1:
        steps = PLACEHOLDER_STEPS
        source.remarks.append(
            f"set max_steps to {epochs:g} x number of tasks / {prompts}: {steps} is a placeholder"
        )
    return steps


def _intervals(source: OptionValues) -> dict[str, Any]:
    save = int(source.number("trainer.save_freq", -1))
    test = int(source.number("trainer.test_freq", -1))
    attempts = int(source.number(f"{ROLLOUT}val_kwargs.n", 1))
    data: dict[str, Any] = {"evaluation": {"every": max(0, test), "attempts": attempts}}
    return data | ({"save_every": save} if save > 0 else {})


def _learning_rate(source: OptionValues) -> float | str:
    rate = source.number(f"{OPTIM}lr", 1e-6)
    kind = source.get(f"{OPTIM}lr_scheduler_type", source.get(f"{OPTIM}warmup_style", "constant"))
    source.used.add(f"{OPTIM}warmup_style")
    total = source.number("trainer.total_training_steps", 0) or PLACEHOLDER_STEPS
    warmup = source.number(f"{OPTIM}lr_warmup_steps_ratio", 0.0)
    steps = source.number(f"{OPTIM}lr_warmup_steps", -1)
    warmup = steps / total if steps > 0 else warmup
    end = rate * source.number(f"{OPTIM}min_lr_ratio", 0.0)
    return learning_rate(rate, str(kind), warmup, end)


def _optimizer(source: OptionValues) -> str:
    beta1, beta2 = source.get(f"{OPTIM}betas", [0.9, 0.999])
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
    if policy["model"] == "MODEL":
        source.remarks.append("no constant model was found: set policy.model")
    rank = int(source.number(f"{MODEL}lora_rank", 0))
    targets = source.get(f"{MODEL}target_modules", "all-linear")
    alpha = source.number(f"{MODEL}lora_alpha", 16.0)
    if rank:
        policy["lora"] = {"rank": rank, "alpha": alpha, "targets": targets}
    source.used |= {f"{ROLLOUT}name", f"{ROLLOUT}gpu_memory_utilization", f"{ROLLOUT}dtype"}
    return policy


def _reward(source: OptionValues) -> dict[str, Any]:
    path = source.get("custom_reward_function.path", "")
    name = source.get("custom_reward_function.name", "compute_score")
    if path:
        return {"name": name, "fn": f"{path}:{name}"}
    source.remarks.append("the reward is verl's own function, which verl must be installed for")
    return {"name": "score", "fn": BUILT_IN_SCORE}


def _objective(source: OptionValues, length: int, prompts: int) -> Objective:
    clip = source.number(f"{ACTOR}clip_ratio", 0.2)
    aggregation = str(source.get(f"{ACTOR}loss_agg_mode", "token-mean"))
    minibatch = source.number(f"{ACTOR}ppo_mini_batch_size", 256)
    objective = Objective(
        estimator=_estimator(source),
        group_size=int(source.number(f"{ROLLOUT}n", 1)),
        clip_low=source.number(f"{ACTOR}clip_ratio_low", clip),
        clip_high=source.number(f"{ACTOR}clip_ratio_high", clip),
        kl_coef=_kl_coef(source),
        entropy_coef=source.number(f"{ACTOR}entropy_coeff", 0.0),
        scale_by_std=source.flag("algorithm.norm_adv_by_std_in_grpo", True),
        aggregation=AGGREGATIONS.get(aggregation, f"ConstantLength({length})"),
        epochs=int(source.number(f"{ACTOR}ppo_epochs", 1)),
        minibatches=minibatches_of(source, prompts, minibatch, prompts),
    )
    rounds = int(source.number("algorithm.filter_groups.max_num_gen_batches", 10)) or 10
    if source.flag("algorithm.filter_groups.enable"):
        objective.dynamic_sampling = rounds
    if source.flag("reward_model.overlong_buffer.enable"):
        buffer = int(source.number("reward_model.overlong_buffer.len", 4096))
        objective.overlong = (length, buffer)
    source.used |= {"algorithm.filter_groups.metric", "reward_model.overlong_buffer.len",
                    "reward_model.overlong_buffer.log", "algorithm.gamma", "algorithm.lam",
                    f"{ACTOR}clip_ratio_c", f"{ACTOR}kl_loss_type"}  # fmt: skip
    return objective


def _estimator(source: OptionValues) -> str:
    name = str(source.get("algorithm.adv_estimator", "gae"))
    loss = str(source.get(f"{ACTOR}policy_loss.loss_mode", "vanilla")).replace("-", "_")
    if loss in LOSSES:
        return loss
    if name not in ESTIMATORS and "grpo" not in name:
        source.remarks.append(f"adv_estimator={name!r} became grpo")
    return ESTIMATORS.get(name, "grpo")


def _kl_coef(source: OptionValues) -> float:
    in_loss = source.number(f"{ACTOR}kl_loss_coef", 0.001)
    in_reward = source.number("algorithm.kl_ctrl.kl_coef", 0.001)
    if source.flag("algorithm.use_kl_in_reward"):
        source.remarks.append("the KL divergence is in the loss, not in the reward, unless the"
                              " method says otherwise")  # fmt: skip
        return in_reward
    return in_loss if source.flag(f"{ACTOR}use_kl_loss") else 0.0
