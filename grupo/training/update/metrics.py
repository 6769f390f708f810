"""The metrics of a training step; `docs/metrics.md` defines each of them."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from grupo.core.batch import Batch
from grupo.core.component import walk
from grupo.core.types import PRUNED_BY_SAMPLER, Group, Rollout
from grupo.method import Method
from grupo.training.collect.collected_groups import CollectedGroups
from grupo.training.update.collate import positions_in_batch
from grupo.util.timing import Stopwatch


def group_metrics(collected: CollectedGroups, batch: Batch) -> dict[str, float]:
    """The metrics of the generated groups: rewards, lengths, failures and reward differences.

    Args:
        collected: The groups generated and the groups kept.
        batch: The batch collated from the kept groups, with advantages.
    """
    groups = collected.sampled_groups
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    rewards = _rewards(rollouts)
    reward_mean = mean(rewards)
    lengths = [float(rollout.length) for rollout in rollouts]
    truncated = [
        float(rollout.truncated) for rollout in rollouts if rollout.error != PRUNED_BY_SAMPLER
    ]
    nonzero_std = [float(_rewards_differ(group)) for group in groups if group.rollouts[1:]]
    return {
        "reward/mean": reward_mean,
        "reward/std": mean([(reward - reward_mean) ** 2 for reward in rewards]) ** 0.5,
        **_reward_term_means(rollouts),
        "groups/sampled": float(len(groups)),
        "groups/trained": float(len(collected.kept_groups)),
        "groups/nonzero_std_frac": mean(nonzero_std),
        "rollouts/failed": float(sum(r.error not in ("", PRUNED_BY_SAMPLER) for r in rollouts)),
        "completions/truncated_frac": mean(truncated),
        **_pruned_metrics(rollouts),
        **_forked_metrics(rollouts),
        **_unfinished_rollout_metrics(rollouts),
        **_unfinished_group_metrics(collected),
        "completions/length_mean": mean(lengths),
        "completions/length_max": max(lengths, default=math.nan),
        "advantage/zero_frac": (batch.advantage[batch.mask] == 0).double().mean().item(),
        **(_mask_metrics(collected, batch) if collected.kept_groups else {}),
    }


def token_metrics(
    generated_tokens: Mapping[str, int],
    collected: CollectedGroups,
    batch: Batch,
    trained_rows: Collection[int],
) -> dict[str, float]:
    """Numbers of tokens (or denoising steps) generated, returned by the sampler, and trained on.

    Args:
        generated_tokens: Number of tokens generated in the step, by role (`Rollout.role`). The key
            "" is the role of the first policy, or of the only one.
        collected: The groups generated and the groups kept.
        batch: The batch collated from the kept groups, with advantages.
        trained_rows: The rows of the batch whose gradient an update computed.
    """
    by_role = {
        f"tokens/generated/{role}": float(count) for role, count in generated_tokens.items() if role
    }
    num_generated = sum(generated_tokens.values())
    num_used = _count_used(collected.kept_groups, batch, trained_rows)
    return {
        "tokens/generated": float(num_generated),
        "tokens/unused": float(max(0, num_generated - num_used)),
        **by_role,
        "tokens/returned": float(sum(map(_count_returned, collected.sampled_groups))),
        "tokens/trained": float(batch.mask.sum()),
        "tokens/with_advantage": float((batch.mask & (batch.advantage != 0)).sum()),
    }


def usage_metrics(external_usage: Mapping[str, float]) -> dict[str, float]:
    """Counts of work outside this process that reward functions caused, such as calls of judges."""
    return {f"usage/{name}": value for name, value in external_usage.items()}


def mean_staleness(collected: CollectedGroups, step: int) -> float:
    """Mean age, in steps, of the weights that the responses were sampled with.

    The version of weights is the number of steps that have changed them.
    """
    rollouts = (rollout for group in collected.sampled_groups for rollout in group.rollouts)
    responses = [response for r in rollouts for _, response in r.turns if response.sampled]
    total_age = sum(step - version for response in responses for version in response.item_versions)
    return total_age / max(1, sum(len(response.items) for response in responses))


def time_metrics(stopwatch: Stopwatch, metrics: Mapping[str, float]) -> dict[str, float]:
    """Seconds of each phase, and throughput.

    Args:
        stopwatch: Times the step and its phases.
        metrics: The other metrics of the step, with its numbers of tokens.
    """
    times = {f"time/{name}": seconds for name, seconds in stopwatch.seconds.items()}
    step_seconds = stopwatch.elapsed
    times |= {"time/other": step_seconds - sum(times.values()), "time/step": step_seconds}
    num_generated = metrics["tokens/generated"]
    return {
        **times,
        **{f"time_frac/{name}": x / step_seconds for name, x in stopwatch.seconds.items()},
        "tokens/backpropagated": metrics.get("tokens/backpropagated", 0.0),
        "throughput/generated_tokens_per_s": num_generated / max(times["time/generate"], 1e-9),
        "throughput/tokens_per_s": num_generated / step_seconds,
    }


@runtime_checkable
class ReportsMetrics(Protocol):
    """A component of the advantage estimator that reports metrics of the batch."""

    def metrics(self, batch: Batch) -> Mapping[str, float]:
        """Numbers by the name of the metric."""
        ...


def advantage_metrics(method: Method, batch: Batch) -> dict[str, float]:
    """The metrics of the batch that components of the advantage estimator report."""
    values: dict[str, float] = {}
    for component in walk(method.advantage):
        if isinstance(component, ReportsMetrics):
            values |= {name: float(value) for name, value in component.metrics(batch).items()}
    return values


def mean(values: Sequence[float]) -> float:
    """The mean; NaN if there are no values."""
    return sum(values) / len(values) if values else math.nan


def combine_update_metrics(update_metrics: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each metric over the updates of a step, with two exceptions.

    Numbers of tokens are summed. The sampler mismatch is taken from the first update, because only
    the first update begins with the weights that generated the rollouts.
    """
    out: dict[str, float] = {}
    for name in dict.fromkeys(name for values in update_metrics for name in values):
        if not _is_mismatch(name):
            out[name] = mean([values[name] for values in update_metrics if name in values])
        if name.startswith("tokens/"):
            out[name] = sum(values[name] for values in update_metrics if name in values)
    first = update_metrics[0] if update_metrics else {}
    return out | {name: value for name, value in first.items() if _is_mismatch(name)}


def _is_mismatch(name: str) -> bool:
    return name.startswith("sampler_mismatch/")


def _rewards(rollouts: Sequence[Rollout]) -> list[float]:
    """The rewards of the scored rollouts: those that neither failed nor are unfinished."""
    return [r.reward for r in rollouts if not r.error and not r.unfinished]


def _rewards_differ(group: Group) -> bool:
    return len({*_rewards(group.rollouts)}) > 1


def _count_returned(group: Group) -> int:
    """Number of sampled items in the responses of a group.

    Rollouts that branch from one rollout share a response, and each may keep a different prefix of
    the response. The response counts once, with its longest prefix. Responses of an earlier step
    are left out, because the metrics of the earlier step count them.
    """
    earlier = _sampled_lengths(group.task.unfinished_rollouts)
    lengths = _sampled_lengths(group.rollouts)
    return sum(length for key, length in lengths.items() if key not in earlier)


def _count_used(groups: Sequence[Group], batch: Batch, trained_rows: Collection[int]) -> int:
    """Number of sampled items of this step in the rollouts with a trained row."""
    trained = {int(batch.rollout[row]) for row in trained_rows}
    used = {index for index, place in positions_in_batch(groups).items() if place in trained}
    return sum(
        _count_returned(
            replace(group, rollouts=tuple(r for r in group.rollouts if r.index in used))
        )
        for group in groups
    )


def _sampled_lengths(rollouts: Sequence[Rollout]) -> dict[tuple[int, int], int]:
    """The length of each sampled response, by turn and random stream.

    Copies of a response in several rollouts have the same key, and the longest copy counts.
    """
    lengths = dict[tuple[int, int], int]()
    for rollout in rollouts:
        for turn, (_, response) in enumerate(rollout.turns):
            if response.sampled:
                key = turn, response.rng_key or id(response)
                lengths[key] = max(lengths.get(key, 0), len(response.items))
    return lengths


def _unfinished_rollout_metrics(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """Number of rollouts that their sampler returned unfinished, in groups that are complete.

    A later group of the same task continues such a rollout.
    """
    count = sum(rollout.unfinished for rollout in rollouts)
    return {"rollouts/unfinished": float(count)} if count else {}


def _unfinished_group_metrics(collected: CollectedGroups) -> dict[str, float]:
    """Number of unfinished groups, which the next step continues."""
    count = len(collected.unfinished_groups)
    return {"groups/continued": float(count)} if count else {}


def _pruned_metrics(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """Number of rollouts that the sampler stopped early, and number of their tokens."""
    lengths = [rollout.length for rollout in rollouts if rollout.error == PRUNED_BY_SAMPLER]
    if not lengths:
        return {}
    return {"rollouts/pruned": float(len(lengths)), "tokens/pruned": float(sum(lengths))}


def _forked_metrics(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """Number of forked rollouts, and their mean number of rows.

    A rollout is forked if the chat template rewrote its earlier answers.
    """
    rows = [float(len(rollout.contexts)) for rollout in rollouts if rollout.is_forked]
    return {"rollouts/forked": float(len(rows)), "rollouts/fork_rows": mean(rows)} if rows else {}


def _reward_term_means(rollouts: Sequence[Rollout]) -> dict[str, float]:
    names = dict.fromkeys(name for rollout in rollouts for name in rollout.reward_terms)
    return {f"reward/{name}": mean(_term_values(name, rollouts)) for name in names}


def _term_values(name: str, rollouts: Sequence[Rollout]) -> list[float]:
    """The values of a reward term, for the rollouts that have the term.

    The environment sets the terms "failed" (the rollout has no reward) and "answer_error" (an error
    that the answer caused) only to 1. A rollout without one of them has the value 0.
    """
    defaults = {"failed": 0.0, "answer_error": 0.0}
    terms = [{**defaults, **rollout.reward_terms} for rollout in rollouts]
    return [values[name] for values in terms if name in values]


def _mask_metrics(collected: CollectedGroups, batch: Batch) -> dict[str, float]:
    """Errors of `batch.mask`, as fractions of the tokens in the trained responses.

    `extra` counts tokens in the mask that are in no trained response. `dropped` counts sampled
    tokens of trained responses that are not in the mask.
    """
    rollouts = (rollout for group in collected.kept_groups for rollout in group.rollouts)
    responses = [response for r in rollouts for _, response in r.turns if response.in_loss]
    num_sampled = sum(len(response.items) for response in responses if response.sampled)
    num_not_sampled = sum(len(response.items) for response in responses if not response.sampled)
    num_in_mask = int(batch.mask.sum())
    num_sampled_in_mask = int((batch.mask & (batch.signals["sampled"] > 0)).sum())
    total = max(1, num_sampled + num_not_sampled)
    return {
        "mask/extra_frac": (num_in_mask - num_sampled_in_mask - num_not_sampled) / total,
        "mask/dropped_frac": (num_sampled - num_sampled_in_mask) / total,
    }
