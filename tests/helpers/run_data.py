"""The contents of a checkpoint that a run could have written, without any step."""

import math
from typing import Any

import torch

from grupo.storage.line_checksums import LineChecksums
from grupo.util.run_files import JOURNAL_FILES

SCORES: dict[str, Any] = {
    **{"greedy": 0.5, "sampled": 0.25, "failed": 0},
    "intervals": {"greedy": [0.0, 1.0], "sampled": [0.0, 0.5]},
    "tokens_per_answer": {"generated": 7.5, "read": 1.0},
}
RUN_DATA: dict[str, Any] = {
    "history": {"tasks_drawn": 12},
    "eval_scores": {},
    "metric_totals": {"time/step": 1.0},
    "lengths": dict.fromkeys(JOURNAL_FILES, 0),
    **{"generated_tokens": 7, "failed_rollouts": 0, "tokens_per_microbatch": 16384},
    **{"total_seconds": 1.25, "training_seconds": 1, "sampler_logp_diff": math.inf, "kl": math.nan},
    **{"rollout_queue": [], "unfinished_groups": [], "finished": True},
    **{"stop_reason": "max_steps is 2", "fingerprint": "e6"},
}
CHECKSUMS = {name: LineChecksums().to_tensor() for name in JOURNAL_FILES}
WEIGHTS = {"w": torch.arange(8.0)}
