"""The table of TSCAC on short videos: `docs/pipelines_shown.md`.

All arms start from the behaviour policy and generate the same number of tokens, those of both
policies of stage one counted. The baseline is an actor and a critic on the sum of the rewards.

Named before the first run of these seeds: `gain`, the relative change of watch time from the
behaviour policy if neither likes nor shares are below those of the behaviour policy, else 0; TSCAC
minus the sum of the rewards, by the exact sequential sign-flip test with looks at 8, 12 and 16
pairs. TSCAC is to be greater.

python recipes/pipelines/tscac_table.py FILE [FIRST_SEED END]    # FILE has a line for each run
"""

import sys
import tempfile
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import torch
from short_videos import AUXILIARY, MAIN, RESPONSES, save_model, sessions
from tscac import STEPS, actor_critic_recipe, pipeline

from grupo.compare.sequential_design import SequentialDesign
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.sequential_table import sequential_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.tiny_lm import mean_terms, trained
from grupo.pipeline import run_pipeline
from grupo.rollouts.evaluate import HasActor
from grupo.training.resume.load_run import load_policy

ATTEMPTS, START_SEED = 25, 1000  # sessions of each user; seed of those of the constraints
STAGES = 1 + len(AUXILIARY)
METRICS, BASELINE = ("gain", *RESPONSES), "sum of the rewards"
DESIGN = SequentialDesign(max_pairs=16, looks=(8, 12, 16))


def constrained_gain(values: Metrics, start: Metrics) -> float:
    """The relative change of watch time; 0 if likes or shares are below those of the start.

    >>> start = {"watch": 2.0, "likes": 1.0, "shares": 1.0}
    >>> constrained_gain({"watch": 3.0, "likes": 1.0, "shares": 1.2}, start)
    0.5
    >>> constrained_gain({"watch": 3.0, "likes": 0.9, "shares": 1.2}, start)
    0.0
    """
    if any(values[name] < start[name] for name in AUXILIARY):
        return 0.0
    return values[MAIN] / start[MAIN] - 1


class Arms:
    """The arms of the table, by seed.

    Args:
        folder: An empty folder for the behaviour policy and the pipelines.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def model(self) -> str:
        """The folder of the behaviour policy."""
        return str(save_model(self.folder / "behaviour"))

    @cached_property
    def start(self) -> Metrics:
        """Means of the behaviour policy, on which the constraints are."""
        return self.means(actor_critic_recipe(self.model, {}).policy.build(), START_SEED)

    def means(self, policy: HasActor, seed: int) -> Metrics:
        """Mean watch time, likes and shares of a policy."""
        env = actor_critic_recipe(self.model, {}).env
        terms = mean_terms(policy, env, sessions(), attempts=ATTEMPTS, seed=seed)
        return {name: terms[name] for name in RESPONSES}

    def measured(self, policy: HasActor, seed: int) -> Metrics:
        """The means of a policy and its gain."""
        values = self.means(policy, seed)
        return {"gain": constrained_gain(values, self.start), **values}

    def behaviour(self, seed: int) -> Metrics:
        """The policy that all arms start from."""
        return self.measured(actor_critic_recipe(self.model, {}).policy.build(), seed)

    def one_stage(self, seed: int) -> Metrics:
        """An actor and a critic on the sum of all rewards, for the steps of all stages."""
        weights = dict.fromkeys(RESPONSES, 1.0)
        recipe = actor_critic_recipe(self.model, weights, seed, STAGES * STEPS)
        return self.measured(trained(recipe).policy, seed)

    def two_stages(self, seed: int) -> Metrics:
        """The policy of stage two."""
        root = run_pipeline(pipeline(self.model, seed), self.folder / f"seed{seed}")
        return self.measured(load_policy(root / MAIN)[0], seed)


def main(file: Path, seeds: Sequence[int]) -> None:
    """Run what is missing in the file and print the tables."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        arms = Arms(Path(name))
        runs = stored_runs(
            file,
            {
                "behaviour policy": arms.behaviour,
                BASELINE: arms.one_stage,
                "TSCAC": arms.two_stages,
            },
            seeds,
        )
    if len(seeds) > 1:
        print(paired_table(runs, METRICS, BASELINE))
        tested = {name: runs[name] for name in (BASELINE, "TSCAC")}
        print(sequential_table(tested, "gain", BASELINE, DESIGN))


if __name__ == "__main__":
    bounds = [int(text) for text in sys.argv[2:4]] or [0, 16]
    main(Path(sys.argv[1]), range(*bounds))
