import pytest
import torch

from grupo.algo.advantages import Center, MaskAdvantage, ScaleByStd, Whiten, chain
from grupo.algo.aggregation import sequence_mean, token_mean
from grupo.algo.data_source import is_demonstration, sampled_mask, unit_advantage
from grupo.algo.losses import (
    NLL,
    EnoughCorrect,
    MixSFT,
    PerSourceMean,
    Reinforce,
    ReverseKL,
    SelectBySource,
    SeparateDemos,
    StraightThroughKL,
    TooFewCorrect,
)
from grupo.testing.batches import make_batch, perturb_logp

OWN_OWN_THEIRS = {"sampled": [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]}


def slope(loss, batch, moves):
    pi = perturb_logp(batch, moves)
    return torch.autograd.grad(loss(pi, batch).sum(), pi.logp)[0].tolist()


def test_likelihood_is_minus_logp_whatever_the_reward():
    batch = make_batch(group=[0, 0], reward=[1.0, -1.0], logp=-2.0)
    pi = perturb_logp(batch, [[0.5], [0.0]])
    loss = NLL()(pi, batch)
    loss.sum().backward()
    assert loss.tolist() == [[1.5], [2.0]]
    assert pi.logp.grad is not None
    assert pi.logp.grad.tolist() == [[-1.0], [-1.0]]


def test_a_demonstration_is_a_rollout_that_drew_none_of_its_actions():
    seen = {"sampled": [[1.0, 1.0], [0.0, 1.0], [0.0, 0.0], [0.0, 1.0]]}
    batch = make_batch(
        [0] * 4, length=[2, 2, 2, 1], signals=seen
    )  # the last is masked after its first
    assert is_demonstration(batch).tolist() == [False, False, True, True]
    assert sampled_mask(batch)[1].tolist() == [False, True]


def test_a_rollout_of_two_rows_is_a_demonstration_only_if_both_are():
    batch = make_batch([0, 0], signals={"sampled": [[0.0], [1.0]]})
    together = batch.select_rows(torch.tensor([0, 1]))
    together.rollout.zero_()
    assert is_demonstration(together)[0].item() is False


def test_a_rollout_without_actions_demonstrates_nothing():
    batch = make_batch([0, 0], signals={"sampled": [[0.0], [0.0]]})
    batch.mask[0] = False
    assert is_demonstration(batch).tolist() == [False, True]


def test_blending_scales_each_source_by_its_share():
    batch = make_batch(
        [0, 0, 0], length=[1, 1, 2], advantage=[1.0, -1.0, 5.0], signals=OWN_OWN_THEIRS
    )
    gradient = slope(MixSFT(0.25, Reinforce(), NLL()), batch, [[0.0, 0.0]] * 3)
    assert [row[0] for row in gradient] == [-0.75, 0.75, -0.25]
    assert gradient[2][1] == -0.25


def test_sources_may_have_losses_of_their_own():
    batch = make_batch(
        [0, 0, 0], length=[1, 1, 2], advantage=[1.0, -1.0, 5.0], signals=OWN_OWN_THEIRS
    )
    gradient = slope(SelectBySource(Reinforce(), NLL()), batch, [[0.0, 0.0]] * 3)
    assert [row[0] for row in gradient] == [-1.0, 1.0, -1.0]


@pytest.mark.parametrize("mixed", [SelectBySource, lambda *losses: MixSFT(0.5, *losses)])
def test_a_mixture_says_what_its_losses_say(mixed):
    loss = mixed(ReverseKL(), StraightThroughKL())
    assert loss.required_signals == {"sampled", "reverse_kl@ref", "logp@ref"}
    assert loss.live == {"reverse_kl@ref"}
    assert loss.has_stop_gradient
    assert not loss.couples_rows


def test_own_rollouts_are_credited_as_if_there_were_no_demonstration():
    batch = make_batch([0, 0, 0], signals=OWN_OWN_THEIRS, length=[2, 2, 2])
    x = torch.tensor([1.0, 0.0, 9.0]).double()
    for credit in (Center(), chain(Center(), ScaleByStd()), Whiten()):
        alone = make_batch([0, 0], length=[2, 2])
        expected = alone.with_advantage(lambda _, b, c=credit: c(x[:2], b)).advantage
        credited = SeparateDemos(credit)(x, batch)
        assert credited[:2].flatten().tolist() == pytest.approx(expected.flatten().tolist())
        assert credited[2].tolist() == [1.0, 1.0]


def test_demonstrations_may_be_compared_with_own_rollouts():
    batch = make_batch([0, 0, 0], signals=OWN_OWN_THEIRS, length=[2, 2, 2])
    x = torch.tensor([1.0, 0.0, 5.0])
    assert SeparateDemos(Center(), demo_advantage=Center())(x, batch)[:, 0].tolist() == [
        0.5,
        -0.5,
        3.0,
    ]


def test_demonstrations_of_one_group_do_not_touch_another():
    seen = {"sampled": [[1.0], [0.0], [1.0], [1.0]]}
    batch = make_batch([0, 0, 1, 1], signals=seen)
    x = torch.tensor([3.0, 9.0, 1.0, 0.0])
    assert SeparateDemos(Center())(x, batch).flatten().tolist() == [0.0, 1.0, 0.5, -0.5]


def test_a_group_is_stuck_where_few_of_its_own_rollouts_are_right():
    right = {"correct": [0.0, 0.5, 1.0, 1.0, 0.0, 1.0]}
    seen = {"sampled": [[1.0], [1.0], [0.0], [1.0], [1.0], [1.0]]}
    batch = make_batch([0, 0, 0, 1, 1, 1], reward_terms=right, signals=seen)
    assert TooFewCorrect()(batch).tolist() == [True] * 3 + [False] * 3
    assert TooFewCorrect(min_correct=2)(batch).tolist() == [True] * 3 + [False] * 3
    assert TooFewCorrect(min_correct=3)(batch).tolist() == [True] * 6
    assert EnoughCorrect(min_correct=2)(batch).tolist() == [False] * 3 + [True] * 3
    assert TooFewCorrect(success_threshold=0.4)(batch).tolist() == [False] * 6


def test_imitation_may_depend_on_being_stuck():
    right = {"correct": [0.0, 1.0, 1.0, 1.0]}
    seen = {"sampled": [[1.0], [0.0], [1.0], [0.0]]}
    batch = make_batch([0, 0, 1, 1], reward_terms=right, signals=seen)
    credited = SeparateDemos(
        Center(), demo_advantage=MaskAdvantage(unit_advantage, TooFewCorrect())
    )(torch.zeros(4), batch)
    assert credited.flatten().tolist() == [0.0, 1.0, 0.0, 0.0]


def test_each_source_is_weighed_as_if_alone():
    batch = make_batch([0, 0, 0], length=[1, 2, 2], signals=OWN_OWN_THEIRS)
    assert PerSourceMean(sequence_mean)(batch).tolist() == [[0.5, 0.0], [0.25, 0.25], [0.5, 0.5]]
    third = pytest.approx(1 / 3)
    assert PerSourceMean(token_mean)(batch).tolist()[1] == [third, third]
    assert PerSourceMean(token_mean)(batch).tolist()[2] == [0.5, 0.5]


def test_without_one_source_the_other_is_weighed_as_usual():
    batch = make_batch([0, 0], length=[1, 2], signals={"sampled": [[1.0, 1.0], [1.0, 1.0]]})
    assert PerSourceMean(token_mean)(batch).tolist() == token_mean(batch).tolist()
    assert PerSourceMean(token_mean).required_signals == {"sampled"}
