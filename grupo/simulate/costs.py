"""Seconds of each phase of a step, as functions of its size: fitted to a run, or given."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from grupo.core.errors import ConfigError
from grupo.report.read_run import read_metrics, read_rollouts

MIN_STEPS = 5  # of a run that costs are fitted to
MIN_VARIATION = 0.05  # of the sizes of steps, below which fixed costs are not distinguished
WARMUP = 1  # steps that are not used: the first one allocates memory
GRADIENT_BYTES_PER_S = 0.5e9  # that two processes on one machine sum by gloo: docs/scale.md
MEETING = 0.001  # seconds of an exchange of two processes on one machine: docs/scale.md

Steps = Sequence[Mapping[str, float]]
Lengths = Mapping[int, Sequence[int]]


@dataclass(frozen=True)
class Costs:
    """Seconds of each phase.

    Args:
        decode_step: Of one decoding step, whatever the number of rows.
        decode_row: Of one row in a decoding step.
        update_step: Of an update, whatever its size.
        update_token: Of one trained token in an update.
        stale_token: What a trained token costs more with `max_staleness` above 0: its
            log-probability is recomputed, and no activations are left from its generation.
        forward_token: Of a token in a forward pass, which continued rollouts need.
        batch_row: Of one rollout in what every rank does for the whole batch: advantages, metrics.
        score: Of waiting for rewards at the end of generation.
        encode_token: Of a token of its own rollouts that a rank sends to the others.
        decode_token: Of a token of all rollouts that a rank receives.
        gradient_sum: Of the sum of the gradients of two ranks.
        meeting: Of an exchange of ranks without data.
        weight_transfer: Of handing new weights to the servers.
    """

    decode_step: float
    decode_row: float
    update_step: float
    update_token: float
    stale_token: float = 0.0
    forward_token: float = 0.0
    batch_row: float = 0.0
    score: float = 0.0
    encode_token: float = 0.0
    decode_token: float = 0.0
    gradient_sum: float = 0.0
    meeting: float = 0.0
    weight_transfer: float = 0.0

    def generation(self, lengths: Sequence[int]) -> float:
        """Seconds in which one process generates rollouts of these lengths in tokens."""
        return self.decode_step * max(lengths) + self.decode_row * sum(lengths)


def measured_lengths(run: Path) -> dict[int, list[int]]:
    """Tokens of each rollout of a run, by step."""
    lengths: defaultdict[int, list[int]] = defaultdict(list)
    for rollout in read_rollouts(run):
        lengths[rollout["step"]].append(rollout["length"])
    return lengths


def costs_of_run(
    run: Path, lengths: Lengths, stale_run: Path | None = None, contention: float = 0.0
) -> Costs:
    """Costs fitted to the steps of a run of one process.

    Args:
        run: The folder of the run.
        lengths: Tokens of each rollout, by step.
        stale_run: A run of the same recipe with `max_staleness` above 0.
        contention: How much longer updates took while rollouts were generated beside them.

    Raises:
        ConfigError: A run has too few steps, the first one has a `max_staleness`, or the other has
            none.
    """
    steps = [step for step in read_metrics(run) if lengths.get(int(step["step"]))]
    _check_steps(run, steps)
    if any(step["staleness"] > 0 for step in steps):
        raise ConfigError(
            f"run: {str(run)!r} generated rollouts during updates, so that the seconds of its"
            " phases overlap. Allowed: a run with max_staleness=0."
        )
    weights = max((run / "checkpoints").glob("step-*/weights.safetensors"), default=None)
    size = weights.stat().st_size if weights else 0
    costs = replace(
        fit_costs(steps, lengths), gradient_sum=size / GRADIENT_BYTES_PER_S, meeting=MEETING
    )
    if stale_run is None:
        return costs
    stale_lengths = measured_lengths(stale_run)
    stale_steps = [s for s in read_metrics(stale_run) if stale_lengths.get(int(s["step"]))]
    _check_steps(stale_run, stale_steps)
    if not any(step["staleness"] > 0 for step in stale_steps):
        raise ConfigError(
            f"stale-run: {str(stale_run)!r} has no rollouts older than the weights that it updated."
            " Allowed: a run with max_staleness above 0."
        )
    return fit_stale_costs(costs, stale_steps, stale_lengths, contention)


def _check_steps(run: Path, steps: Sequence[object]) -> None:
    if len(steps) < MIN_STEPS:
        raise ConfigError(
            f"run: {str(run)!r} has {len(steps)} steps with rollouts. Allowed: {MIN_STEPS} or more."
        )


def fit_costs(steps: Steps, lengths: Lengths) -> Costs:
    """Costs fitted by least squares, none of them negative.

    Args:
        steps: The metrics of each step.
        lengths: Tokens of each rollout, by step.
    """
    used = list(steps)[WARMUP:]
    own = [np.asarray(lengths[int(step["step"])]) for step in used]
    decoding = np.array([[n.max(), n.sum()] for n in own], dtype=np.float64)
    updating = np.array([[1, n.sum()] for n in own], dtype=np.float64)
    generate = [step["time/generate"] for step in used]
    update = [step["time/update"] + step["time/logprobs"] for step in used]
    decode_step, decode_row = _fit(decoding, generate)
    update_step, update_token = _fit(updating, update)
    rows = sum(len(n) for n in own)
    forward_token = _forward_token(steps, lengths)
    return Costs(
        decode_step,
        decode_row,
        update_step,
        update_token,
        stale_token=forward_token,
        forward_token=forward_token,
        batch_row=sum(step["time/other"] for step in used) / rows,
        score=sum(step["time/score"] for step in used) / len(used),
    )


def fit_stale_costs(costs: Costs, steps: Steps, lengths: Lengths, contention: float = 0.0) -> Costs:
    """The costs with those of a run whose rollouts were older than the weights that it updated.

    Args:
        costs: Those of a run without `max_staleness`.
        steps: The metrics of each step of a run with it.
        lengths: Tokens of each of its rollouts, by step.
        contention: How much longer updates took while rollouts were generated beside them.
    """
    used = list(steps)[WARMUP:]
    own = [lengths[int(step["step"])] for step in used]
    tokens = sum(map(sum, own))
    phases = ("time/update", "time/logprobs")
    seconds = sum(step[phase] for step in used for phase in phases)
    seconds -= contention * sum(costs.generation(n) for n in own)
    more = seconds - costs.update_step * len(used) - costs.update_token * tokens
    forward = sum(step["time/logprobs"] for step in used) / tokens
    return replace(costs, stale_token=max(0.0, more / tokens), forward_token=forward)


def _forward_token(steps: Steps, lengths: Lengths) -> float:
    """Seconds of a token in a forward pass.

    A run's first step recomputes log-probabilities, others do so if the sampler's differ.
    """
    seconds = [(step["time/logprobs"], sum(lengths[int(step["step"])])) for step in steps]
    most = max(total for total, _ in seconds)
    recomputed = [(total, tokens) for total, tokens in seconds if total > most / 2]
    tokens = sum(tokens for _, tokens in recomputed)
    return sum(total for total, _ in recomputed) / tokens if tokens else 0.0


def _fit(features: np.ndarray, seconds: Sequence[float]) -> tuple[float, float]:
    """Nonnegative coefficients with the smallest squared error.

    If the steps have nearly equal proportions, so that the coefficients cannot be distinguished,
    the first is 0: the seconds are those of the rows or tokens.
    """
    scale = features.max(0)
    ratio = features[:, 0] / features[:, 1]
    if ratio.max() - ratio.min() < MIN_VARIATION * ratio.max():
        return 0.0, float(np.sum(seconds) / features[:, 1].sum())
    first, second = nnls(features / scale, np.asarray(seconds))[0] / scale
    return float(first), float(second)
