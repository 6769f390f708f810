"""From a batch to gradients: by hand, on a policy whose log-probabilities are its parameters."""

from collections.abc import Collection
from dataclasses import replace
from math import exp

import pytest
import torch
from torch import Tensor, nn

from grupo.algo.aggregation import sequence_mean, token_mean
from grupo.algo.losses import KL, NLL, Clip, Entropy, Loss, Reinforce
from grupo.core.batch import Batch, PerAction, SignalDict, Signals
from grupo.core.component import component
from grupo.core.errors import MissingSignalError
from grupo.method import Method
from grupo.testing.batches import make_batch
from grupo.training.update import accumulate_gradients, add_signals, evaluate_all


class Plain:
    """Says of every action the number it keeps for it, and twice that as its entropy."""

    def __init__(self, numbers: list[list[float]], at_a_time: int = 1_000) -> None:
        self.numbers = nn.Parameter(torch.tensor(numbers, dtype=torch.float64))
        self.rows_per_microbatch = at_a_time
        self.asked: list[tuple[int, tuple[str, ...]]] = []  # rows, and which signals

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        self.asked.append((len(batch.mask), tuple(sorted(names))))
        x = self.numbers[batch.inputs]
        return Signals({"logp": x, "entropy": 2 * x})

    def micro(self, batch: Batch):
        yield from torch.arange(len(batch.mask)).split(self.rows_per_microbatch)


def rows(lengths: list[int], advantage: list[float] | None = None) -> Batch:
    """One group, a row each, whose policy's numbers lie in the same order."""
    count = len(lengths)
    batch = make_batch([0] * count, length=lengths, advantage=advantage or [1.0] * count)
    own = {"sampled": batch.mask.double(), "off_context": 0.0 * batch.mask}
    sampled = {**own, "logp@sampler": batch.old_logp}
    return replace(batch, inputs=torch.arange(count), signals=SignalDict(sampled))


def learned(policy: Plain) -> Tensor:
    assert policy.numbers.grad is not None
    return policy.numbers.grad


@component
class FromMean(Loss):
    """(logp - its mean over the rows)^2: what one row costs depends on the others."""

    @property
    def couples_rows(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return (pi.logp - pi.logp.mean(0)) ** 2


@component
class EntropyTimesMean(Loss):
    """H x the mean of H over the rows."""

    @property
    def required_signals(self) -> frozenset[str]:
        return frozenset({"entropy"})

    @property
    def couples_rows(self) -> bool:
        return True

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return pi.entropy * pi.entropy.mean(0)


@pytest.mark.parametrize("at_a_time", [1, 2, 3])
def test_the_gradient_is_that_of_the_weighted_sum_whatever_the_micro_batches(at_a_time):
    policy = Plain([[-1.0, -2.0], [-3.0, 9.0], [-1.0, -1.0]], at_a_time)
    method = Method(loss=NLL(), aggregation=token_mean)
    seen = accumulate_gradients(policy, method, rows([2, 1, 2]))
    # -log pi, a fifth each: (1 + 2 + 3 + 1 + 1) / 5; the 9 is padding
    assert seen["loss"] == pytest.approx(8 / 5)
    expected = [[-0.2, -0.2], [-0.2, 0.0], [-0.2, -0.2]]
    assert torch.allclose(learned(policy), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("at_a_time", [1, 3])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_push_is_a_cosine_with_the_advantages_whatever_the_micro_batches(at_a_time, sign):
    policy = Plain([[-1.0, -2.0], [-3.0, 9.0]], at_a_time)
    method = Method(loss=sign * Reinforce(), aggregation=sequence_mean)
    seen = accumulate_gradients(policy, method, rows([2, 1], advantage=[1.0, -1.0]))
    # A = 1, 1, -1, weights 1/4, 1/4, 1/2: (1/4 + 1/4 + 1/2) / sqrt((1/16 + 1/16 + 1/4) x 3)
    assert seen["update/advantage_alignment"] == pytest.approx(sign / (9 / 8) ** 0.5)


def test_where_nothing_is_pushed_there_is_no_cosine():
    policy = Plain([[-1.0], [-2.0]])
    seen = accumulate_gradients(policy, Method(loss=0.0 * Reinforce()), rows([1, 1]))
    assert "update/advantage_alignment" not in seen


def test_the_action_at_which_sampler_and_trainer_differ_most_is_named():
    policy = Plain([[-1.0, -2.0], [-3.0, -7.0], [-1.0, -1.0]], 1)
    batch = rows([2, 2, 2])
    token = torch.tensor([[5.0, 6.0], [7.0, 8.0], [9.0, 3.0]])
    off = policy.numbers.detach() + torch.tensor([[0.1, 0.0], [0.0, -0.5], [0.0, 0.2]])
    batch = batch.with_signals({"logp@sampler": off, "step/item": token})
    seen = accumulate_gradients(policy, Method(loss=Reinforce()), batch)
    assert seen["sampler_mismatch/logp_diff_max"] == pytest.approx(0.5)
    where = (
        seen["sampler_mismatch/max_rollout"],
        seen["sampler_mismatch/max_action"],
        seen["sampler_mismatch/max_token"],
    )
    assert where == (1.0, 1.0, 8.0)


def test_gradients_of_several_batches_add_up():
    policy = Plain([[-1.0], [-2.0]])
    for _ in range(2):
        accumulate_gradients(policy, Method(loss=NLL(), aggregation=sequence_mean), rows([1, 1]))
    assert learned(policy).flatten().tolist() == [-1.0, -1.0]  # twice -1/2


@pytest.mark.parametrize("at_a_time", [1, 2])
def test_a_loss_that_couples_rows_has_the_gradient_of_the_whole_batch(at_a_time):
    policy = Plain([[-1.0], [-4.0]], at_a_time)
    seen = accumulate_gradients(
        policy, Method(loss=FromMean(), aggregation=token_mean), rows([1, 1])
    )
    # ((a - m)^2 + (b - m)^2) / 2 = (a - b)^2 / 4 = 9 / 4, of slope (a - b) / 2 = 3 / 2
    assert seen["loss"] == pytest.approx(9 / 4)
    assert learned(policy).flatten().tolist() == [1.5, -1.5]


def test_two_passes_carry_the_gradient_of_every_signal_the_loss_reads():
    policy = Plain([[1.0], [3.0]], 1)
    method = Method(loss=EntropyTimesMean() + NLL(), aggregation=token_mean)
    seen = accumulate_gradients(policy, method, rows([1, 1]))
    # H = 2 x: sum of H times its mean, halved, is (2 a + 2 b)^2 / 4 = (a + b)^2 = 16; -logp: -2
    assert seen["loss"] == pytest.approx(16 - 2)
    assert learned(policy).flatten().tolist() == [2 * 4 - 0.5] * 2


def test_two_passes_evaluate_the_policy_twice_and_one_pass_once():
    once, twice = (Plain([[1.0], [3.0]], 1) for _ in range(2))
    accumulate_gradients(once, Method(loss=NLL()), rows([1, 1]))
    accumulate_gradients(twice, Method(loss=FromMean()), rows([1, 1]))
    assert [count for count, _ in once.asked] == [1, 1]
    assert [count for count, _ in twice.asked] == [1, 1, 1, 1]


def test_the_entropy_that_is_seen_is_the_mean_over_actions():
    policy = Plain([[-1.0, -2.0], [-3.0, 9.0]])
    seen = accumulate_gradients(policy, Method(loss=NLL()), rows([2, 1]))
    assert seen["entropy"] == pytest.approx(2 * (-1 - 2 - 3) / 3)


def test_the_mismatch_is_between_trainer_and_sampler():
    policy = Plain([[-0.9, -1.3], [-1.0, 5.0]])  # the sampler said -1 everywhere
    seen = accumulate_gradients(policy, Method(loss=Reinforce()), rows([2, 1]))
    assert seen["sampler_mismatch/logp_diff_mean"] == pytest.approx((0.1 + 0.3 + 0.0) / 3)
    assert seen["sampler_mismatch/logp_diff_max"] == pytest.approx(0.3)
    kl = (exp(0.1) - 0.1 - 1) + (exp(-0.3) + 0.3 - 1)  # e^d - d - 1, d = trainer - sampler
    assert seen["sampler_mismatch/kl"] == pytest.approx(kl / 3)


def test_the_mismatch_is_seen_before_anything_is_clipped():
    batch = rows([2, 1], advantage=[1.0, -1.0])
    numbers = [[0.0, -3.0], [2.0, 0.0]]  # every ratio outside of the clip
    clipped = accumulate_gradients(Plain(numbers), Method(loss=Clip(0.1, 0.1)), batch)
    free = accumulate_gradients(Plain(numbers), Method(loss=Reinforce()), batch)
    assert (
        clipped["sampler_mismatch/logp_diff_max"] == free["sampler_mismatch/logp_diff_max"] == 3.0
    )
    assert (
        clipped["sampler_mismatch/logp_diff_mean"]
        == free["sampler_mismatch/logp_diff_mean"]
        == pytest.approx((1 + 2 + 3) / 3)
    )


def test_the_mismatch_knows_only_what_was_sampled():
    batch = rows([1, 1])
    recited = batch.with_signals({"sampled": torch.tensor([[1.0], [0.0]])})
    seen = accumulate_gradients(Plain([[-0.5], [7.0]]), Method(loss=NLL()), recited)
    assert (seen["sampler_mismatch/logp_diff_mean"], seen["sampler_mismatch/logp_diff_max"]) == (
        0.5,
        0.5,
    )


def test_what_a_loss_reports_is_averaged_over_actions():
    batch = rows([2, 1], advantage=[1.0, -1.0])
    numbers = [[0.0, -1.0], [-3.0, 0.0]]  # ratios e and 1 of the good row, e^-2 of the bad one
    seen = accumulate_gradients(Plain(numbers, 1), Method(loss=Clip(0.2, 0.2)), batch)
    assert (seen["clip_frac/high"], seen["clip_frac/low"]) == (
        pytest.approx(1 / 3),
        pytest.approx(1 / 3),
    )


def test_observe_measures_the_policy_and_others_by_name():
    policy, other = Plain([[-1.0, 0.0], [-2.0, 0.0]], 1), Plain([[-5.0, -6.0], [-7.0, -8.0]])
    batch = add_signals(
        policy, {"ref": other}, rows([2, 2]), {"entropy", "logp@ref", "entropy@ref"}
    )
    assert batch.signals["entropy"].tolist() == [[-2.0, 0.0], [-4.0, 0.0]]
    assert batch.signals["logp@ref"].tolist() == [[-5.0, -6.0], [-7.0, -8.0]]
    assert batch.signals["entropy@ref"].tolist() == [[-10.0, -12.0], [-14.0, -16.0]]
    assert [count for count, _ in other.asked] == [1] * 4  # in the policy's micro-batches
    assert not batch.signals["entropy"].requires_grad


def test_observe_leaves_alone_what_was_measured_before():
    policy, measured = Plain([[-1.0]]), {"entropy", "logp@sampler"}
    batch = rows([1]).with_signals({"entropy": torch.tensor([[0.25]])})
    assert add_signals(policy, {}, batch, measured).signals["entropy"].item() == 0.25
    assert policy.asked == []


def test_a_term_on_a_reference_reads_what_was_observed():
    policy, other = Plain([[-1.0]]), Plain([[-2.0]])
    method = Method(loss=KL(), aggregation=token_mean)
    with pytest.raises(MissingSignalError, match="'logp@ref' was not measured"):
        accumulate_gradients(policy, method, rows([1]))
    batch = add_signals(policy, {"ref": other}, rows([1]), method.required_signals)
    seen = accumulate_gradients(policy, method, batch)
    assert seen["loss"] == seen["policy/kl_ref"] == pytest.approx(exp(-1) + 1 - 1)  # d = -2 - (-1)


def test_signals_of_the_whole_batch_are_the_rows_signals():
    policy = Plain([[-1.0, -2.0], [-3.0, -4.0], [-5.0, -6.0]], 2)
    said = evaluate_all(policy, policy, rows([2, 2, 2]), ["entropy"])
    assert said["entropy"].tolist() == (2 * policy.numbers).tolist()


def test_a_loss_of_the_entropy_is_asked_for_it():
    policy = Plain([[1.0], [2.0]])
    accumulate_gradients(
        policy, Method(loss=NLL() + (-0.5) * Entropy(), aggregation=token_mean), rows([1, 1])
    )
    assert policy.asked == [(2, ("entropy", "logp"))]
    assert learned(policy).flatten().tolist() == [-0.5 - 0.5] * 2  # -1/2 of logp, -0.5 x 2 / 2
