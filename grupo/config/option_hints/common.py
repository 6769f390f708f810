"""Options that people try and that no field of a recipe is called."""

from grupo.config.option_hints import answers as to
from grupo.config.option_hints.option import (
    PLACEMENT,
    Library,
    neutral,
    no_value,
    rank_of,
)
from grupo.config.option_hints.option import OtherOption as Option

COMMON = Library(
    "",
    "",
    (
        Option("kl", to.KL, "", "the weight of the KL divergence", "0.04"),
        Option("kl_coef", to.KL, "", "the weight of the KL divergence", "0.04"),
        Option("group", to.GROUP_SIZE, "", example="8"),
        Option("group_size", to.GROUP_SIZE, "", example="8"),
        Option("num_rollouts", to.GROUP_SIZE, "", example="8"),
        Option("batch_size", to.PROMPTS, "", "each prompt has a group of rollouts", "16"),
        Option("prompts", to.PROMPTS, "", example="16"),
        Option("gamma", '--method "gigpo(gamma={})"', "", "of agents with turns", "0.9"),
        Option("clip", to.CLIP, "", example="0.2"),
        Option("clip_ratio", to.CLIP, "", example="0.2"),
        Option("entropy", to.ENTROPY, "", example="0.001"),
        Option("epochs", to.STEPS, "", to.STEPS_OF_EPOCHS, "100"),
        Option("max_length", to.ANSWER_LENGTH, "", example="512"),
        Option("max_tokens", to.ANSWER_LENGTH, "", example="512"),
        Option("lora", to.LORA_RANK, "", example="16", convert=rank_of),
        Option("lora_rank", to.LORA_RANK, "", example="16"),
        Option("dataset", to.TASKS, "", example="train.jsonl"),
        Option("data", to.TASKS, "", example="train.jsonl"),
        Option("reward_fn", to.REWARD, "", example="rewards.py:correct"),
        Option("output", to.RUN, "", example="runs/new"),
        Option("out", to.RUN, "", example="runs/new"),
        Option("config", "an argument: grupo train {}", "", example="recipe.toml"),
        Option("recipe", "an argument: grupo train {}", "", example="recipe.toml"),
        Option("device", "--policy.device {}", "", example="cuda"),
        Option("num_epochs", to.STEPS, "", to.STEPS_OF_EPOCHS, "100"),
        Option("num_steps", to.STEPS, "", example="100"),
        Option("bs", to.PROMPTS, "", "each prompt has a group of rollouts", "16"),
        Option("train_file", to.TASKS, "", example="train.jsonl"),
        Option("data_path", to.TASKS, "", example="train.jsonl"),
        Option("rewards", to.REWARD, "", "repeat it for several", "rewards.py:correct"),
        Option("eval_every", to.EVAL_EVERY, "", example="10"),
        Option("checkpoint", "--model {}", "", "a run, or RUN@best, to start from", "RUN"),
        Option("qlora", to.QLORA, convert=no_value),
        Option("system_prompt", to.SYSTEM_PROMPT, "", "for prompts that have none", "Be brief."),
        *neutral(PLACEMENT, "gpus", "num_gpus", "num_processes", "nproc_per_node"),
        Option("dtype", to.DTYPE, "", example="bfloat16"),
    ),
)
