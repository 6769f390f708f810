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
from grupo.core.requires import merged_requires
from grupo.testing.batches import make_batch, perturb_logp

TWO_SAMPLED_ONE_DEMO = {"sampled": [[1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]}


def gradient_of(loss, batch, deltas):
    pi = perturb_logp(batch, deltas)
    return torch.autograd.grad(loss(pi, batch).sum(), pi.logp)[0].tolist()


def test_nll_is_minus_logp_whatever_the_reward():
    batch = make_batch(group=[0, 0], reward=[1.0, -1.0], logp=-2.0)
    pi = perturb_logp(batch, [[0.5], [0.0]])
    loss = NLL()(pi, batch)
    loss.sum().backward()
    assert loss.tolist() == [[1.5], [2.0]]
    assert pi.logp.grad is not None
    assert pi.logp.grad.tolist() == [[-1.0], [-1.0]]


def test_rollout_without_sampled_actions_is_a_demonstration():
    signals = {"sampled": [[1.0, 1.0], [0.0, 1.0], [0.0, 0.0], [0.0, 1.0]]}
    batch = make_batch(
        [0] * 4, length=[2, 2, 2, 1], signals=signals
    )  # the second action of the last row is masked
    assert is_demonstration(batch).tolist() == [False, False, True, True]
    assert sampled_mask(batch)[1].tolist() == [False, True]


def test_rollout_of_two_rows_is_a_demonstration_only_if_both_rows_are():
    batch = make_batch([0, 0], signals={"sampled": [[0.0], [1.0]]})
    one_rollout = batch.select_rows(torch.tensor([0, 1]))
    one_rollout.rollout.zero_()
    assert is_demonstration(one_rollout)[0].item() is False


def test_rollout_without_actions_is_no_demonstration():
    batch = make_batch([0, 0], signals={"sampled": [[0.0], [0.0]]})
    batch.mask[0] = False
    assert is_demonstration(batch).tolist() == [False, True]


def test_mix_sft_scales_each_source_by_its_weight():
    batch = make_batch(
        [0, 0, 0], length=[1, 1, 2], advantage=[1.0, -1.0, 5.0], signals=TWO_SAMPLED_ONE_DEMO
    )
    gradient = gradient_of(MixSFT(0.25, Reinforce(), NLL()), batch, [[0.0, 0.0]] * 3)
    assert [row[0] for row in gradient] == [-0.75, 0.75, -0.25]
    assert gradient[2][1] == -0.25


def test_select_by_source_applies_one_loss_per_source():
    batch = make_batch(
        [0, 0, 0], length=[1, 1, 2], advantage=[1.0, -1.0, 5.0], signals=TWO_SAMPLED_ONE_DEMO
    )
    gradient = gradient_of(SelectBySource(Reinforce(), NLL()), batch, [[0.0, 0.0]] * 3)
    assert [row[0] for row in gradient] == [-1.0, 1.0, -1.0]


@pytest.mark.parametrize("mix", [SelectBySource, lambda *losses: MixSFT(0.5, *losses)])
def test_mixture_has_the_properties_of_its_losses(mix):
    loss = mix(ReverseKL(), StraightThroughKL())
    assert merged_requires(loss).all_signals == {"sampled", "reverse_kl@ref", "logp@ref"}
    assert merged_requires(loss).recomputed_signals == {"reverse_kl@ref"}
    assert merged_requires(loss).surrogate_gradient
    assert not merged_requires(loss).coupled_rows


def test_policy_rollouts_have_the_advantages_of_a_group_without_demonstrations():
    batch = make_batch([0, 0, 0], signals=TWO_SAMPLED_ONE_DEMO, length=[2, 2, 2])
    x = torch.tensor([1.0, 0.0, 9.0]).double()
    for estimator in (Center(), chain(Center(), ScaleByStd()), Whiten()):
        alone = make_batch([0, 0], length=[2, 2])
        expected = alone.with_advantage(lambda _, b, e=estimator: e(x[:2], b)).advantage
        advantage = SeparateDemos(estimator)(x, batch)
        assert advantage[:2].flatten().tolist() == pytest.approx(expected.flatten().tolist())
        assert advantage[2].tolist() == [1.0, 1.0]


def test_demonstrations_can_be_compared_with_policy_rollouts():
    batch = make_batch([0, 0, 0], signals=TWO_SAMPLED_ONE_DEMO, length=[2, 2, 2])
    x = torch.tensor([1.0, 0.0, 5.0])
    advantage = SeparateDemos(Center(), demo_advantage=Center())(x, batch)
    assert advantage[:, 0].tolist() == [0.5, -0.5, 3.0]


def test_demonstrations_do_not_affect_other_groups():
    signals = {"sampled": [[1.0], [0.0], [1.0], [1.0]]}
    batch = make_batch([0, 0, 1, 1], signals=signals)
    x = torch.tensor([3.0, 9.0, 1.0, 0.0])
    assert SeparateDemos(Center())(x, batch).flatten().tolist() == [0.0, 1.0, 0.5, -0.5]


def test_too_few_correct_counts_correct_policy_rollouts():
    correct = {"correct": [0.0, 0.5, 1.0, 1.0, 0.0, 1.0]}
    signals = {"sampled": [[1.0], [1.0], [0.0], [1.0], [1.0], [1.0]]}
    batch = make_batch([0, 0, 0, 1, 1, 1], reward_terms=correct, signals=signals)
    assert TooFewCorrect()(batch).tolist() == [True] * 3 + [False] * 3
    assert TooFewCorrect(min_correct=2)(batch).tolist() == [True] * 3 + [False] * 3
    assert TooFewCorrect(min_correct=3)(batch).tolist() == [True] * 6
    assert EnoughCorrect(min_correct=2)(batch).tolist() == [False] * 3 + [True] * 3
    assert TooFewCorrect(success_threshold=0.4)(batch).tolist() == [False] * 6


def test_imitation_only_in_groups_with_too_few_correct():
    correct = {"correct": [0.0, 1.0, 1.0, 1.0]}
    signals = {"sampled": [[1.0], [0.0], [1.0], [0.0]]}
    batch = make_batch([0, 0, 1, 1], reward_terms=correct, signals=signals)
    demo_advantage = MaskAdvantage(unit_advantage, TooFewCorrect())
    advantage = SeparateDemos(Center(), demo_advantage)(torch.zeros(4), batch)
    assert advantage.flatten().tolist() == [0.0, 1.0, 0.0, 0.0]


def test_per_source_mean_aggregates_each_source_alone():
    batch = make_batch([0, 0, 0], length=[1, 2, 2], signals=TWO_SAMPLED_ONE_DEMO)
    assert PerSourceMean(sequence_mean)(batch).tolist() == [[0.5, 0.0], [0.25, 0.25], [0.5, 0.5]]
    third = pytest.approx(1 / 3)
    assert PerSourceMean(token_mean)(batch).tolist()[1] == [third, third]
    assert PerSourceMean(token_mean)(batch).tolist()[2] == [0.5, 0.5]


def test_per_source_mean_of_one_source_is_the_plain_aggregation():
    batch = make_batch([0, 0], length=[1, 2], signals={"sampled": [[1.0, 1.0], [1.0, 1.0]]})
    assert PerSourceMean(token_mean)(batch).tolist() == token_mean(batch).tolist()
    assert merged_requires(PerSourceMean(token_mean)).all_signals == {"sampled"}
