"""The limit of a field or an option, by its name."""

from collections.abc import Mapping

from grupo.core.limits import (
    DURATION,
    EPOCHS,
    NEW_TOKENS,
    PICTURE_SIDE,
    PROCESSES,
    PROMPTS,
    ROLLOUTS,
    SEED,
    SIZE,
    TOKENS,
    TURNS,
    VOCABULARY,
    WIDTH,
)
from grupo.util import limits
from grupo.util.limits import Limit

_NAMES: Mapping[Limit, tuple[str, ...]] = {
    SEED: ("seed", "key", "document_seed", "seed_offset"),
    DURATION: ("time_limit", "timeout", "seconds"),
    TOKENS: ("tokens_per_step", "tokens_per_microbatch"),
    PROMPTS: ("prompts_per_step", "prompts", "num_prompts"),
    ROLLOUTS: (
        *("group_size", "mean_group_size", "min_group_size", "max_group_size", "num_rollouts"),
        *("initial_rollouts", "recent_rollouts", "attempts", "completions", "drafts", "reviews"),
        *("answers_per_budget", "answers_per_cut", "branches", "branches_per_step", "leaves"),
        *("max_initial_branches", "num_hints", "traces", "max_per_group", "probes"),
        *("games", "iterations"),
    ),
    EPOCHS: (
        *("epochs", "minibatches", "rounds", "max_rounds", "max_resample_rounds", "max_tries"),
        *("retries", "newton_schulz_steps", "search_steps"),
    ),
    NEW_TOKENS: (
        *("max_new_tokens", "max_tokens", "max_length", "max_new_tokens_after"),
        *("thinking_tokens",),
    ),
    TURNS: ("max_turns",),
    PROCESSES: (
        *("ranks", "workers", "threads", "cores", "nodes", "gpus", "max_concurrency"),
        *(
            "gpus_per_node",
            "max_concurrent",
            "connections",
            "tensor_parallel",
            "data_parallel",
            "num_players",
        ),
        *("ray_gpus", "trainers", "generators", "servers"),
    ),
    WIDTH: ("hidden_size", "intermediate_size", "num_heads", "head_dim", "image_size"),
    limits.MODEL_LAYERS: ("num_layers",),
    limits.STALENESS: ("max_staleness", "staleness"),
    limits.STEPS: ("max_steps",),
    limits.LORA_RANK: ("rank", "lora_rank"),
    VOCABULARY: ("vocab_size",),
    PICTURE_SIDE: ("height", "side", "cell", "cells", "dpi", "patch"),
    limits.GENERATED_TASKS: ("eval_tasks", "max_tasks"),
    SIZE: ("size", "count"),
}
LIMIT_OF_NAME: Mapping[str, Limit] = {
    name: limit for limit, names in _NAMES.items() for name in names
}
