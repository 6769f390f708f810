"""Metrics of a run, measured with the trained policy on all tasks and without noise."""

from collections.abc import Mapping, Sequence

import numpy as np

from grupo.evidence.claims.environments import Attempts, Scores, TabularEnv, sample

ATTEMPTS_PER_TASK = 32  # rollouts of each evaluation
K = 8  # the k of pass@k

METRICS: Mapping[str, str] = {
    "success": "fraction of correct rollouts after training",
    "success_auc": "fraction of correct rollouts, mean over ten evaluations during training",
    "hard_success": "fraction of correct rollouts in the quarter of tasks that began worst",
    "pass_k": f"pass@{K} after training",
    "modes": f"different correct answers in {ATTEMPTS_PER_TASK} rollouts of a task",
    "entropy": "entropy per token after training, in nats",
    "length": "length of an answer after training, in tokens",
    "wrong_length": "length of an incorrect answer after training, in tokens",
    "short_success": "fraction of rollouts that are correct within a third of the limit",
    "both": "fraction of rollouts that are correct and well formed",
}


def evaluate(
    env: TabularEnv, logp: np.ndarray, rng: np.random.Generator
) -> tuple[Attempts, Scores]:
    """Sample and score `ATTEMPTS_PER_TASK` rollouts of each task."""
    task = np.repeat(np.arange(env.num_tasks), ATTEMPTS_PER_TASK)
    attempts = sample(env, logp, task, task, rng)
    return attempts, env.score(attempts, rng)


def success_per_task(env: TabularEnv, scores: Scores) -> np.ndarray:
    """Fraction of correct rollouts of each task (K,)."""
    return scores.correct.reshape(env.num_tasks, ATTEMPTS_PER_TASK).mean(1)


def run_metrics(
    env: TabularEnv,
    logp: np.ndarray,
    attempts: Attempts,
    scores: Scores,
    curve: Sequence[np.ndarray],
) -> dict[str, float]:
    """The metrics of a run; one that cannot be measured is absent.

    Args:
        env: The environment.
        logp: Log-probabilities of the trained policy (S, A).
        attempts: Rollouts of the last evaluation.
        scores: Their scores.
        curve: Fraction of correct rollouts of each task, by evaluation, before training first.
    """
    correct = scores.correct
    last = curve[-1]
    means = np.array([success.mean() for success in curve])
    hardest = np.argsort(curve[0], kind="stable")[: max(1, env.num_tasks // 4)]
    entropy = -(np.exp(logp) * logp).sum(1)[attempts.cell][attempts.mask]
    is_wrong = correct == 0
    short = attempts.length <= env.max_length / 3
    values = {
        "success": last.mean(),
        "success_auc": means[1:].mean(),
        "hard_success": last[hardest].mean(),
        "pass_k": pass_at_k(last * ATTEMPTS_PER_TASK, ATTEMPTS_PER_TASK, K).mean(),
        "modes": _distinct_correct(attempts, correct) / env.num_tasks,
        "entropy": entropy.mean(),
        "length": attempts.length.mean(),
        "wrong_length": attempts.length[is_wrong].mean() if is_wrong.any() else np.nan,
        "short_success": (correct * short).mean(),
        "both": (correct * scores.terms.get("format", correct)).mean(),
    }
    return {name: float(value) for name, value in values.items() if np.isfinite(value)}


def pass_at_k(num_correct: np.ndarray, n: int, k: int) -> np.ndarray:
    """1 - C(n - c, k) / C(n, k): unbiased for the probability that one of k attempts is correct.

    Chen et al., 2021, arXiv:2107.03374.

    >>> pass_at_k(np.array([0.0, 1.0, 4.0]), n=4, k=2).tolist()
    [0.0, 0.5, 1.0]
    """
    wrong = n - num_correct[:, None] - np.arange(k)
    return 1 - (wrong.clip(min=0) / (n - np.arange(k))).prod(1)


def _distinct_correct(attempts: Attempts, correct: np.ndarray) -> int:
    answers = np.where(attempts.mask, attempts.item, -1)[correct > 0]
    rows = np.column_stack([attempts.task[correct > 0], answers])
    return len(np.unique(rows, axis=0))
