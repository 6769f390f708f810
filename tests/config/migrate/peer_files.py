"""Files of other libraries with given options, and their migration."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grupo.config.migrate import Migration, migrate_file

MAX_LENGTH = 7  # most tokens of an answer in all files


def migrate_trl(folder: Path, options: Mapping[str, Any], rewards: str = "[correct]") -> Migration:
    """The migration of a script with the options."""
    values = {"max_completion_length": MAX_LENGTH, **options}
    arguments = ", ".join(f"{name}={value!r}" for name, value in values.items())
    script = folder / "script.py"
    script.write_text(
        "from rewards import correct, short\n"
        f"GRPOTrainer('m', reward_funcs={rewards}, args=GRPOConfig({arguments}))\n"
    )
    return migrate_file(script)


def migrate_verl(folder: Path, options: Mapping[str, Any]) -> Migration:
    """The migration of a command with options, which are named without their section."""
    sections = {
        "loss_mode": "actor_rollout_ref.actor.policy_loss.",
        "norm_adv_by_std_in_grpo": "algorithm.",
        "lam": "algorithm.",
        "gamma": "algorithm.",
        "adv_estimator": "algorithm.",
        "use_kl_in_reward": "algorithm.",
        "kl_coef": "algorithm.kl_ctrl.",
        "kl_penalty": "algorithm.",
        "multi_turn.enable": "actor_rollout_ref.rollout.",
        "bypass_mode": "algorithm.rollout_correction.",
    }
    values = {"adv_estimator": "grpo", **options}
    arguments = [
        f"{sections.get(name, 'actor_rollout_ref.actor.')}{name}={value}"
        for name, value in values.items()
    ]
    fixed = f"data.train_batch_size=8 data.max_response_length={MAX_LENGTH}"
    size = "actor_rollout_ref.actor.ppo_mini_batch_size=8 actor_rollout_ref.rollout.n=4"
    script = folder / "script.sh"
    script.write_text(f"python3 -m verl.trainer.main_ppo {fixed} {size} {' '.join(arguments)}\n")
    return migrate_file(script)


def migrate_openrlhf(folder: Path, options: Mapping[str, Any]) -> Migration:
    """The migration of a command with options; a flag is True, a pair a list."""
    values = {"rollout.n_samples_per_prompt": 4, "rollout.batch_size": 8, **options}
    values |= {"train.batch_size": 32, "rollout.max_new_tokens": MAX_LENGTH}
    words = [f"--{name} {_word(value)}" for name, value in values.items()]
    script = folder / "script.sh"
    script.write_text(f"python3 -m openrlhf.cli.train_ppo_ray {' '.join(words)}\n")
    return migrate_file(script)


def _word(value: Any) -> str:
    if value is True:
        return ""
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def name_of(options: Mapping[str, Any]) -> str:
    """The values of the options, as the name of a test."""
    return " ".join(f"{value}" for value in options.values()) or "defaults"
