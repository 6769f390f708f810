"""Rollouts that are given up on the way."""

import asyncio
import math
from dataclasses import replace

import pytest

from grupo.core.schedules import resolve_schedules
from grupo.core.types import PRUNED
from grupo.rollouts.samplers import BetaBins, EarlyPruning
from grupo.rollouts.samplers.pruning import BetaBin, balanced_subset
from grupo.training.collate import collate
from grupo.training.collect import drop_failed_rollouts
from grupo.training.metrics import _count_generated
from tests.helpers.scripted_actor import TASK, Once, Script, dice, texts

TOLD = BetaBins(
    (BetaBin(0.0, 8.0), BetaBin(8.0, 8.0))
)  # 1/10 of scores below a half, 9/10 of the others
SMALL = EarlyPruning(
    group_size=8,
    keep_fraction=0.5,
    prune_at=2,
    max_new_tokens_after=9,
    always_keep=1,
    posterior=TOLD,
)


class Foreseen(Script):
    """A script of whose rollouts those that begin with a letter before n look well."""

    async def predict_head(self, rollout, helper):
        assert helper == "quality"
        return 2.0 if rollout.text[0] < "n" else -2.0


def beginning(letters: str):
    """Rollout after rollout begins with the next letter, and says it five times."""
    coming = iter(letters)

    def says(read, key):
        said = read[1:]
        return "." if len(said) == 5 else said[0] if said else next(coming)

    return Foreseen(says, [])


def sample(sampler, act, task=TASK):
    return asyncio.run(sampler(task, Once(), act))


def test_a_bin_holds_what_scores_have_come_to():
    assert BetaBin(3.0, 4.0).posterior_mean == pytest.approx(4 / 6)
    assert BetaBin(0.0, 0.0).posterior_mean == 0.5
    assert (TOLD(0.0), TOLD(0.49), TOLD(0.5), TOLD(1.0)) == (0.1, 0.1, 0.9, 0.9)


def test_who_is_kept_is_as_often_right_as_wrong():
    p = dict(enumerate([0.9, 0.8, 0.7, 0.2, 0.15, 0.1]))
    kept = balanced_subset(p, 4)
    assert kept == {0, 1, 4, 5}
    assert sum(p[i] for i in kept) == pytest.approx(1.95)  # the best four would be 2.6, not 2
    assert balanced_subset(dict(enumerate([0.3, 0.2, 0.1])), 2) == {0, 1}  # 0.5 is nearest to 1
    assert balanced_subset(p, 6) == set(p)
    assert balanced_subset({}, 0) == set()


def test_half_of_those_that_come_so_far_are_given_up():
    group = sample(SMALL, beginning("azbcydef"))
    # a goes on in any case; of b to f, at 0.9 each, and y, z, at 0.1, four are kept: two of each
    assert texts(group) == [*(x * 5 + "." for x in "azyef"), "bb", "cc", "dd"]
    assert [r.error for r in group.rollouts] == [""] * 5 + [PRUNED] * 3
    assert [r.reward for r in group.rollouts[:5]] == [6.0] * 5
    assert all(math.isnan(r.reward) for r in group.rollouts[5:])
    assert drop_failed_rollouts(group).rollouts == group.rollouts[:5]


def test_who_ended_before_is_not_given_up_and_has_no_score():
    short = {"a": 2, "z": 2}
    coming = iter("azbcyxde")

    def says(read, key):
        said = read[1:]
        over = len(said) + 1 == short.get(said[:1], 6)
        return next(coming) if not said else "." if over else said[0]

    group = sample(SMALL, Foreseen(says, []))
    # a and z end with their second letter; of the other six three go on
    assert texts(group)[:2] == ["a.", "z."]
    assert [r.reward_terms["quality"] for r in group.rollouts[:2]] == [-1.0, -1.0]
    assert [r.error for r in group.rollouts] == [""] * 5 + [PRUNED] * 3


def test_scores_are_told_and_the_first_action_after_them_is_marked():
    group = sample(SMALL, beginning("azbcydef"))
    high, low = 1 / (1 + math.exp(-2)), 1 / (1 + math.exp(2))
    assert [r.reward_terms["quality"] for r in group.rollouts[:3]] == pytest.approx(
        [high, low, low]
    )
    batch = collate([drop_failed_rollouts(group)], lambda rows: {})
    assert batch.signals["step/score_position"][0].tolist() == [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    assert batch.mask.all()


def test_what_was_given_up_was_paid_for_once():
    act = beginning("azbcydef")
    group = sample(SMALL, act)
    assert _count_generated(group) == sum(len(said) for _, said in act.log) == 8 * 2 + 5 * 4


def test_a_share_of_one_gives_nobody_up():
    group = sample(replace(SMALL, keep_fraction=1.0), beginning("azbcydef"))
    assert texts(group) == [x * 5 + "." for x in "azbcydef"]


def test_streams_do_not_depend_on_who_is_given_up():
    def drawn(sampler):
        act = Foreseen(dice, []).fork(1)
        return {r.text: r for r in sample(sampler, act).rollouts if not r.error}

    some, every = drawn(SMALL), drawn(replace(SMALL, keep_fraction=1.0))
    assert len(every) == 8 > len(some)
    assert some.items() <= every.items()


def test_a_posterior_follows_what_was_seen_and_forgets():
    posterior = BetaBins.from_history(2, decay=0.5)
    assert repr(posterior) == "BetaBins.from_history(2, 0.5)"
    measured = {
        "value_bins/correct/0": [1.0, 0.0],
        "value_bins/count/0": [4.0, 0.0],
        "value_bins/correct/1": [0.0, 3.0],
        "value_bins/count/1": [0.0, 3.0],
    }
    now = resolve_schedules(posterior, 0.5, measured)
    assert (now(0.2), now(0.8)) == ((0.5 + 1) / (2 + 2), (3 + 1) / (3 + 2))
    assert (resolve_schedules(posterior, 0.0)(0.2), resolve_schedules(posterior, 0.0)(0.8)) == (
        0.5,
        0.5,
    )
