"""Controllers: the number that each step trains with, and what it does to the step.

The numbers are those of `resolve_schedules`, which the training loop calls before each step with
the metrics of the steps before.
"""

from collections.abc import Callable, Mapping, Sequence
from random import Random

import numpy as np
import torch

from grupo.core.batch import Batch, Signals
from grupo.core.controllers import Controller
from grupo.core.schedules import resolve_schedules
from grupo.core.types import Group, Response, Rollout, Task
from grupo.method import Method
from grupo.methods.aepo import aepo
from grupo.methods.amft import amft
from grupo.methods.ares import ares
from grupo.methods.arrol import arrol
from grupo.methods.dcpo_distribution import dcpo_distribution
from grupo.methods.gfpo import KeepBestByDifficulty, gfpo
from grupo.methods.kl_in_reward import kl_in_reward
from grupo.methods.remix import remix
from grupo.methods.riskpo import riskpo
from grupo.methods.skywork_or1 import skywork_or1
from grupo.rollouts.history import History
from grupo.testing.batches import make_batch
from grupo.training.update.metrics import advantage_metrics
from tests.reference.assembled_numpy.formulas import z_score
from tests.reference.steps.resolving import assert_close, controller, parts, series
from tests.reference.steps_plain import controllers as plain

ENTROPIES = (0.1, 0.15, 0.4, 0.6, 0.19, 0.05, 0.7, 0.9, 0.3, 0.1, 0.12)  # of each step, in nats


def check_aepo() -> None:
    """Compare temperature and weight, and the advantage of tempered rollouts in each step."""
    method = aepo()
    temperature = series(controller(method, value_below=1.2), ENTROPIES)
    weights = plain.aepo_weight(ENTROPIES)
    assert_close(temperature, plain.aepo_temperature(ENTROPIES))
    assert_close(series(controller(method, value_below=1.0), ENTROPIES), weights)
    terms = {"temperature_scaled": [0.0, 0.0, 1.0, 1.0]}
    batch = make_batch([0] * 4, [1.0, 0.0, 1.0, 0.0], reward_terms=terms)
    for step, weight in enumerate(weights):
        advantage = _advantage(method, batch, {"policy/entropy": ENTROPIES[:step]})
        assert_close(advantage[2:, 0].tolist(), [weight, 0.0])
        assert_close(advantage[:2, 0].tolist(), advantage[:2, 0].abs().mul(_SIGNS).tolist())


_SIGNS = torch.tensor([1.0, -1.0], dtype=torch.float64)


def check_amft() -> None:
    """Compare mu, which reaches both of its bounds."""
    mu = controller(amft(target_entropy=0.5))
    assert_close(series(mu, ENTROPIES), plain.amft_weight(ENTROPIES, 0.5))
    entropies = (0.1, 0.0, 0.2, 0.9, *(1.5,) * 8, 0.0, 0.4)
    mu = controller(amft(target_entropy=0.5, gain=0.2))
    expected = plain.amft_weight(entropies, 0.5, 0.2)
    assert_close(series(mu, entropies), expected)
    assert {0.05, 0.95} <= set(expected)


TRIGGERS = (3.2, 5.0, 4.4, 1.0, 0.3, 2.5, 3.5, 30.0, 31.0, 2.0, 40.0, 0.0)
DIVERGENCES = (0.02, 0.01, 0.05, 0.0001, 0.3, 0.2, 0.001, 0.0, 0.0, 0.0, 0.5, 0.01, 0.01)


def check_ares() -> None:
    """Compare alpha and beta of each difficulty, and the threshold of the entropy."""
    method = ares()
    for name, sign in (("easy", 1), ("medium", 1), ("hard", -1)):
        alpha = series(controller(method, metric=f"triggers/{name}"), TRIGGERS)
        expected = plain.ares_alpha(TRIGGERS, sign)
        assert_close(alpha, expected)
        assert {0.0, 2.0} & set(expected)
        for interval in (1, 3):
            beta = controller(ares(beta_interval=interval), metric=f"kl_ref/{name}")
            for divergences in (DIVERGENCES, (0.0102, 0.0101, 0.0099, 0.0103, 0.01, 0.02, 0.001)):
                assert_close(series(beta, divergences), plain.ares_beta(divergences, interval))
    beta = controller(method, metric="kl_ref/easy")
    assert_close(series(beta, [0.5] * 210), plain.ares_beta([0.5] * 210, 100))
    threshold = controller(method, metric="entropy_windows/percentile_95")
    assert_close(series(threshold, TRIGGERS)[1:], plain.ares_threshold(TRIGGERS))


def check_ares_without_a_difficulty() -> None:
    """Compare beta where some steps have no rollouts of the difficulty."""
    divergences = (0.02, None, 0.05, None, 0.3, 0.2, None, None, 0.5, 0.5)
    expected = plain.ares_beta(divergences, 3)
    beta = controller(ares(beta_interval=3), metric="kl_ref/easy")
    found = [
        resolve_schedules(
            beta, 0.0, {beta.metric: [x for x in divergences[:step] if x is not None]}
        )
        for step in range(len(divergences) + 1)
    ]
    assert_close(found, expected)


def check_arrol() -> None:
    """Compare the sums of correct and of all rollouts in each bin."""
    counts = (4.0, 0.0, 3.0, 8.0, 0.0, 1.0, 2.0)
    for metric in ("correct/0", "count/0", "correct/9", "count/9"):
        part = controller(arrol(), metric=f"value_bins/{metric}")
        assert_close(series(part, counts), plain.decayed_sums(counts))


DCPO_CORRECT = (0.5, 0.25, 1.0, 0.75, 0.5, 0.25, 0.5, 0.5, 1.0, 0.5, 0.75, 0.25)


def check_dcpo() -> None:
    """Compare the advantages of each step: the share of the bonus, and its temperature."""
    method, target = dcpo_distribution(), 0.25
    temperature = plain.dcpo_temperature(ENTROPIES, target)
    shares = plain.dcpo_share(ENTROPIES, DCPO_CORRECT, target)
    assert set(temperature) == {1.2, 0.8}
    for step, (t, a, fraction) in enumerate(zip(temperature, shares, DCPO_CORRECT, strict=True)):
        correct = np.arange(8) < 8 * fraction
        group = np.arange(8) % 2
        logp = {1.2: -0.7 - 0.1 * np.arange(8), 0.8: -1.4 + 0.05 * np.arange(8)}
        signals = {f"logp@t={x}": values[:, None].tolist() for x, values in logp.items()}
        batch = make_batch(
            group.tolist(),
            correct.astype(float).tolist(),
            logp=-1.0,
            signals=signals,
            reward_terms={"correct": correct.astype(float).tolist()},
        )
        found = _advantage(method, batch, {"policy/entropy": ENTROPIES[:step]})
        rho = np.exp(logp[t] + 1.0)
        expected = (1 - a) * z_score(correct.astype(float), group) + a * correct * rho
        assert_close(found[:, 0].tolist(), expected.tolist())


def check_gfpo() -> None:
    """Compare the rollouts that are kept of each group, the shortest ones, in each step."""
    method = gfpo().replace(filter=KeepBestByDifficulty())
    history, earlier = History(), list[float]()
    rng = Random(2)
    numbers = set()
    for step in range(6):
        groups = []
        for i in range(110):
            right = rng.randrange(17)
            lengths = rng.sample(range(1, 40), 16)
            rollouts = [
                Rollout((("?", Response((0,) * n, (-1.0,) * n)),), reward=float(k < right))
                for k, n in enumerate(lengths)
            ]
            groups.append(Group(Task(str(i), "?"), tuple(rollouts)))
        in_step = resolve_schedules(method, 0.0, history.metrics)
        kept = [[r.length for r in group.rollouts] for group in in_step.filter(groups)]
        means = [sum(group.rewards) / 16 for group in groups]
        counts = plain.gfpo_kept(means, earlier)
        for lengths, group, count in zip(kept, groups, counts, strict=True):
            assert sorted(lengths) == sorted(r.length for r in group.rollouts)[:count], step
        history.append_group_rewards(groups)
        earlier += means
        numbers |= set(counts)
    assert numbers == {4, 6, 8}


def check_kl_in_reward() -> None:
    """Compare the weight of the KL divergence; the error is clipped on both sides."""
    divergences = (0.1, 0.021, 0.019, 0.0, 0.02, 0.03, 0.001, 0.022)
    part = controller(kl_in_reward())
    assert_close(series(part, divergences), plain.ziegler_kl_coef(divergences))


def check_remix() -> None:
    """Compare share, passes and weight of the reference in each step of both phases."""
    method = remix()
    weight = _only([x for x in parts(method, Controller) if type(x).__name__ == "ReferenceWeight"])
    for step in range(1, 121):
        metrics = {"tokens/generated": [9.0] * (step - 1)}
        share, passes = plain.remix_numbers(step)
        resolved = resolve_schedules(method, 0.0, metrics)
        assert_close([resolved.replay.old_share], [share])
        assert len(list(resolved.updates(make_batch([0, 0]), Random(0)))) == passes
        found = resolve_schedules(weight, 0.0, metrics)
        assert_close([found], [plain.remix_reference_weight(step)])


RISK_SCORES = (  # the rewards of two groups in each step; each group is a bundle
    ((0.0, 1.0, 0.5, 1.0, 0.0), (0.25, 1.0, 1.0, 0.0, 0.75)),
    ((1.0, 1.0, 0.5, 1.0, 0.0), (0.75, 1.0, 0.5, 0.5, 0.75)),
    ((0.0, 0.0, 0.25, 0.0, 0.5), (0.0, 0.25, 0.0, 0.0, 0.75)),
    ((1.0, 0.5, 1.0, 1.0, 1.0), (1.0, 1.0, 0.75, 1.0, 0.5)),
    ((0.0, 1.0, 0.0, 1.0, 1.0), (0.5, 0.25, 0.5, 0.0, 0.75)),
    ((0.5, 0.25, 0.5, 0.5, 1.0), (0.0, 1.0, 0.5, 0.5, 0.25)),
)


def _risk_batch(scores: Sequence[Sequence[float]]) -> Batch:
    flat = [x for group in scores for x in group]
    return make_batch([i for i, group in enumerate(scores) for _ in group], flat)


def check_riskpo() -> None:
    """Compare the tracked quantiles after each step, and the advantages that follow from them."""
    method, levels = riskpo(bundle_size=1), (0.2, 0.9)
    tracked: dict[str, list[float]] = {"quantile/low": [], "quantile/high": []}
    flat = [[x for group in scores for x in group] for scores in RISK_SCORES]
    expected = plain.riskpo_quantiles(flat, levels)
    for scores, thresholds in zip(RISK_SCORES, expected, strict=True):
        batch = _risk_batch(scores)
        advantages = _advantage(method, batch, tracked)[:, 0].tolist()
        assert_close(advantages, plain.riskpo_advantages(scores, thresholds, levels))
        in_step = resolve_schedules(method, 0.0, tracked)
        for name, value in advantage_metrics(in_step, batch).items():
            tracked[name].append(value)
    assert_close(tracked["quantile/low"], [q for q, _ in expected])
    assert_close(tracked["quantile/high"], [q for _, q in expected])


def check_skywork() -> None:
    """Compare the coefficient, and the loss of an action, from which it takes the entropy."""
    method, entropies = skywork_or1(), (*ENTROPIES, 0.1, 0.1, 0.9, 0.9, 0.9, 0.9, 0.1)
    expected = plain.skywork_entropy_coef(entropies)
    assert_close(series(controller(method), entropies), expected)
    assert max(expected) > 0
    batch = make_batch([0, 0], advantage=[1.0, -1.0])
    pi = Signals(logp=batch.old_logp, entropy=torch.tensor([[0.5], [2.0]], dtype=torch.float64))
    for step, coefficient in enumerate(expected):
        in_step = resolve_schedules(method, 0.0, {"policy/entropy": entropies[:step]})
        loss = in_step.loss(pi, batch)
        assert_close(loss[:, 0].tolist(), [-1.0 - coefficient * 0.5, 1.0 - coefficient * 2.0])


def _advantage(
    method: Method, batch: Batch, metrics: Mapping[str, Sequence[float]]
) -> torch.Tensor:
    """The advantages of a batch (N, T) in the step after these metrics."""
    in_step = resolve_schedules(method, 0.0, {name: [*x] for name, x in metrics.items()})
    return batch.with_advantage(in_step.advantage).advantage


def _only(found: Sequence[Controller]) -> Controller:
    (part,) = found
    return part


CHECKS: dict[str, Callable[[], None]] = {
    "aepo": check_aepo,
    "amft": check_amft,
    "ares": check_ares,
    "ares: steps without a difficulty": check_ares_without_a_difficulty,
    "arrol: sums": check_arrol,
    "dcpo_distribution": check_dcpo,
    "gfpo.replace(filter=KeepBestByDifficulty())": check_gfpo,
    "kl_in_reward": check_kl_in_reward,
    "remix: numbers": check_remix,
    "riskpo": check_riskpo,
    "skywork_or1": check_skywork,
}
