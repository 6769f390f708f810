"""The metrics of a step, each computed by hand from a few rollouts."""

from dataclasses import replace
from math import isnan, sqrt

import pytest
import torch

from grupo.core.batch import Batch
from grupo.core.types import Group, Response, Rollout, Task
from grupo.report.step_line import active_alarms
from grupo.training.collect.collected_groups import CollectedGroups
from grupo.training.update.collate import collate
from grupo.training.update.metrics import combine_update_metrics, group_metrics, mean, token_metrics

NO_ROWS = Batch.of(
    torch.zeros(0),
    torch.zeros(0, dtype=torch.long),
    rollout=torch.zeros(0, dtype=torch.long),
    mask=torch.zeros(0, 0, dtype=torch.bool),
    old_logp=torch.zeros(0, 0),
)


def rollout(reward: float, length: int, *, finish_reason: str = "end", **fields) -> Rollout:
    response = Response(tuple(range(length)), (-1.0,) * length, finish_reason=finish_reason)
    return Rollout((("?", response),), reward, **fields)


def failed(length: int) -> Rollout:
    return rollout(float("nan"), length, error="it raised")


def metrics_of(
    *groups: list[Rollout],
    num_kept: int | None = None,
    generated: dict[str, int] | None = None,
) -> dict[str, float]:
    """The metrics of a step whose sampler returned these groups; the first `num_kept` are kept."""
    sampled = [Group(Task(str(i), "?"), tuple(group)) for i, group in enumerate(groups)]
    kept = sampled[:num_kept]
    collected = CollectedGroups(tuple(sampled), tuple(kept))
    batch = collate(kept, lambda _: None)
    return group_metrics(collected, batch) | token_metrics(generated or {}, collected, batch, ())


def test_reward_metrics_pool_all_groups():
    metrics = metrics_of([rollout(1.0, 1), rollout(0.0, 1)], [rollout(1.0, 1), rollout(1.0, 1)])
    assert metrics["reward/mean"] == 3 / 4
    assert metrics["reward/std"] == pytest.approx(sqrt(3 / 16))  # p (1 - p)


def test_a_failed_rollout_has_no_reward_and_is_counted():
    metrics = metrics_of([rollout(1.0, 2)], [rollout(0.0, 2), failed(5)], num_kept=1)
    assert metrics["reward/mean"] == 1 / 2
    assert metrics["rollouts/failed"] == 1
    assert (
        metrics["completions/length_mean"] == (2 + 2 + 5) / 3
    )  # the failed rollout was generated, too


def test_reward_terms_are_averaged_over_the_rollouts_that_have_them():
    group = [
        rollout(1.0, 1, reward_terms={"right": 1.0, "short": 0.5}),
        rollout(0.0, 1, reward_terms={"right": 0.0}),
    ]
    metrics = metrics_of(group)
    assert (metrics["reward/right"], metrics["reward/short"]) == (0.5, 0.5)


@pytest.mark.parametrize("name", ["failed", "answer_error"])
def test_the_fraction_of_replaced_rewards_is_over_all_rollouts(name):
    group = [
        rollout(0.0, 1, reward_terms={name: 1.0}),
        *[rollout(1.0, 1, reward_terms={"right": 1.0})] * 3,
    ]
    metrics = metrics_of(group)
    assert metrics[f"reward/{name}"] == 1 / 4
    assert metrics["reward/right"] == 1.0
    assert f"reward/{name}" not in metrics_of(group[1:])


def test_nonzero_std_frac_counts_groups_with_different_rewards():
    differ = [rollout(1.0, 1), rollout(0.0, 1)]
    equal = [rollout(1.0, 1), rollout(1.0, 1)]
    only_failed_differs = [rollout(1.0, 1), failed(1)]
    metrics = metrics_of(differ, equal, only_failed_differs, equal, num_kept=2)
    assert metrics["groups/sampled"] == 4
    assert metrics["groups/trained"] == 2
    assert metrics["groups/nonzero_std_frac"] == 1 / 4


def test_lengths_count_tokens_and_truncated_rollouts_ended_at_the_limit():
    metrics = metrics_of(
        [rollout(1.0, 3, finish_reason="length"), rollout(0.0, 1)], [rollout(0.0, 5)]
    )
    assert (metrics["completions/length_mean"], metrics["completions/length_max"]) == (3.0, 5.0)
    assert metrics["completions/truncated_frac"] == 1 / 3
    assert metrics["tokens/returned"] == 9


def test_zero_frac_is_over_the_trained_responses():
    metrics = metrics_of([rollout(1.0, 3), rollout(0.0, 1)], [rollout(2.0, 50)], num_kept=1)
    assert metrics["tokens/trained"] == 4
    assert (
        metrics["advantage/zero_frac"] == 1 / 4
    )  # without an estimator the advantage is the reward


def test_mask_metrics_compare_the_mask_with_the_responses():
    sampled = Response((1, 2), (-1.0, -1.0))
    forced = Response((3,), (0.0,), sampled=False, in_loss=False)
    demonstrated = Response((4,), (0.0,), sampled=False)
    rollouts = [Rollout((("?", sampled), ("", forced)), 1.0), Rollout((("?", demonstrated),), 0.0)]
    group = Group(Task("0", "?"), tuple(rollouts))
    batch = collate([group], lambda _: None)  # (1, 2, forced) and (demonstrated, padding, padding)
    collected = CollectedGroups((group,), (group,))

    def mask_metrics(mask: list[list[int]]) -> tuple[float, float]:
        metrics = group_metrics(collected, replace(batch, mask=torch.tensor(mask).bool()))
        return metrics["mask/extra_frac"], metrics["mask/dropped_frac"]

    assert mask_metrics(batch.mask.int().tolist()) == (0.0, 0.0)
    assert mask_metrics([[1, 1, 1], [1, 0, 0]]) == (
        1 / 3,
        0.0,
    )  # the forced token, of three to be trained on
    assert mask_metrics([[1, 0, 0], [1, 1, 0]]) == (
        1 / 3,
        1 / 3,
    )  # one padding column in, one sampled token out


def test_without_rollouts_means_are_nan_and_sums_are_0():
    group = Group(Task("0", "?"), (failed(0),))
    collected = CollectedGroups((group,), ())
    metrics = group_metrics(collected, NO_ROWS) | token_metrics({}, collected, NO_ROWS, ())
    absent = {
        "reward/mean",
        "reward/std",
        "advantage/zero_frac",
        "groups/nonzero_std_frac",
    }
    assert {name for name, value in metrics.items() if isnan(value)} == absent
    assert (metrics["tokens/trained"], metrics["groups/trained"]) == (0.0, 0.0)
    assert isnan(mean([]))


def test_metrics_of_updates_are_averaged_by_name_but_the_mismatch_is_the_first():
    first = {"loss": 1.0, "sampler_mismatch/logp_diff_mean": 0.25, "policy/kl_ref": 4.0}
    second = {"loss": 2.0, "sampler_mismatch/logp_diff_mean": 0.75}
    metrics = combine_update_metrics([first, second])
    assert metrics == {"loss": 1.5, "sampler_mismatch/logp_diff_mean": 0.25, "policy/kl_ref": 4.0}
    assert combine_update_metrics([{"loss": 0.0}, second]) == {
        "loss": 1.0
    }  # a later update does not show the mismatch before the step
    assert combine_update_metrics([]) == {}


def test_padding_is_not_counted():
    batch = collate([Group(Task("", "?"), (rollout(1.0, 4), rollout(0.0, 1)))], lambda _: None)
    assert batch.mask.shape == torch.Size([2, 4])
    metrics = metrics_of([rollout(1.0, 4), rollout(0.0, 1)])
    assert (metrics["tokens/trained"], metrics["advantage/zero_frac"]) == (5.0, 1 / 5)


def test_step_values_stand_in_the_columns_of_their_responses():
    turns = (
        ("?", Response((1, 2), (0.0, 0.0))),
        ("And?", Response((3,), (0.0,), observation=(7, 8))),
    )
    with_values = Rollout(turns, reward=1.0, step_values={"reward": (0.5, 0.0, 2.0)})
    other = Rollout(turns[:1], reward=0.0)
    batch = collate([Group(Task("", "?"), (with_values, other))], lambda _: None)
    # two responses, two observation columns, one response
    assert batch.signals["step/reward"].tolist() == [[0.5, 0.0, 0.0, 0.0, 2.0], [0.0] * 5]


def test_shared_responses_are_counted_once():
    shared, first, second = (Response((1,) * n, (-1.0,) * n, rng_key=n) for n in (5, 2, 3))
    forced = Response((1,), (0.0,), sampled=False, in_loss=False)
    leaves = [Rollout((("?", shared), ("", x), ("", forced)), 1.0) for x in (first, second)]
    assert metrics_of(leaves)["tokens/returned"] == 5 + 2 + 3
    assert metrics_of(leaves)["tokens/trained"] == (5 + 2) + (5 + 3)


def test_a_response_that_is_cut_in_some_rollouts_is_counted_once_at_its_full_length():
    whole = Response((1,) * 5, (-1.0,) * 5, rng_key=7)
    cut = replace(whole, items=whole.items[:2], logp=whole.logp[:2])
    for responses in ((whole, cut), (cut, whole)):
        leaves = [Rollout((("?", response),), 1.0) for response in responses]
        assert metrics_of(leaves)["tokens/returned"] == 5


def test_generated_tokens_are_those_the_actor_counted_in_total_and_by_role():
    counted = {"": 12, "hinter": 4}
    metrics = metrics_of([rollout(1.0, 3), rollout(0.0, 2)], generated=counted)
    names = ("tokens/generated", "tokens/generated/hinter", "tokens/returned", "tokens/trained")
    assert [metrics[name] for name in names] == [16, 4, 5, 5]
    assert "tokens/generated/" not in metrics


def test_tokens_with_an_advantage_are_trained_tokens():
    metrics = metrics_of([rollout(1.0, 3), rollout(0.0, 2)])  # the advantage is the reward
    assert (metrics["tokens/trained"], metrics["tokens/with_advantage"]) == (5, 3)


def continued(rollout: Rollout, length: int) -> Rollout:
    response = Response(tuple(range(length)), (-1.0,) * length, rng_key=9)
    return rollout.append_turn("", response)


def test_tokens_of_an_earlier_step_are_not_counted_again():
    key = {"rng_key": 8}
    cut = Rollout((("?", Response((1, 2, 3), (-1.0,) * 3, finish_reason="length", **key)),), 0.0)
    task = Task("t", "?", unfinished_rollouts=(cut,))
    groups = (Group(task, (continued(cut, 2),)), Group(Task("u", "?"), (cut,)))
    collected = CollectedGroups(groups, groups)
    batch = collate(groups, lambda _: None)
    assert token_metrics({}, collected, batch, ())["tokens/returned"] == 2 + 3
    metrics = group_metrics(collected, batch)
    assert metrics["completions/length_mean"] == (5 + 3) / 2


@pytest.mark.parametrize(("rows", "unused"), [((), 20), ((0,), 15), ((0, 2), 15), ((0, 1, 2), 9)])
def test_unused_tokens_are_those_of_rollouts_without_gradient(rows, unused):
    replayed = rollout(0.0, 4)  # of an earlier step: it has no index
    group = Group(Task("t", "?"), (rollout(1.0, 5, index=0), rollout(0.0, 6, index=1), replayed))
    collected = CollectedGroups((group,), (group,))
    batch = collate((group,), lambda _: None)
    metrics = token_metrics({"": 20}, collected, batch, rows)  # 9 of them were discarded
    assert metrics["tokens/unused"] == unused


def test_unfinished_rollouts_are_counted_and_have_no_reward():
    unfinished = rollout(0.0, 2, finish_reason="length", unfinished=True)
    metrics = metrics_of([rollout(1.0, 1), unfinished])
    assert metrics["rollouts/unfinished"] == 1
    assert (metrics["reward/mean"], metrics["groups/nonzero_std_frac"]) == (1.0, 0.0)
    assert "rollouts/unfinished" not in metrics_of([rollout(1.0, 1)])


def test_forked_rollouts_are_counted_with_their_rows():
    fork = replace(rollout(1.0, 1).turns[0][1], resets_context=True, rewrites_history=True)
    forked = rollout(1.0, 2).append_turn("and?", fork).append_turn("and?", fork)
    metrics = metrics_of([rollout(0.0, 1), forked])
    assert (metrics["rollouts/forked"], metrics["rollouts/fork_rows"]) == (1, 3)
    alarm = active_alarms(metrics)["forked_rollouts"]
    assert "1 rollout became 3 rows each" in alarm
    assert "rollouts/forked" not in metrics_of([rollout(0.0, 1)])
