"""A step of verl's trainers: synchronous, V1 with its modes, and fully asynchronous."""

import math

from grupo.config.migrate.settings import PLACEHOLDER_STEPS, OptionValues
from grupo.config.migrate.verl_objective import ACTOR
from grupo.util.errors import ConfigError

ASYNC = "async_training."  # section of verl.experimental.fully_async_policy
ASYNC_PROMPTS = "rollout.total_rollout_steps"


def prompts_per_step(source: OptionValues) -> int:
    """Prompts per step; of the fully asynchronous trainer, those between two syncs of the weights.

    Raises:
        ConfigError: If there are none.
    """
    prompts = int(source.number("data.train_batch_size", 1024))
    name = "data.train_batch_size"
    if is_fully_async(source):
        name = f"{ACTOR}ppo_mini_batch_size"
        syncs = source.number(f"{ASYNC}trigger_parameter_sync_step", 4)
        prompts = int(
            syncs * source.number(f"{ASYNC}require_batches", 1) * source.number(name, 256)
        )
    if prompts < 1:
        raise ConfigError(f"{name}: {source.get(name)}. Allowed: 1 or more.")
    return prompts


def steps(source: OptionValues, prompts: int) -> int:
    """Steps of the run; a placeholder, with a remark, where the file counts epochs."""
    epochs = source.number("trainer.total_epochs", 30)
    count = int(source.number("trainer.total_training_steps", 0))
    if is_fully_async(source):
        count = int(source.number(ASYNC_PROMPTS, 100)) // prompts
    if count < 1:
        count = PLACEHOLDER_STEPS
        source.remarks.append(
            f"set max_steps to {epochs:g} x number of tasks / {prompts}: {count} is a placeholder"
        )
    return count


def staleness(source: OptionValues) -> dict[str, int]:
    """The staleness of the asynchronous modes, in versions of the weights, as grupo's."""
    if is_fully_async(source):  # rollouts of a step that are generated ahead, as a fraction of it
        return {"max_staleness": math.ceil(source.number(f"{ASYNC}staleness_threshold", 0.1))}
    threshold = int(source.number("trainer.v1.sampler.max_off_policy_threshold", 8))
    is_synchronous = source.get("trainer.v1.trainer_mode", "sync") == "sync"
    return {} if is_synchronous else {"max_staleness": threshold}


def is_fully_async(source: OptionValues) -> bool:
    """Whether the options are those of verl's fully asynchronous trainer."""
    return any(name.startswith(ASYNC) for name in source.values)
