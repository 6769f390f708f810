"""Gradients and metrics of a batch, by hand, with log-probs that are parameters themselves."""

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
from grupo.core.requires import Requires
from grupo.distributed.base import Ranks
from grupo.method import Method
from grupo.testing.batches import make_batch
from grupo.testing.thread_ranks import run_ranks
from grupo.training.update.gradients import _microbatches_with_factors, accumulate_gradients
from grupo.training.update.signals import add_signals, signals_of_all_rows
from grupo.util.errors import MissingSignalError


class ParameterPolicy:
    """A policy whose log-probs are its parameters, and whose entropies are twice these."""

    def __init__(self, numbers: list[list[float]], rows_per_microbatch: int = 1_000) -> None:
        self.numbers = nn.Parameter(torch.tensor(numbers, dtype=torch.float64))
        self.rows_per_microbatch = rows_per_microbatch
        self.calls: list[tuple[int, tuple[str, ...]]] = []  # number of rows, names of signals

    def signals(self, batch: Batch, names: Collection[str] = ("logp",)) -> Signals:
        self.calls.append((len(batch.mask), tuple(sorted(names))))
        x = self.numbers[batch.inputs]
        return Signals({"logp": x, "entropy": 2 * x})

    is_sharded = False

    def microbatches(self, batch: Batch):
        yield from torch.arange(len(batch.mask)).split(self.rows_per_microbatch)


def batch_of(lengths: list[int], advantage: list[float] | None = None) -> Batch:
    """A group with a row per rollout; row i is row i of the policy's parameters."""
    count = len(lengths)
    batch = make_batch([0] * count, length=lengths, advantage=advantage or [1.0] * count)
    signals = {
        "sampled": batch.mask.double(),
        "off_context": 0.0 * batch.mask,
        "logp@sampler": batch.old_logp,
    }
    return replace(batch, inputs=torch.arange(count), signals=SignalDict(signals))


def gradient_of(policy: ParameterPolicy) -> Tensor:
    assert policy.numbers.grad is not None
    return policy.numbers.grad


@component
class SquaredDeviation(Loss):
    """(logp - its mean over the rows)^2, which couples rows."""

    requires = Requires(coupled_rows=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return (pi.logp - pi.logp.mean(0)) ** 2


@component
class EntropyTimesMean(Loss):
    """H times the mean of H over the rows, which couples rows."""

    requires = Requires(recomputed_signals=("entropy",), coupled_rows=True)

    def __call__(self, pi: Signals, batch: Batch) -> PerAction:
        return pi.entropy * pi.entropy.mean(0)


@pytest.mark.parametrize("rows_per_microbatch", [1, 2, 3])
def test_the_gradient_is_that_of_the_weighted_sum_for_any_microbatches(rows_per_microbatch):
    policy = ParameterPolicy([[-1.0, -2.0], [-3.0, 9.0], [-1.0, -1.0]], rows_per_microbatch)
    method = Method(loss=NLL(), aggregation=token_mean)
    metrics = accumulate_gradients(policy, method, batch_of([2, 1, 2]))
    # -log pi, a fifth each: (1 + 2 + 3 + 1 + 1) / 5; the 9 is padding
    assert metrics["loss"] == pytest.approx(8 / 5)
    expected = [[-0.2, -0.2], [-0.2, 0.0], [-0.2, -0.2]]
    assert torch.allclose(gradient_of(policy), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("rows_per_microbatch", [1, 3])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_advantage_alignment_is_a_cosine_for_any_microbatches(rows_per_microbatch, sign):
    policy = ParameterPolicy([[-1.0, -2.0], [-3.0, 9.0]], rows_per_microbatch)
    method = Method(loss=sign * Reinforce(), aggregation=sequence_mean)
    metrics = accumulate_gradients(policy, method, batch_of([2, 1], advantage=[1.0, -1.0]))
    # A = 1, 1, -1, weights 1/4, 1/4, 1/2: (1/4 + 1/4 + 1/2) / sqrt((1/16 + 1/16 + 1/4) x 3)
    assert metrics["update/advantage_alignment"] == pytest.approx(sign / (9 / 8) ** 0.5)


def test_a_zero_gradient_has_no_advantage_alignment():
    policy = ParameterPolicy([[-1.0], [-2.0]])
    metrics = accumulate_gradients(policy, Method(loss=0.0 * Reinforce()), batch_of([1, 1]))
    assert "update/advantage_alignment" not in metrics


def test_rows_without_gradient_count_in_metrics_only_if_all_rows_are_measured():
    policy = ParameterPolicy([[-1.0, -2.0], [-3.0, 9.0]])
    method = Method(loss=Reinforce(), aggregation=sequence_mean)
    batch = batch_of([2, 1], advantage=[0.0, 0.0])
    assert "policy/entropy" not in accumulate_gradients(policy, method, batch)
    metrics = accumulate_gradients(policy, method, batch, include_rows_without_gradient=True)
    assert metrics["policy/entropy"] == pytest.approx(2 * (-1 - 2 - 3) / 3)  # of the 3 tokens
    assert metrics["tokens/backpropagated"] == 3
    assert (gradient_of(policy) == 0).all()


def test_metrics_locate_the_largest_sampler_mismatch():
    policy = ParameterPolicy([[-1.0, -2.0], [-3.0, -7.0], [-1.0, -1.0]], 1)
    batch = batch_of([2, 2, 2])
    token = torch.tensor([[5.0, 6.0], [7.0, 8.0], [9.0, 3.0]])
    logp_sampler = policy.numbers.detach() + torch.tensor([[0.1, 0.0], [0.0, -0.5], [0.0, 0.2]])
    batch = batch.with_signals({"logp@sampler": logp_sampler, "step/item": token})
    metrics = accumulate_gradients(policy, Method(loss=Reinforce()), batch)
    assert metrics["sampler_mismatch/logp_diff_max"] == pytest.approx(0.5)
    location = (
        metrics["sampler_mismatch/max_rollout"],
        metrics["sampler_mismatch/max_action"],
        metrics["sampler_mismatch/max_token"],
    )
    assert location == (1.0, 1.0, 8.0)


def test_gradients_of_several_batches_add_up():
    policy = ParameterPolicy([[-1.0], [-2.0]])
    for _ in range(2):
        accumulate_gradients(
            policy, Method(loss=NLL(), aggregation=sequence_mean), batch_of([1, 1])
        )
    assert gradient_of(policy).flatten().tolist() == [-1.0, -1.0]  # twice -1/2


@pytest.mark.parametrize("rows_per_microbatch", [1, 2])
def test_a_loss_that_couples_rows_has_the_gradient_of_the_whole_batch(rows_per_microbatch):
    policy = ParameterPolicy([[-1.0], [-4.0]], rows_per_microbatch)
    metrics = accumulate_gradients(
        policy, Method(loss=SquaredDeviation(), aggregation=token_mean), batch_of([1, 1])
    )
    # ((a - m)^2 + (b - m)^2) / 2 = (a - b)^2 / 4 = 9 / 4, of slope (a - b) / 2 = 3 / 2
    assert metrics["loss"] == pytest.approx(9 / 4)
    assert gradient_of(policy).flatten().tolist() == [1.5, -1.5]


def test_two_passes_carry_the_gradient_of_every_signal_the_loss_reads():
    policy = ParameterPolicy([[1.0], [3.0]], 1)
    method = Method(loss=EntropyTimesMean() + NLL(), aggregation=token_mean)
    metrics = accumulate_gradients(policy, method, batch_of([1, 1]))
    # H = 2 x: sum of H times its mean, halved, is (2 a + 2 b)^2 / 4 = (a + b)^2 = 16; -logp: -2
    assert metrics["loss"] == pytest.approx(16 - 2)
    assert gradient_of(policy).flatten().tolist() == [2 * 4 - 0.5] * 2


def test_two_passes_evaluate_the_policy_twice_and_one_pass_once():
    one_pass, two_passes = (ParameterPolicy([[1.0], [3.0]], 1) for _ in range(2))
    accumulate_gradients(one_pass, Method(loss=NLL()), batch_of([1, 1]))
    accumulate_gradients(two_passes, Method(loss=SquaredDeviation()), batch_of([1, 1]))
    assert [count for count, _ in one_pass.calls] == [1, 1]
    assert [count for count, _ in two_passes.calls] == [1, 1, 1, 1]


def test_the_entropy_metric_is_the_mean_over_actions():
    policy = ParameterPolicy([[-1.0, -2.0], [-3.0, 9.0]])
    metrics = accumulate_gradients(policy, Method(loss=NLL()), batch_of([2, 1]))
    assert metrics["policy/entropy"] == pytest.approx(2 * (-1 - 2 - 3) / 3)


def test_the_mismatch_is_that_of_trainer_and_sampler():
    policy = ParameterPolicy([[-0.9, -1.3], [-1.0, 5.0]])  # the sampler's log-probs are -1
    metrics = accumulate_gradients(policy, Method(loss=Reinforce()), batch_of([2, 1]))
    assert metrics["sampler_mismatch/logp_diff_mean"] == pytest.approx((0.1 + 0.3 + 0.0) / 3)
    assert metrics["sampler_mismatch/logp_diff_max"] == pytest.approx(0.3)
    kl = (exp(0.1) - 0.1 - 1) + (exp(-0.3) + 0.3 - 1)  # e^d - d - 1, d = trainer - sampler
    assert metrics["sampler_mismatch/kl"] == pytest.approx(kl / 3)


def test_clipping_does_not_change_the_mismatch():
    batch = batch_of([2, 1], advantage=[1.0, -1.0])
    numbers = [[0.0, -3.0], [2.0, 0.0]]  # every ratio is outside the clip range
    clipped = accumulate_gradients(ParameterPolicy(numbers), Method(loss=Clip(0.1, 0.1)), batch)
    unclipped = accumulate_gradients(ParameterPolicy(numbers), Method(loss=Reinforce()), batch)
    assert (
        clipped["sampler_mismatch/logp_diff_max"]
        == unclipped["sampler_mismatch/logp_diff_max"]
        == 3.0
    )
    assert (
        clipped["sampler_mismatch/logp_diff_mean"]
        == unclipped["sampler_mismatch/logp_diff_mean"]
        == pytest.approx((1 + 2 + 3) / 3)
    )


def test_the_mismatch_ignores_actions_that_were_not_sampled():
    batch = batch_of([1, 1])
    demonstrated = batch.with_signals({"sampled": torch.tensor([[1.0], [0.0]])})
    metrics = accumulate_gradients(
        ParameterPolicy([[-0.5], [7.0]]), Method(loss=NLL()), demonstrated
    )
    assert (
        metrics["sampler_mismatch/logp_diff_mean"],
        metrics["sampler_mismatch/logp_diff_max"],
    ) == (
        0.5,
        0.5,
    )


def test_metrics_of_a_loss_are_averaged_over_actions():
    batch = batch_of([2, 1], advantage=[1.0, -1.0])
    numbers = [[0.0, -1.0], [-3.0, 0.0]]  # ratios e and 1 in row 0, e^-2 in row 1
    metrics = accumulate_gradients(ParameterPolicy(numbers, 1), Method(loss=Clip(0.2, 0.2)), batch)
    assert (metrics["clip_frac/high"], metrics["clip_frac/low"]) == (
        pytest.approx(1 / 3),
        pytest.approx(1 / 3),
    )


def test_add_signals_evaluates_the_policy_and_other_models_by_name():
    policy, other = (
        ParameterPolicy([[-1.0, 0.0], [-2.0, 0.0]], 1),
        ParameterPolicy([[-5.0, -6.0], [-7.0, -8.0]]),
    )
    batch = add_signals(
        policy, {"ref": other}, batch_of([2, 2]), {"entropy", "logp@ref", "entropy@ref"}
    )
    assert batch.signals["entropy"].tolist() == [[-2.0, 0.0], [-4.0, 0.0]]
    assert batch.signals["logp@ref"].tolist() == [[-5.0, -6.0], [-7.0, -8.0]]
    assert batch.signals["entropy@ref"].tolist() == [[-10.0, -12.0], [-14.0, -16.0]]
    assert [count for count, _ in other.calls] == [1] * 4  # in the micro-batches of the policy
    assert not batch.signals["entropy"].requires_grad


def test_add_signals_keeps_existing_signals():
    policy, names = ParameterPolicy([[-1.0]]), {"entropy", "logp@sampler"}
    batch = batch_of([1]).with_signals({"entropy": torch.tensor([[0.25]])})
    assert add_signals(policy, {}, batch, names).signals["entropy"].item() == 0.25
    assert policy.calls == []


def test_a_kl_term_reads_the_precomputed_reference_logp():
    policy, other = ParameterPolicy([[-1.0]]), ParameterPolicy([[-2.0]])
    method = Method(loss=KL(), aggregation=token_mean)
    with pytest.raises(MissingSignalError, match="'logp@ref' was not measured"):
        accumulate_gradients(policy, method, batch_of([1]))
    batch = add_signals(policy, {"ref": other}, batch_of([1]), method.requires.all_signals)
    metrics = accumulate_gradients(policy, method, batch)
    assert (
        metrics["loss"] == metrics["policy/kl_ref"] == pytest.approx(exp(-1) + 1 - 1)
    )  # d = -2 - (-1)


def test_signals_of_the_whole_batch_are_those_of_its_rows():
    policy = ParameterPolicy([[-1.0, -2.0], [-3.0, -4.0], [-5.0, -6.0]], 2)
    signals = signals_of_all_rows(policy, policy, batch_of([2, 2, 2]), ["entropy"])
    assert signals["entropy"].tolist() == (2 * policy.numbers).tolist()


def test_the_policy_evaluates_the_signals_that_the_loss_recomputes():
    policy = ParameterPolicy([[1.0], [2.0]])
    accumulate_gradients(
        policy, Method(loss=NLL() + (-0.5) * Entropy(), aggregation=token_mean), batch_of([1, 1])
    )
    assert policy.calls == [(2, ("entropy", "logp"))]
    assert gradient_of(policy).flatten().tolist() == [-0.5 - 0.5] * 2  # -1/2 of logp, -0.5 x 2 / 2


def test_ranks_of_a_sharded_policy_run_equally_many_passes():
    policy = ParameterPolicy([[1.0]] * 3, rows_per_microbatch=1)
    policy.is_sharded = True

    def passes(ranks: Ranks) -> list[tuple[list[int], float]]:
        own = _microbatches_with_factors(policy, batch_of([1, 1, 1]), ranks)
        return [(rows.tolist(), factor) for rows, factor in own]

    assert run_ranks(2, passes) == [[([0], 1.0), ([2], 1.0)], [([1], 1.0), ([0], 0.0)]]
