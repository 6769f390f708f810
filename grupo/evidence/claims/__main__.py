"""Run what is missing, or repeat what is decided, and write the page.

python -m grupo.evidence.claims docs/claims.md [--repeat] [--share 1/2]
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from grupo.evidence.claims.comparisons import ArmComparison, all_comparisons, pending_runs
from grupo.evidence.claims.page import claims_page
from grupo.evidence.claims.repetition import repetition_of
from grupo.evidence.claims.results import Results
from grupo.evidence.claims.train import train_arm
from grupo.evidence.claims.verdicts import decided_comparisons
from grupo.util.errors import ConfigError
from grupo.util.exit_codes import error_message
from grupo.util.shares import parse_share


def main(arguments: Sequence[str]) -> None:
    """Make the share's missing runs until the time is over, then write the page from all runs."""
    parser = argparse.ArgumentParser(
        prog="python -m grupo.evidence.claims", description="Run what is missing."
    )
    parser.add_argument("page", type=Path, help="the page; its runs are in the .jsonl beside it")
    parser.add_argument("--share", default="1/1", help="part of the comparisons, such as 1/2")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="end after this time")
    parser.add_argument(
        "--repeat",
        action="store_true",
        help="repeat the decided claims with other seeds instead; first runs stay as they are",
    )
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    runs_file = options.page.with_suffix(".jsonl")
    results = Results.read(runs_file)
    deadline = time.monotonic() + 60 * options.minutes
    comparisons = share_of(list(all_comparisons()), options.share)
    if options.repeat:
        decided = decided_comparisons(results)
        comparisons = [repetition_of(chosen) for chosen in comparisons if chosen in decided]
    for comparison in comparisons:
        run_comparison(comparison, results, runs_file, deadline)
    options.page.write_text(claims_page(Results.read(runs_file)), encoding="utf-8")


def share_of(comparisons: Sequence[ArmComparison], share: str) -> list[ArmComparison]:
    """The comparisons of a share such as "1/2": whole settings, which share their baselines.

    Raises:
        ConfigError: The share is no fraction of whole numbers from 0 to 1.
    """
    number, count = parse_share(share)
    names = list(dict.fromkeys(comparison.setting.name for comparison in comparisons))
    chosen = set(names[number - 1 :: count])
    return [comparison for comparison in comparisons if comparison.setting.name in chosen]


def run_comparison(
    comparison: ArmComparison, results: Results, runs_file: Path, deadline: float
) -> None:
    """Run the pairs of a comparison until it has a verdict or the time is over."""
    while runs := pending_runs(comparison, results):
        for arm, seed in runs:
            if time.monotonic() > deadline:
                return
            metrics = train_arm(comparison.setting, arm, seed)
            results.add(runs_file, comparison.setting, arm, seed, metrics)
            print(comparison.setting.name, arm.label, seed, flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except ConfigError as error:
        sys.exit(error_message(error))
