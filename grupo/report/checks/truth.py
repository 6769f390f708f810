"""Check of a reward beside the truth: terms of weight 0, which are measured and not optimised."""

from collections.abc import Iterator
from typing import Any

from grupo.report.checks.finding import Finding, FindingTemplate, step_locations
from grupo.report.checks.run_data import RunData
from grupo.report.read_run import Record

MIN_WINDOWS = 3  # shorter runs show no trend
# the highest window is chosen among many: two standard errors would be chance
MIN_STANDARD_ERRORS = 5.0
MIN_LOST_FRAC = 0.1  # of the highest value of the term

PARTED = FindingTemplate(
    "reward parted from truth",
    "warning",
    (
        "The policy has found answers that the reward overrates, such as errors of a learned one.",
        "The reward pays for something else beside what the term measures.",
    ),
    (
        "Use the checkpoint before this step, or stop there.",
        "Use a larger `kl_coef`, and train the reward model on answers of this policy.",
        "Read the rollouts with the highest rewards: `grupo rollouts RUN --best 10`.",
    ),
)


def measured_terms(recipe: Record) -> list[str]:
    """Names of the reward terms of weight 0 of a recipe, in its order.

    Args:
        recipe: A recipe as data.

    >>> term = {"component": "grupo.envs.reward_term:RewardTerm", "name": "truth", "weight": 0.0}
    >>> measured_terms({"env": {"rewards": {"tuple": [term, {**term, "weight": 1.0}]}}})
    ['truth']
    """
    env = recipe.get("env")
    return list(dict.fromkeys(_measured(env)))


def parted_from_truth(run: RunData) -> Iterator[Finding]:
    """The reward rose since a measured term was highest, and that term fell by more than noise."""
    for name in measured_terms(run.recipe):
        yield from _parted(run, name)


def _parted(run: RunData, name: str) -> Iterator[Finding]:
    """The finding about one term, named after the last step of its highest window."""
    truth, width = run(f"reward/{name}"), run.window
    at_step = dict(run("reward/mean"))
    if len(truth.values) < MIN_WINDOWS * width or any(s not in at_step for s in truth.steps):
        return
    truths = _window_means(truth.values, width)
    rewards = _window_means([at_step[step] for step in truth.steps], width)
    peak = truths.index(max(truths))
    lost, gained = truths[peak] - truths[-1], rewards[-1] - rewards[peak]
    noise = MIN_STANDARD_ERRORS * run.standard_error(f"reward/{name}")
    has_fallen = lost > max(noise, MIN_LOST_FRAC * abs(truths[peak]))
    if has_fallen and gained > 2 * run.standard_error("reward/mean"):
        step = truth.steps[peak + width - 1]
        yield PARTED(
            f"The reward and the term {name!r}, which has weight 0, part after step {step}: the"
            f" reward was {rewards[peak]:.3g} there and is {rewards[-1]:.3g} now, and the term was"
            f" {truths[peak]:.3g} and is {truths[-1]:.3g} (means over {width} steps).",
            name,
            step_locations([step]),
        )


def _window_means(values: Any, width: int) -> list[float]:
    """The mean of every window of `width` consecutive values."""
    return [sum(values[i : i + width]) / width for i in range(len(values) - width + 1)]


def _measured(value: Any) -> Iterator[str]:
    """Names of the reward terms of weight 0 anywhere in the data of an environment."""
    if isinstance(value, dict):
        is_term = str(value.get("component", "")).endswith(":RewardTerm")
        if is_term and value.get("weight") == 0 and isinstance(value.get("name"), str):
            yield value["name"]
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from _measured(inner)
