"""Seconds of each phase of a step, as functions of its size: fitted to a run, or given."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from grupo.report.read_run import read_metrics, read_rollouts
from grupo.util.errors import ConfigError
from grupo.util.run_files import CHECKPOINTS_FOLDER

MIN_STEPS = 5  # of a run that costs are fitted to
MIN_VARIATION = 0.05  # of the sizes of steps, below which fixed costs are not distinguished
WARMUP = 1  # steps that are not used: the first one allocates memory
GRADIENT_BYTES_PER_S = 0.5e9  # that two processes on one machine sum by gloo: docs/simulate.md
BARRIER = 0.001  # seconds of an exchange of two processes on one machine: docs/simulate.md

Steps = Sequence[Mapping[str, float]]
Lengths = Mapping[int, Sequence[int]]
MeasuredRun = tuple[Steps, Lengths]


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
        stale_step: What an update costs more with it, whatever its size.
        forward_token: Of a token in a forward pass, which continued rollouts need.
        batch_row: Of one rollout in what every rank does for the whole batch: advantages, metrics.
        score: Of waiting for rewards at the end of generation.
        serialize_token: Of a token of its own rollouts that a rank sends to the others.
        deserialize_token: Of a token of all rollouts that a rank receives.
        gradient_sum: Of the sum of the gradients of two ranks.
        barrier: Of an exchange of ranks without data.
        uncached_token: Additional cost of a token on another rank than the one that generated it
            and has its activations; without `max_staleness`.
        log_token: Of a token that the first rank writes into the journals after an update.
        weight_transfer: Of handing new weights to the servers.
        generation_slowdown: How much longer generation takes in a process that updates at the same
            time, whose interpreter and caches both use: 0.4 is 40 %.
    """

    decode_step: float
    decode_row: float
    update_step: float
    update_token: float
    stale_token: float = 0.0
    stale_step: float = 0.0
    forward_token: float = 0.0
    batch_row: float = 0.0
    score: float = 0.0
    serialize_token: float = 0.0
    deserialize_token: float = 0.0
    gradient_sum: float = 0.0
    barrier: float = 0.0
    uncached_token: float = 0.0
    log_token: float = 0.0
    weight_transfer: float = 0.0
    generation_slowdown: float = 0.0

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
    run: Path,
    lengths: Lengths,
    stale_runs: Sequence[Path] = (),
    contention: float = 0.0,
    small_run: Path | None = None,
) -> Costs:
    """Costs fitted to the steps of a run of one process.

    Args:
        run: The folder of the run.
        lengths: Tokens of each rollout, by step.
        stale_runs: Runs of the same recipe with `max_staleness` above 0, and with different numbers
            of prompts.
        contention: How much longer updates took while rollouts were generated beside them.
        small_run: A run of the same recipe with fewer prompts in a step. Steps of nearly equal
            sizes do not tell the seconds of a step from those of a row or a token.

    Raises:
        ConfigError: A run has too few steps, `run` or `small_run` has a `max_staleness`, or a stale
            run has none.
    """
    measured = [_measured_run("run", run, lengths)]
    if small_run:
        measured.append(_measured_run("small-run", small_run, measured_lengths(small_run)))
    weights = max((run / CHECKPOINTS_FOLDER).glob("step-*/weights.safetensors"), default=None)
    size = weights.stat().st_size if weights else 0
    costs = replace(fit_costs(*measured), gradient_sum=size / GRADIENT_BYTES_PER_S, barrier=BARRIER)
    stale = [_measured_stale_run(stale_run) for stale_run in stale_runs]
    return fit_stale_costs(costs, *stale, contention=contention) if stale else costs


def _measured_run(option: str, run: Path, lengths: Lengths) -> MeasuredRun:
    steps = _steps_with_rollouts(option, run, lengths)
    if any(step["staleness"] > 0 for step in steps):
        raise ConfigError(
            f"{option}: {str(run)!r} generated rollouts during updates, so that the seconds of its"
            " phases overlap. Allowed: a run with max_staleness=0."
        )
    return steps, lengths


def _measured_stale_run(run: Path) -> MeasuredRun:
    lengths = measured_lengths(run)
    steps = _steps_with_rollouts("stale-run", run, lengths)
    if not any(step["staleness"] > 0 for step in steps):
        raise ConfigError(
            f"stale-run: {str(run)!r} has no rollouts older than the weights that it updated."
            " Allowed: a run with max_staleness above 0."
        )
    return steps, lengths


def _steps_with_rollouts(option: str, run: Path, lengths: Lengths) -> Steps:
    steps = [step for step in read_metrics(run) if lengths.get(int(step["step"]))]
    if len(steps) < MIN_STEPS:
        raise ConfigError(
            f"{option}: {str(run)!r} has {len(steps)} steps with rollouts. Allowed: {MIN_STEPS} or"
            " more."
        )
    return steps


def fit_costs(*runs: MeasuredRun) -> Costs:
    """Costs fitted by least squares of the errors per token, none of them negative.

    Args:
        runs: The metrics of each step of a run, and the tokens of each of its rollouts, by step.
            Runs with different numbers of prompts determine the costs best.
    """
    used = [(step, lengths) for steps, lengths in runs for step in list(steps)[WARMUP:]]
    own = [np.asarray(lengths[int(step["step"])]) for step, lengths in used]
    decoding = np.array([[n.max(), n.sum()] for n in own], dtype=np.float64)
    updating = np.array([[1, n.sum()] for n in own], dtype=np.float64)
    generate = [step["time/generate"] for step, _ in used]
    update = [step["time/update"] + step["time/logprobs"] for step, _ in used]
    decode_step, decode_row = _fit(decoding, generate)
    update_step, update_token = _fit(updating, update)
    rows = sum(len(n) for n in own)
    forward_token = _forward_token(*runs[0])
    return Costs(
        decode_step,
        decode_row,
        update_step,
        update_token,
        stale_token=forward_token,
        forward_token=forward_token,
        batch_row=sum(step["time/other"] for step, _ in used) / rows,
        score=sum(step["time/score"] for step, _ in used) / len(used),
    )


def fit_stale_costs(costs: Costs, *runs: MeasuredRun, contention: float = 0.0) -> Costs:
    """The costs with those of runs whose rollouts were older than the weights that they updated.

    With a single run, a token costs more, and not the step: its steps are of similar sizes.

    Args:
        costs: Those of runs without `max_staleness`.
        runs: The metrics of each step of a run with it, and the tokens of each of its rollouts.
        contention: How much longer updates took while rollouts were generated beside them.
    """
    used = [(step, lengths) for steps, lengths in runs for step in list(steps)[WARMUP:]]
    own = [lengths[int(step["step"])] for step, lengths in used]
    tokens = np.array([sum(n) for n in own], dtype=np.float64)
    logprobs = np.array([step["time/logprobs"] for step, _ in used])
    seconds = np.array([step["time/update"] for step, _ in used]) + logprobs
    more = seconds - contention * np.array([costs.generation(n) for n in own])
    more -= costs.update_step + costs.update_token * tokens
    step, token = 0.0, max(0.0, more.sum() / tokens.sum())
    if len(runs) > 1:
        step, token = _least_squares(np.stack([np.ones(len(tokens)), tokens], axis=1), more)
    forward = logprobs.sum() / tokens.sum()
    return replace(
        costs,
        stale_step=float(step),
        stale_token=float(token),
        forward_token=float(forward),
        uncached_token=max(0.0, float(token - forward)),
    )


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
    """Nonnegative coefficients of steps' features, the second of which is their tokens.

    If the steps have nearly equal proportions, so that the coefficients cannot be distinguished,
    the first is 0: the seconds are those of the rows or tokens.
    """
    ratio = features[:, 0] / features[:, 1]
    if ratio.max() - ratio.min() < MIN_VARIATION * ratio.max():
        return 0.0, float(np.sum(seconds) / features[:, 1].sum())
    return _least_squares(features, np.asarray(seconds))


def _least_squares(features: np.ndarray, seconds: np.ndarray) -> tuple[float, float]:
    """Nonnegative coefficients with the smallest squared errors of the seconds per token.

    Errors relative to the measured seconds would make slow steps count less than fast ones, and the
    predictions too small.
    """
    per_token = features / features[:, 1:]
    scale = per_token.max(0)
    first, second = nnls(per_token / scale, seconds / features[:, 1])[0] / scale
    return float(first), float(second)
