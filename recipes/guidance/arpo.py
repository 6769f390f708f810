"""ARPO's replay of a success against GRPO on frozen lakes that are rarely crossed.

Gymnasium's FrozenLake, 5 x 5, without slipping; the policy is a table of logits for every tile of
every lake, and walks at random before training. The 16 lakes are chosen by a survey, as the paper
chooses its tasks: those that are crossed in 1 or 2 of 256 attempts. All arms draw each lake once in
every step and generate the same number of moves. The arm `known success` has the shortest success
of 1024 more attempts at each lake in its buffer from the start, and these are not counted: the
upper bound, which must win first.

Named before the first run of all seeds: `area`, the success on the lakes, mean over the moves
generated, of ARPO minus that of GRPO, by the exact sequential sign-flip test with looks at 8, 12
and 16 pairs and an error of 5 %.

python recipes/guidance/arpo.py FOLDER [FIRST_SEED END]
"""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from grupo.algo.filters import keep_all
from grupo.compare.sequential_design import SequentialDesign
from grupo.core.component import component
from grupo.core.ranges import PositiveInt, Probability
from grupo.core.types import Group
from grupo.envs.games.frozen_lake import ENV_ID, MOVES, FrozenLakeTasks
from grupo.envs.games.gymnasium_env import MAX_SEED, make_gymnasium_env
from grupo.evidence.claims.claim import Setting
from grupo.evidence.claims.environments import Attempts, Scores, TabularEnv
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.rewarded import RewardedArm
from grupo.evidence.claims.rollouts import make_tasks, sample_groups
from grupo.evidence.claims.sequential_table import sequential_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.train import TabularRun
from grupo.evidence.survey.measure import task_survey
from grupo.method import Method
from grupo.methods.arpo_gui_replay import arpo_gui_replay
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.tasks.selected import Between
from grupo.util.rng import derive_key

DESIGN = SequentialDesign(max_pairs=16, looks=(8, 12, 16))
MAX_MOVES = 60_000
LEARNING_RATE = 0.1


@component
class SurveyedLakes:
    """Frozen lakes that the policy crosses sometimes, but rarely, before training.

    Args:
        num_tasks: number of lakes.
        candidates: lakes that are surveyed.
        attempts: attempts of the survey at each lake.
        low: smallest share of attempts that cross a lake.
        high: largest share.
        size: rows and columns of a lake.
        max_length: moves after which an attempt ends.
    """

    num_tasks: PositiveInt = 16
    candidates: PositiveInt = 300
    attempts: PositiveInt = 256
    low: Probability = 1 / 256
    high: Probability = 2 / 256
    size: PositiveInt = 5
    max_length: PositiveInt = 15

    def __call__(self, seed: int) -> TabularEnv:
        lakes = FrozenLakeTasks(self.candidates, self.size, seed=seed % MAX_SEED).load()
        env = lakes_env([lake.reference_answer for lake in lakes], self.max_length)
        groups = sample_groups(env, log_prior(env), make_tasks(env), self.attempts, seed)
        rates = [task_survey(group, SuccessCriterion()).pass_rate for group in groups]
        chosen = Between("pass_rate", self.low, self.high)(rates)[: self.num_tasks]
        return lakes_env([lakes[i].reference_answer for i in chosen], self.max_length)


def lakes_env(lakes: Sequence[Sequence[str]], max_length: int) -> TabularEnv:
    """The lakes as a table, with Gymnasium's transitions; every move is a turn of its own.

    Args:
        lakes: Rows of the letters S F H G, as many for each lake.
        max_length: Moves after which an attempt ends.
    """
    num_tiles = len(lakes[0]) ** 2
    num_cells = len(lakes) * num_tiles
    next_cell = np.full((num_cells, len(MOVES)), -1)
    won = np.zeros(next_cell.shape)
    for lake, rows in enumerate(lakes):
        env = make_gymnasium_env(ENV_ID, desc=list(rows), is_slippery=False).unwrapped
        for tile in range(num_tiles):
            for move in range(len(MOVES)):
                ((_, following, reward, done),) = env.P[tile][move]
                cell = lake * num_tiles + tile
                won[cell, move] = reward
                if not done:
                    next_cell[cell, move] = lake * num_tiles + following
    return TabularEnv(
        first_cell=np.arange(len(lakes)) * num_tiles,
        next_cell=next_cell,
        own=np.arange(num_cells),
        common=np.zeros((num_cells, 0)),
        prior=np.zeros(next_cell.shape),
        preferred=np.zeros(next_cell.shape),
        max_length=max_length,
        score=partial(_score, won),
        separate_turns=True,
    )


def _score(won: np.ndarray, attempts: Attempts, rng: np.random.Generator) -> Scores:
    """1 for an attempt that reaches the goal, else 0."""
    correct = (won[attempts.cell, attempts.item] * attempts.mask).max(1)
    return Scores(correct, correct, {"env_reward": correct})


def log_prior(env: TabularEnv) -> np.ndarray:
    """Log-probabilities of the policy before training (S, A)."""
    return env.prior - np.log(np.exp(env.prior).sum(1, keepdims=True))


ARPO = arpo_gui_replay()
SETTING = Setting(
    "lakes",
    "Lakes that the policy rarely crosses before training.",
    SurveyedLakes(),
    learning_rate=LEARNING_RATE,
    updates=ARPO.updates,
)
GRPO = ARPO.replace(filter=keep_all)
METHODS: Mapping[str, Method] = {"GRPO": GRPO, "known success": ARPO, "ARPO": ARPO}


class LakeRun(TabularRun):
    """A run that counts moves, groups without advantages, and replayed rollouts.

    Args:
        method: The method.
        seed: Draws the lakes and all random numbers.
        setting: The conditions.
    """

    def __init__(self, method: Method, seed: int, setting: Setting = SETTING) -> None:
        super().__init__(setting, RewardedArm("lakes", built=method), seed)
        self.num_moves = 0
        self.is_flat: list[bool] = []  # of the groups that are trained on
        self.is_replayed: list[bool] = []

    def know_successes(self) -> None:
        """Put the shortest success of 1024 attempts at each lake into the buffer, uncounted."""
        key = derive_key(self.seed, "known")
        for group in sample_groups(self.env, log_prior(self.env), self.tasks, 1024, key):
            best = min(group.rollouts, key=lambda rollout: (-rollout.reward, rollout.length))
            self.history.replay_rollouts[group.task.key] = (best,) * int(best.reward)

    def sampled_and_kept_groups(self, method: Method) -> tuple[list[Group], list[Group]]:
        """The groups of a step, which are counted, and those that are trained on."""
        sampled, kept = super().sampled_and_kept_groups(method)
        self.num_moves += sum(rollout.length for group in sampled for rollout in group.rollouts)
        self.is_flat += [not group.has_reward_variance for group in kept]
        self.is_replayed += [group.rollouts[0].source == "replayed" for group in kept]
        return sampled, kept


def run(method: Method, seed: int, knows: bool = False, max_moves: int = MAX_MOVES) -> Metrics:
    """Success over the moves and after them, steps until half, and shares of groups.

    Args:
        method: The method.
        seed: Draws the lakes and all random numbers.
        knows: Whether a success of each lake is known from the start.
        max_moves: Moves that are generated.
    """
    trained = LakeRun(method, seed)
    if knows:
        trained.know_successes()
    moves, success = [0], [float(trained.success().mean())]
    while trained.num_moves < max_moves:
        trained.step()
        moves.append(trained.num_moves)
        success.append(float(trained.success().mean()))
    half = [step for step, value in enumerate(success) if value >= 0.5]
    return {
        "before": success[0],
        "area": float(np.average(success[1:], weights=np.diff(moves))),
        "after": success[-1],
        "half": float(half[0] if half else trained.step_number),
        "steps": float(trained.step_number),
        "flat": float(np.mean(trained.is_flat)),
        "replayed": float(np.mean(trained.is_replayed)),
    }


def main(folder: str, first_seed: str = "0", end: str = "16") -> None:
    """Train what is missing in the folder and print the tables."""
    arms = {
        name: partial(run, method, knows=name == "known success")
        for name, method in METHODS.items()
    }
    runs = stored_runs(Path(folder) / "runs.jsonl", arms, range(int(first_seed), int(end)))
    print(paired_table(runs, ["area", "after", "half", "flat", "replayed", "steps"], "GRPO"))
    tested = {name: runs[name] for name in ("GRPO", "ARPO")}
    print(sequential_table(tested, "area", "GRPO", DESIGN))


if __name__ == "__main__":
    main(*sys.argv[1:])
