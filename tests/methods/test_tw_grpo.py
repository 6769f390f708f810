import pytest

from grupo.algo.losses import Clip
from grupo.methods.tw_grpo import DisagreementWeighted, tw_grpo
from grupo.rollouts.samplers import GroupSampler
from grupo.testing.batches import make_batch


def test_high_divergence_positions_have_larger_weight():
    batch = make_batch(
        group=[0, 0], length=[3, 2], signals={"disagreement": [[0.0, 1.0, 4.0], [0.0, 1.0, 9.0]]}
    )
    # D = 0, 1, 4 of 4: w = 1, 1 + 0.7 / 4, 1.7, each over five tokens; the 9 is masked
    weight = DisagreementWeighted(1.7)(batch) * 5
    assert weight[0].tolist() == pytest.approx([1.0, 1.175, 1.7])
    assert weight[1].tolist() == pytest.approx([1.0, 1.175, 0.0])


def test_group_without_divergence_has_uniform_weights():
    batch = make_batch(group=[0, 0], length=[2, 2], signals={"disagreement": [[0.3, 0.3]] * 2})
    assert (DisagreementWeighted(1.4)(batch) * 4).tolist() == [[1.0, 1.0]] * 2


def test_weights_are_scaled_per_group():
    batch = make_batch(
        group=[0, 1], length=[2, 2], signals={"disagreement": [[0.0, 1.0], [5.0, 9.0]]}
    )
    assert (DisagreementWeighted(1.5)(batch) * 4).tolist() == [[1.0, 1.5]] * 2


def test_reward_is_sum_of_answer_and_format_terms():
    batch = make_batch(
        group=[0, 0], reward_terms={"correct": [0.5, 0.0], "format": [1.0, 1.0]}, reward=[7.0, 8.0]
    )
    # 1.5 and 1: +-1/4 over sqrt(1/8)
    assert tw_grpo().advantage(batch.reward, batch).tolist() == pytest.approx(
        [0.25 / 0.125**0.5, -0.25 / 0.125**0.5], rel=1e-5
    )


def test_defaults_match_release():
    assert tw_grpo().aggregation == DisagreementWeighted(1.7)
    assert tw_grpo().sampler == GroupSampler(8)
    assert tw_grpo().loss == Clip(0.2, 0.28)
