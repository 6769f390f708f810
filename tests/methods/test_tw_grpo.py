import pytest

from grupo.methods.tw_grpo import DisagreementWeighted, tw_grpo
from grupo.testing.batches import make_batch


def test_the_places_where_the_group_differs_most_weigh_most():
    batch = make_batch(
        group=[0, 0], length=[3, 2], signals={"disagreement": [[0.0, 1.0, 4.0], [0.0, 1.0, 9.0]]}
    )
    # D = 0, 1, 4 of 4: w = 1, 1 + 0.7 / 4, 1.7, each over five tokens; the 9 is masked
    weight = DisagreementWeighted(1.7)(batch) * 5
    assert weight[0].tolist() == pytest.approx([1.0, 1.175, 1.7])
    assert weight[1].tolist() == pytest.approx([1.0, 1.175, 0.0])


def test_a_group_that_agrees_everywhere_have_equal_weight():
    batch = make_batch(group=[0, 0], length=[2, 2], signals={"disagreement": [[0.3, 0.3]] * 2})
    assert (DisagreementWeighted(1.4)(batch) * 4).tolist() == [[1.0, 1.0]] * 2


def test_every_group_has_a_scale_of_its_own():
    batch = make_batch(
        group=[0, 1], length=[2, 2], signals={"disagreement": [[0.0, 1.0], [5.0, 9.0]]}
    )
    assert (DisagreementWeighted(1.5)(batch) * 4).tolist() == [[1.0, 1.5]] * 2


def test_the_reward_is_the_answer_s_and_the_form_s():
    batch = make_batch(
        group=[0, 0], reward_terms={"correct": [0.5, 0.0], "format": [1.0, 1.0]}, reward=[7.0, 8.0]
    )
    # 1.5 and 1: +-1/4 over sqrt(1/8)
    assert tw_grpo().advantage(batch.reward, batch).tolist() == pytest.approx(
        [0.25 / 0.125**0.5, -0.25 / 0.125**0.5], rel=1e-5
    )


def test_the_defaults_are_the_release_s():
    assert tw_grpo().aggregation == DisagreementWeighted(1.4)
    assert tw_grpo().sampler.group_size == 8
