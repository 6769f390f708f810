"""HGPO: hand-computed advantages between and within thinking modes."""

import asyncio
from math import sqrt

import pytest

from grupo.methods.hgpo_hybrid import HybridModeAdvantage, hgpo_hybrid
from grupo.testing.batches import make_batch
from grupo.training.update.collate import collate
from grupo.util.errors import ConfigError
from tests.helpers.scripted_actor import TASK, Once, script

THINK, NO = 1.0, 0.0


def mode_batch(reward, mode=(THINK, THINK, NO, NO)):
    return make_batch(
        group=[0] * len(reward),
        reward=reward,
        length=[2] * len(reward),
        reward_terms={"mode": list(mode)},
        signals={"step/forced": [[1.0, 0.0]] * len(reward)},
    )


def test_mode_advantage_is_added_at_tag_and_quality_advantage_at_every_action():
    batch = mode_batch([1.0, 0.0, 0.9, 0.5])
    # means 0.5 and 0.7 + 0.2: not thinking wins, r_inter = [0, 0, 1, 1]; r_intra = [1, 0, 1, 0]
    A = 0.5 / (sqrt(1 / 3) + 1e-6)
    assert hgpo_hybrid().advantage(batch.reward, batch).tolist() == [
        pytest.approx([A - A, A]),
        pytest.approx([-A - A, -A]),
        pytest.approx([A + A, A]),
        pytest.approx([-A + A, -A]),
    ]


def test_thinking_mode_must_win_by_margin():
    def thinking_wins(*reward):
        batch = mode_batch(reward)
        return (
            HybridModeAdvantage(1.0, 0.2)(batch.reward, batch)[0] @ batch.reward.new_tensor([1, -1])
        ) > 0

    assert not thinking_wins(0.0, 0.1, 0.0, 0.0)  # 0.05 is not more than 0 + 0.2
    assert thinking_wins(0.0, 0.6, 0.0, 0.0)  # 0.3 is


def test_tied_modes_share_reward():
    batch = mode_batch([1.0, 0.0, 1.0, 1.0])
    # r_intra = [1, 0, 1/2, 1/2]: mean 1/2, std sqrt((1/4 + 1/4) / 3)
    A = 0.5 / (sqrt(1 / 6) + 1e-6)
    assert hgpo_hybrid().advantage(batch.reward, batch)[:, 1].tolist() == pytest.approx(
        [A, -A, 0, 0]
    )


def test_single_mode_group_has_no_mode_advantage():
    batch = mode_batch([1.0, 0.0], mode=(THINK, THINK))
    A = 0.5 / (sqrt(0.5) + 1e-6)
    first, last = hgpo_hybrid().advantage(batch.reward, batch).unbind(1)
    assert first.tolist() == last.tolist() == pytest.approx([A, -A])


def test_loss_is_mean_over_answers_of_sum_over_tokens():
    weight = hgpo_hybrid().aggregation(make_batch(group=[0, 0], length=[1, 3]))
    assert weight.tolist() == [[0.5, 0.0, 0.0], [0.5] * 3]  # 1 / N, N = 2 answers


def test_defaults_match_paper():
    method = hgpo_hybrid()
    assert method.sampler.group_size == 4
    assert method.advantage == HybridModeAdvantage(mode_coef=1.0, margin=0.2)
    assert method.loss.left.clip_low == method.loss.left.clip_high == 0.5
    assert method.loss.right.factor == 0.001


def test_half_a_group_is_forced_into_each_mode_and_its_whole_tag_is_trained():
    method = hgpo_hybrid(think_tag="ab", no_think_tag="c")
    env = Once(lambda text: text == "ab.")
    group = asyncio.run(method.sampler(TASK, env, script(lambda context, key: ".")))
    assert [rollout.text for rollout in group.rollouts] == ["ab.", "ab.", "c.", "c."]
    batch = collate([group], lambda rows: {}).with_advantage(method.advantage)
    # thinking wins by 1: r_inter = [1, 1, 0, 0]; all are the best of their mode: r_intra is 1/2
    A = 0.5 / (sqrt(1 / 3) + 1e-6)
    assert batch.advantage.tolist() == [
        pytest.approx([A, A, 0.0]),
        pytest.approx([A, A, 0.0]),
        pytest.approx([-A, 0.0, 0.0]),
        pytest.approx([-A, 0.0, 0.0]),
    ]
    assert batch.old_logp[2].tolist() == [-2.0, -1.0, 0.0]  # scored, generated, padding


@pytest.mark.parametrize("tags", [("", "b"), ("a", ""), ("a", "a")])
def test_tags_that_do_not_differ_are_errors(tags):
    with pytest.raises(ConfigError, match=r"hgpo_hybrid.no_think_tag: .* two different tags"):
        hgpo_hybrid(4, 1.0, 0.2, *tags)


def test_an_odd_group_cannot_be_halved():
    with pytest.raises(ConfigError, match=r"SplitGroup.group_size: 5. Allowed: a multiple of 2"):
        hgpo_hybrid(5)
