"""ARPO for GUI agents: condition, place and draw of a replayed success, and its loss."""

import json
from collections import Counter
from dataclasses import replace

import pytest

from grupo.algo.filters import keep_all
from grupo.algo.minibatches import Updates
from grupo.core.kept_rollouts import NewestAbove
from grupo.core.types import Group, Response, Rollout, Task
from grupo.method import Method
from grupo.methods.arpo_gui_replay import ReplaceFirstIfFailed, arpo_gui_replay
from grupo.rollouts.history import History
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch, perturb_logp
from grupo.training.update.collate import collate

METHOD = arpo_gui_replay()
TASK = Task("t", "?")


def rollout(value: float, key: int = 0, format_reward: float = 0.0) -> Rollout:
    """A rollout of one token, numbered by the key of its stream, whose task reward is `value`."""
    response = Response((5,), (-3.0,), text=f"{key}", rng_key=key)
    terms = {"env_reward": value, "format": format_reward}
    return Rollout((("?", response),), value + 0.5 * format_reward, terms)


def group(*values: float, stored: int = 1, first_key: int = 100) -> Group:
    """A group of rollouts, of a task with stored successes numbered from 1."""
    replays = tuple(rollout(1.0, key) for key in range(1, stored + 1))
    own = tuple(rollout(value, first_key + i) for i, value in enumerate(values))
    return Group(replace(TASK, replays=replays), own)


def replayed(*groups: Group) -> list[Group]:
    return list(METHOD.filter(groups))


def test_a_success_in_the_place_of_the_first_of_eight_failures_by_hand():
    (joined,) = replayed(group(*[0.0] * 8))
    assert joined.rewards == (1.0, *[0.0] * 7)
    assert [r.source for r in joined.rollouts] == ["replayed", *["policy"] * 7]
    assert [r.text for r in joined.rollouts[:2]] == ["1", "101"]  # 100 is replaced
    batch = collate([joined], len).with_advantage(METHOD.advantage)
    # mean 1/8, sum of squares 7/8, over n - 1 = 7: std 8 ** -0.5; (7/8) 8 ** 0.5, -(1/8) 8 ** 0.5
    expected = [2.4749, *[-0.3536] * 7]
    assert batch.advantage[:, 0].tolist() == pytest.approx(expected, abs=5e-5)
    plain = collate([group(*[0.0] * 8)], len).with_advantage(METHOD.advantage)
    assert not plain.advantage.any()


@pytest.mark.parametrize(
    ("values", "has_failed"),
    [
        ([0.0] * 8, True),
        ([0.19] * 8, True),
        ([0.2] * 8, False),  # the mean is not below 0.2
        ([0.0, 0.09] * 4, True),  # mean and std 0.045
        ([0.0, 0.1] * 4, False),  # the std over n is 0.05
        ([1.0, *[0.0] * 7], False),
        ([1.0] * 8, False),
        ([-1.0] * 8, True),
    ],
)
def test_groups_have_failed_below_both_bounds(values, has_failed):
    original = group(*values)
    (result,) = replayed(original)
    assert (result != original) is has_failed


def test_without_a_stored_success_nothing_changes():
    groups = [group(*[0.0] * 8, stored=0), Group(TASK, group(0.0).rollouts)]
    assert replayed(*groups) == groups
    lost = Group(replace(TASK, replays=(rollout(0.1),)), group(0.0, 0.0).rollouts)
    assert replayed(lost) == [lost]  # another component may keep failures


def test_the_condition_reads_the_task_reward_and_not_the_format():
    own = tuple(rollout(0.0, i, format_reward=-float(i % 2)) for i in range(8))
    (joined,) = replayed(Group(group().task, own))
    assert joined.rewards[:3] == (1.0, -0.5, 0.0)
    won = tuple(rollout(1.0, i, format_reward=-1.0) for i in range(8))
    assert replayed(Group(group().task, won))[0].rollouts == won


def test_the_first_rollout_is_replaced_before_the_history_keeps_the_groups_own():
    history = History()
    for step in range(3):
        values = [1.0, *[0.0] * 7] if step == 0 else [0.0] * 8
        drawn = Group(history.with_replays(TASK), group(*values, first_key=8 * step).rollouts)
        trained = replayed(drawn)
        history.append_groups(step, [drawn], METHOD.requires.replay_rules)
        later = map(str, range(8 * step + 1, 8 * step + 8))
        assert [r.text for r in trained[0].rollouts] == ["0", *later]
    assert [r.text for r in history.with_replays(TASK).replays] == ["0"]  # it is stored once


@pytest.mark.slow
def test_stored_successes_are_drawn_alike_and_by_the_names_of_streams():
    groups = [group(*[0.0] * 8, stored=8, first_key=1000 * i) for i in range(1, 801)]
    drawn = Counter(joined.rollouts[0].text for joined in replayed(*groups))
    assert set(drawn) == set("12345678")
    assert all(70 <= count <= 130 for count in drawn.values())  # 100 each; the deviation is 9
    assert replayed(*reversed(groups)) == replayed(*groups)[::-1]


def test_a_restored_history_replays_the_same_rollout():
    history = History()
    stored = Group(TASK, tuple(rollout(1.0, key) for key in range(12)))
    history.append_groups(0, [stored], METHOD.requires.replay_rules)
    data = json.loads(json.dumps(history.to_data()))
    restored = History.from_data(data, history.tensors())
    failed = [group(*[0.0] * 8, first_key=100 * i).rollouts for i in range(1, 6)]
    first, second = (
        replayed(*(Group(h.with_replays(TASK), rollouts) for rollouts in failed))
        for h in (history, restored)
    )
    assert first == second
    assert len({joined.rollouts[0].text for joined in first}) > 1


def test_the_ratio_of_a_replayed_success_begins_at_one():
    signals = {"logp@current": [[-1.0], [-1.0]], "off_context": [[1.0], [0.0]]}
    batch = make_batch([0, 0], logp=-3.0, advantage=[2.0, -1.0], signals=signals)
    at_start = perturb_logp(batch, [[2.0], [2.0]])  # the policy is that of logp@current
    assert METHOD.loss(at_start, batch).flatten().tolist() == pytest.approx([-2.0, 1.0])
    moved = perturb_logp(batch, [[3.0], [4.0]])  # ratios e and e^2, capped at 1.3 and at 3
    assert METHOD.loss(moved, batch).flatten().tolist() == pytest.approx([-2.6, 3.0])


def test_the_defaults_are_those_of_the_release():
    kept = NewestAbove(8, "env_reward", 0.1)
    assert METHOD.filter == ReplaceFirstIfFailed(kept, max_std=0.05, max_mean=0.2)
    assert METHOD.sampler == GroupSampler(8)
    assert METHOD.updates == Updates(minibatches=2)
    assert METHOD.advantage == Method().advantage
    assert METHOD.requires.all_signals == {"logp@current"}
    assert METHOD.requires.reward_terms == {"env_reward"}
    assert METHOD.replace(filter=keep_all).requires.replay_rules == ()
