"""The numbers of a step, each from four rollouts on the page."""

from dataclasses import replace
from math import isnan, sqrt

import pytest
import torch

from grupo.core.batch import Batch
from grupo.core.types import Action, Group, Rollout, Task
from grupo.training.collate import collate
from grupo.training.collect import CollectedGroups
from grupo.training.metrics import group_metrics, mean, mean_over_updates

NOTHING = Batch.of(
    torch.zeros(0),
    torch.zeros(0, dtype=torch.long),
    rollout=torch.zeros(0, dtype=torch.long),
    mask=torch.zeros(0, 0, dtype=torch.bool),
    old_logp=torch.zeros(0, 0),
)


def rollout(reward: float, length: int, *, stopped: str = "end", **more) -> Rollout:
    action = Action(tuple(range(length)), (-1.0,) * length, finish_reason=stopped)
    return Rollout((("?", action),), reward, **more)


def failed(length: int) -> Rollout:
    return rollout(float("nan"), length, failed="it raised")


def numbers(*groups: list[Rollout], kept: int = -1) -> dict[str, float]:
    made = [Group(Task(str(i), "?"), tuple(group)) for i, group in enumerate(groups)]
    learned = made if kept < 0 else made[:kept]
    return group_metrics(
        CollectedGroups(tuple(made), tuple(learned)), collate(learned, lambda _: None)
    )


def test_rewards_are_of_all_rollouts_together():
    found = numbers([rollout(1.0, 1), rollout(0.0, 1)], [rollout(1.0, 1), rollout(1.0, 1)])
    assert found["reward/mean"] == 3 / 4
    assert found["reward/std"] == pytest.approx(sqrt(3 / 16))  # p (1 - p)


def test_a_rollout_that_failed_has_no_reward_and_is_counted():
    found = numbers([rollout(1.0, 2)], [rollout(0.0, 2), failed(5)], kept=1)
    assert found["reward/mean"] == 1 / 2
    assert found["rollouts/failed"] == 1
    assert found["completions/length_mean"] == (2 + 2 + 5) / 3  # it was sampled all the same


def test_parts_are_averaged_where_they_are():
    group = [
        rollout(1.0, 1, parts={"right": 1.0, "short": 0.5}),
        rollout(0.0, 1, parts={"right": 0.0}),
    ]
    found = numbers(group)
    assert (found["reward/right"], found["reward/short"]) == (0.5, 0.5)


def test_fallbacks_are_a_share_of_all_rollouts():
    group = [rollout(0.0, 1, parts={"failed": 1.0}), *[rollout(1.0, 1, parts={"right": 1.0})] * 3]
    found = numbers(group)
    assert found["reward/failed"] == 1 / 4
    assert found["reward/right"] == 1.0
    assert "reward/failed" not in numbers(group[1:])


def test_groups_teach_where_judged_rollouts_earn_differently():
    differ = [rollout(1.0, 1), rollout(0.0, 1)]
    alike = [rollout(1.0, 1), rollout(1.0, 1)]
    only_failed_differs = [rollout(1.0, 1), failed(1)]
    found = numbers(differ, alike, only_failed_differs, alike, kept=2)
    assert found["groups/sampled"] == 4
    assert found["groups/trained"] == 2
    assert found["groups/nonzero_std_frac"] == 1 / 4


def test_lengths_count_actions_and_truncated_ones_end_at_the_limit():
    found = numbers([rollout(1.0, 3, stopped="length"), rollout(0.0, 1)], [rollout(0.0, 5)])
    assert (found["completions/length_mean"], found["completions/length_max"]) == (3.0, 5.0)
    assert found["completions/truncated_frac"] == 1 / 3
    assert found["tokens/generated"] == 9


def test_advantages_of_zero_are_a_share_of_the_actions_learned_from():
    found = numbers([rollout(1.0, 3), rollout(0.0, 1)], [rollout(2.0, 50)], kept=1)
    assert found["tokens/trained"] == 4
    assert found["advantage/zero_frac"] == 1 / 4  # a batch is born with the reward as its advantage


def test_the_mask_is_counted_against_what_the_policy_said():
    said, forced = Action((1, 2), (-1.0, -1.0)), Action((3,), (0.0,), sampled=False, in_loss=False)
    worked = Action((4,), (0.0,), sampled=False)
    rollouts = [Rollout((("?", said), ("", forced)), 1.0), Rollout((("?", worked),), 0.0)]
    group = Group(Task("0", "?"), tuple(rollouts))
    batch = collate([group], lambda _: None)  # (1, 2, forced) and (worked, padding, padding)
    gathered = CollectedGroups((group,), (group,))

    def wrong(mask: list[list[int]]) -> tuple[float, float]:
        found = group_metrics(gathered, replace(batch, mask=torch.tensor(mask).bool()))
        return found["mask/extra_frac"], found["mask/dropped_frac"]

    assert wrong(batch.mask.int().tolist()) == (0.0, 0.0)
    assert wrong([[1, 1, 1], [1, 0, 0]]) == (1 / 3, 0.0)  # the forced one, of three to be learned
    assert wrong([[1, 0, 0], [1, 1, 0]]) == (1 / 3, 1 / 3)  # padding in, a drawn one out


def test_of_nothing_there_is_no_mean_and_the_sums_are_zero():
    group = Group(Task("0", "?"), (failed(0),))
    found = group_metrics(CollectedGroups((group,), ()), NOTHING)
    absent = {
        "reward/mean",
        "reward/std",
        "advantage/zero_frac",
        "groups/nonzero_std_frac",
    }  # it has no sibling
    assert {name for name, value in found.items() if isnan(value)} == absent
    assert (found["tokens/trained"], found["groups/trained"]) == (0.0, 0.0)
    assert isnan(mean([]))


def test_means_of_updates_go_by_name_and_the_mismatch_is_the_first_ones():
    first = {"loss": 1.0, "sampler_mismatch/logp_diff_mean": 0.25, "policy/kl_ref": 4.0}
    second = {"loss": 2.0, "sampler_mismatch/logp_diff_mean": 0.75}
    found = mean_over_updates([first, second])
    assert found == {"loss": 1.5, "sampler_mismatch/logp_diff_mean": 0.25, "policy/kl_ref": 4.0}
    assert mean_over_updates([{"loss": 0.0}, second]) == {
        "loss": 1.0
    }  # later ones say nothing of before
    assert mean_over_updates([]) == {}


def test_padding_of_the_batch_counts_nowhere():
    batch = collate([Group(Task("", "?"), (rollout(1.0, 4), rollout(0.0, 1)))], lambda _: None)
    assert batch.mask.shape == torch.Size([2, 4])
    found = numbers([rollout(1.0, 4), rollout(0.0, 1)])
    assert (found["tokens/trained"], found["advantage/zero_frac"]) == (5.0, 1 / 5)


def test_marks_stand_at_the_actions_and_nowhere_else():
    turns = (
        ("?", Action((1, 2), (0.0, 0.0))),
        ("And?", Action((3,), (0.0,), observation=(7, 8))),
    )
    marked = Rollout(turns, reward=1.0, step_values={"reward": (0.5, 0.0, 2.0)})
    other = Rollout(turns[:1], reward=0.0)
    batch = collate([Group(Task("", "?"), (marked, other))], lambda _: None)
    # two actions, two columns of the world's words, one action
    assert batch.signals["step/reward"].tolist() == [[0.5, 0.0, 0.0, 0.0, 2.0], [0.0] * 5]


def test_what_rollouts_share_was_sampled_once():
    trunk, mine, yours = (Action((1,) * n, (-1.0,) * n, rng_key=n) for n in (5, 2, 3))
    forced = Action((1,), (0.0,), sampled=False, in_loss=False)
    leaves = [Rollout((("?", trunk), ("", x), ("", forced)), 1.0) for x in (mine, yours)]
    assert numbers(leaves)["tokens/generated"] == 5 + 2 + 3
    assert numbers(leaves)["tokens/trained"] == (5 + 2) + (5 + 3)
