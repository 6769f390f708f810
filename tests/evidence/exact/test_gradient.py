"""Known results about expected gradients; each expected value is a closed form or autograd."""

from itertools import product
from math import acos, comb, degrees, sqrt

import pytest
import torch

from grupo.algo.advantages import Center, ScaleByStd, chain, identity
from grupo.algo.aggregation import ConstantLength, sequence_mean, token_mean, token_sum
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip, Reinforce
from grupo.core import group_ops
from grupo.evidence.exact import FiniteEnv, FiniteTask, expected_gradient
from grupo.evidence.exact.standard import DIFFICULTIES, GRADED, LENGTHS, MOVED, two_answers
from grupo.method import Method
from grupo.methods.dr_grpo import dr_grpo
from grupo.methods.empo import empo
from grupo.methods.max_rl import RelativeToMean, max_rl
from grupo.methods.passk_leave_one_out import passk_leave_one_out
from grupo.methods.rloo import rloo
from grupo.rollouts.samplers import GroupSampler
from grupo.util.errors import ConfigError

ENVS = [DIFFICULTIES, GRADED, LENGTHS]
SUCCESS = (0.05, 0.4, 0.9)


def reinforce(advantage, aggregation=token_sum, group_size=4, **slots):
    sampler = GroupSampler(group_size)
    return Method(
        sampler=sampler, advantage=advantage, loss=Reinforce(), aggregation=aggregation, **slots
    )


def gradient_of(objective, env):
    """The gradient of a function of the answers' probabilities, by autograd."""
    logits = env.logits.clone().requires_grad_()
    return torch.autograd.grad(objective(env.answer_logp(logits)), logits)[0]


@pytest.mark.parametrize("env", ENVS)
@pytest.mark.parametrize("group_size", [2, 5])
def test_a_leave_one_out_baseline_is_unbiased(env, group_size):
    moments = expected_gradient(rloo(group_size), env)
    assert moments.angle == pytest.approx(0, abs=1e-10)
    assert moments.length_ratio == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("env", ENVS)
def test_reinforce_without_baseline_is_unbiased(env):
    moments = expected_gradient(reinforce(identity), env)
    assert moments.expected.tolist() == [pytest.approx(row, abs=1e-13) for row in moments.true]


@pytest.mark.parametrize("env", ENVS)
@pytest.mark.parametrize("group_size", [2, 3, 6])
def test_a_baseline_that_contains_the_rollout_shrinks_the_gradient_by_its_share(env, group_size):
    moments = expected_gradient(reinforce(Center(), group_size=group_size), env)
    assert moments.angle == pytest.approx(0, abs=1e-10)
    assert moments.length_ratio == pytest.approx((group_size - 1) / group_size, abs=1e-12)


@pytest.mark.parametrize("env", ENVS)
def test_dr_grpo_is_unbiased_up_to_a_constant(env):
    moments = expected_gradient(dr_grpo(max_length=5, group_size=4), env)
    assert moments.angle == pytest.approx(0, abs=1e-10)
    assert moments.length_ratio == pytest.approx(3 / 4 / 5, abs=1e-12)


def standardised_weight(p, group_size):
    """E[m (1 - m) / (std + 1e-6)] / (p (1 - p)), m the fraction of correct ones, std over n - 1."""
    total = 0.0
    for k in range(1, group_size):
        m = k / group_size
        std = sqrt(group_size * m * (1 - m) / (group_size - 1))
        total += (
            comb(group_size, k) * p**k * (1 - p) ** (group_size - k) * m * (1 - m) / (std + 1e-6)
        )
    return total / (p * (1 - p))


def test_dividing_by_the_std_weighs_tasks_by_their_difficulty():
    method = reinforce(chain(Center(), ScaleByStd(eps=1e-6)), group_size=6)
    moments = expected_gradient(method, DIFFICULTIES)
    true = [p * (1 - p) for p in SUCCESS]
    weight = [standardised_weight(p, 6) for p in SUCCESS]
    expected = [w * x for w, x in zip(weight, true, strict=True)]
    product_ = sum(x * y for x, y in zip(expected, true, strict=True))
    lengths = [sqrt(sum(x * x for x in values)) for values in (expected, true)]
    assert moments.angle == pytest.approx(
        degrees(acos(product_ / lengths[0] / lengths[1])), rel=1e-6
    )
    assert moments.length_ratio == pytest.approx(lengths[0] / lengths[1], rel=1e-9)
    assert moments.angle > 3


def test_dividing_by_the_std_does_not_turn_the_gradient_of_one_task_with_two_answers():
    method = reinforce(chain(Center(), ScaleByStd(eps=1e-6)), group_size=6)
    moments = expected_gradient(method, FiniteEnv((two_answers(0.2),)))
    assert moments.angle == pytest.approx(0, abs=1e-9)
    assert moments.length_ratio == pytest.approx(standardised_weight(0.2, 6), rel=1e-9)


@pytest.mark.parametrize("group_size", [2, 4, 8])
def test_max_rl_follows_the_truncated_series_of_the_log_of_the_success_probability(group_size):
    """log p = -sum_k (1 - p)^k / k; the terms k < G are the sum of pass@k / k."""
    env = DIFFICULTIES

    def series(answer_logp):
        p = answer_logp.exp()[env.rewards > 0]
        return sum(((1 - (1 - p) ** k) / k).sum() for k in range(1, group_size)) / len(env.tasks)

    method = max_rl(group_size).replace(advantage=RelativeToMean(eps=1e-30))
    moments = expected_gradient(method, env)
    torch.testing.assert_close(moments.expected, gradient_of(series, env), rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("group_size", [2, 3, 5])
def test_leave_one_out_pass_at_k_follows_the_gradient_of_exact_pass_at_k(group_size):
    env = DIFFICULTIES

    def pass_at_k(answer_logp):
        p = answer_logp.exp()[env.rewards > 0]
        return (1 - (1 - p) ** group_size).sum() / len(env.tasks)

    moments = expected_gradient(passk_leave_one_out(group_size), env)
    expected = gradient_of(pass_at_k, env) / group_size  # the loss is a mean over rollouts
    torch.testing.assert_close(moments.expected, expected, rtol=1e-11, atol=1e-14)


def test_leave_one_out_best_of_k_follows_the_gradient_of_the_expected_maximum():
    env = GRADED

    def best_of_three(answer_logp):
        p = answer_logp.exp()
        groups = product(range(3), repeat=3)
        return sum(p[list(g)].prod() * max(env.rewards[a] for a in g) for g in groups)

    moments = expected_gradient(passk_leave_one_out(3), env)
    expected = gradient_of(best_of_three, env) / 3
    torch.testing.assert_close(moments.expected, expected, rtol=1e-11, atol=1e-14)


def test_kl_in_the_reward_follows_the_total_derivative_of_the_regularised_objective():
    """The log-ratio in the reward depends on the policy, too; that part has expectation 0."""
    reference = LENGTHS.logits + torch.tensor([[0.5, 0.0], [0.0, 1.0], [0.3, 0.0]]).double()

    def objective(logits):
        logp = LENGTHS.answer_logp(logits)
        kl = (logp.exp() * (logp - LENGTHS.answer_logp(reference))).sum()
        return LENGTHS.expected_reward(logits) - 0.2 * kl

    moments = expected_gradient(rloo(3, kl_coef=0.2), LENGTHS, reference=reference)
    for place in product(range(3), range(2)):
        step = torch.zeros_like(reference)
        step[place] = 1e-6
        slope = (objective(LENGTHS.logits + step) - objective(LENGTHS.logits - step)) / 2e-6
        assert moments.expected[place].item() == pytest.approx(slope.item(), abs=1e-9)
    assert moments.angle > 5  # the reward alone has another gradient


@pytest.mark.parametrize("baseline", [0.0, 0.7])
def test_a_constant_added_to_all_rewards_changes_nothing_behind_a_baseline(baseline):
    """A potential of the first state, which is all that shaping adds to a task of one turn."""
    (task,) = GRADED.tasks
    shifted = FiniteEnv(
        (FiniteTask(tuple(r + baseline for r in task.rewards), task.probabilities),)
    )
    method = reinforce(chain(Center(), ScaleByStd()))
    before = expected_gradient(method, GRADED)
    after = expected_gradient(method, shifted)
    torch.testing.assert_close(before.expected, after.expected, rtol=1e-12, atol=1e-14)
    torch.testing.assert_close(before.true, after.true, rtol=1e-12, atol=1e-14)


def weighted_by_length(env, weight_of_group, group_size):
    """E[sum_i w(lengths) (r_i - mean of the others) grad log pi_i] over ordered groups."""
    p = env.answer_logp(env.logits).exp()
    lengths = env.mask.sum(1).tolist()
    total = torch.zeros_like(env.logits)
    scores = [gradient_of(lambda logp, a=a: logp[a], env) for a in range(len(p))]
    for group in product(range(len(p)), repeat=group_size):
        rewards = [env.rewards[a].item() for a in group]
        weights = weight_of_group([lengths[a] for a in group])
        for a, reward, weight in zip(group, rewards, weights, strict=True):
            advantage = reward - (sum(rewards) - reward) / (group_size - 1)
            total += p[list(group)].prod() * weight * advantage * scores[a]
    return total


@pytest.mark.parametrize(
    ("aggregation", "weight_of_group"),
    [
        (sequence_mean, lambda lengths: [1 / len(lengths) / n for n in lengths]),
        (token_mean, lambda lengths: [1 / sum(lengths)] * len(lengths)),
        (ConstantLength(7), lambda lengths: [1 / len(lengths) / 7] * len(lengths)),
    ],
)
def test_aggregations_weigh_answers_by_length(aggregation, weight_of_group):
    method = reinforce(Center(group_ops.leave_one_out_mean), aggregation, group_size=3)
    moments = expected_gradient(method, LENGTHS)
    expected = weighted_by_length(LENGTHS, weight_of_group, 3)
    torch.testing.assert_close(moments.expected, expected, rtol=1e-11, atol=1e-14)


def short_over_long(moments):
    """Rise of the log-odds of the short correct answer over the long one, per unit of length."""
    direction = moments / moments.norm()
    short, long = (gradient_of(lambda logp, a=a: logp[a], LENGTHS) for a in (0, 2))
    return ((short - long) * direction).sum().item()


def test_sequence_and_token_means_favour_the_shorter_of_two_correct_answers():
    center = Center(group_ops.leave_one_out_mean)
    preference = {
        aggregation: short_over_long(
            expected_gradient(reinforce(center, aggregation), LENGTHS).expected
        )
        for aggregation in (sequence_mean, token_mean, token_sum)
    }
    assert preference[token_sum] == pytest.approx(
        short_over_long(LENGTHS.policy_gradient(LENGTHS.logits)), abs=1e-10
    )
    assert preference[sequence_mean] > preference[token_mean] > preference[token_sum] + 0.01


def test_a_dropped_group_raises_the_weight_of_the_others():
    """Without the filter a group of equal rewards counts in the mean over rollouts."""
    env = FiniteEnv((two_answers(0.25), two_answers(0.5)))
    moments = expected_gradient(
        reinforce(Center(group_ops.leave_one_out_mean), group_size=2, filter=keep_nonzero_std), env
    )
    # a mixed pair has advantages 1 and -1: (score of right - score of wrong) / rollouts = 1 / n
    mixed = 6 / 16, 1 / 2
    for row, own, other in ((0, *mixed), (1, *mixed[::-1])):
        weight = own * (other / 4 + (1 - other) / 2)
        assert moments.expected[row].tolist() == pytest.approx([weight, -weight], rel=1e-12)


def test_the_variance_is_the_trace_of_the_covariance():
    env = FiniteEnv((two_answers(0.25),))
    moments = expected_gradient(reinforce(identity, group_size=1), env)
    # the gradient is (0.75, -0.75) with probability 1/4, else 0
    assert moments.variance == pytest.approx(2 * 0.75**2 * (1 / 4 - 1 / 16), rel=1e-12)
    assert moments.relative_variance == pytest.approx(3, rel=1e-12)


def test_with_two_answers_the_failure_probability_is_a_baseline_without_variance():
    """(1 - b) (1 - p) and b p, the updates of the two answers, are equal at b = 1 - p."""

    def at_failure_probability(x, batch):
        return x - 0.75

    env = FiniteEnv((two_answers(0.25),))
    moments = expected_gradient(reinforce(at_failure_probability, group_size=2), env)
    assert moments.variance == pytest.approx(0, abs=1e-15)
    assert moments.length_ratio == pytest.approx(1, rel=1e-12)
    assert expected_gradient(rloo(2), env).variance > 0.01


def test_clipping_stops_the_ratios_that_have_moved_beyond_the_limits():
    env = FiniteEnv((two_answers(0.25),))
    policy = env.moved_logits(0.5)
    free, clipped = (
        expected_gradient(
            Method(sampler=GroupSampler(2), advantage=Center(), loss=Clip(eps, eps)),
            env,
            current=policy,
        )
        for eps in (10.0, 0.2)
    )
    # odds e / 3: both ratios, 1.9 and 0.7, are beyond the limits of the clip
    assert free.length_ratio > 0.3
    assert clipped.length_ratio == 0


def test_the_moved_policy_crosses_the_clip_on_the_hard_and_the_easy_task_only():
    old, new = (
        DIFFICULTIES.answer_logp(x) for x in (DIFFICULTIES.logits, DIFFICULTIES.moved_logits(MOVED))
    )
    hard, _, medium, medium_wrong, _, easy_wrong = (new - old).exp().tolist()
    assert hard > 1.28
    assert easy_wrong < 0.8
    assert 0.8 < medium_wrong < medium < 1.2


def test_a_planted_bias_is_detected():
    def favour_correct(x, batch):
        return Center(group_ops.leave_one_out_mean)(x, batch) + 0.01 * x * (batch.mask.sum(1) == 1)

    planted = expected_gradient(reinforce(favour_correct), LENGTHS)
    assert planted.angle > 0.1
    assert expected_gradient(reinforce(Center()), LENGTHS).angle < 1e-9


def test_a_method_without_gradient_has_no_angle():
    moments = expected_gradient(reinforce(lambda x, batch: x * 0), DIFFICULTIES)
    assert moments.length_ratio == 0
    assert moments.angle != moments.angle
    assert moments.relative_variance != moments.relative_variance


def test_a_method_that_reads_more_than_rewards_is_an_error():
    with pytest.raises(ConfigError, match="method: it reads the reward term `cluster`"):
        expected_gradient(empo(), DIFFICULTIES)
