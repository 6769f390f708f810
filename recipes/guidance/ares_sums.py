"""ARES on sums of three difficulties, whose workings can be repeated.

Chen et al., 2025, arXiv:2510.08457; `grupo/methods/ares.py` has its record.

Sums have three or four digits (`easy`), five or six (`medium`), and seven or eight (`hard`). The
beginner makes mistakes from the fourth addition on, and may write a further working behind the
token `!`, up to three in all; that token is the trigger. All arms have the loss, the aggregation
and the updates of ARES and generate the same number of tokens; GRPO lacks the reward of triggers.
The upper bound, GRPO with a reward for further workings of hard sums and a penalty for those of
easy ones, must win first.

Named before the first run of all seeds: `gap`, the tokens of an answer to easy held-out sums minus
those to hard ones, of ARES minus that of GRPO, is below 0; and `correct`, the accuracy over all
three, of ARES is not below that of GRPO. Both by the 95 % interval of the paired difference over 8
seeds; not below: its lower end is above -0.02.

python recipes/guidance/ares_sums.py FOLDER [FIRST_SEED END]
"""

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from statistics import fmean

from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.advantages.window_entropy import KLOfDifficulties
from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.hard_sums import EVAL_SEED, hard_sums_recipe, trained_for_tokens
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.tiny_lm import mean_terms
from grupo.method import Method
from grupo.methods.ares import ares
from grupo.recipe import Recipe
from grupo.rollouts.evaluate import HasActor
from grupo.tasks.digit_sums import ANSWER, DigitSums
from grupo.toy.arithmetic_lm import ensure_trained
from grupo.toy.digit_sums_lm import LAST_DIGIT, SolutionsWithMistakes, ToyDigitSumsLM
from grupo.toy.thinking_sums import AGAIN, RepeatedWorkings
from grupo.toy.tokenizers import word_tokenizer
from grupo.util.importing import load_module_file

SEEDS = 8
MAX_TOKENS, LEARNING_RATE = 200_000, 1e-4
DIFFICULTIES = {"easy": (3, 4), "medium": (5, 6), "hard": (7, 8)}  # fewest and most digits
FEWEST, MOST = DIFFICULTIES["easy"][0], DIFFICULTIES["hard"][1]
STYLES = ("left", "right", "sorted", "alternating")
MODEL = ToyDigitSumsLM(
    tasks=DigitSums(FEWEST, MOST, 50_000, seed=700),
    eval_tasks=DigitSums(FEWEST, MOST, 200, seed=701),
    solve=RepeatedWorkings(SolutionsWithMistakes(mistake_probability=0.5, styles=STYLES)),
    max_new_tokens=160,
)


def further_workings(task: Task, rollout: Rollout) -> float:
    """Number of workings after the first."""
    return float(rollout.text.count(AGAIN))


def workings_by_difficulty(task: Task, rollout: Rollout) -> float:
    """1/2 for each of up to two further workings of a hard sum, -1/2 for an easy one."""
    digits = len(task.columns["terms"])
    sign = (digits >= DIFFICULTIES["hard"][0]) - (digits <= DIFFICULTIES["easy"][1])
    return sign * min(2.0, further_workings(task, rollout)) / 2


ENV = SingleTurn((*LAST_DIGIT.rewards, RewardTerm("further", further_workings, weight=0.0)))
KNOWN = SingleTurn((*ENV.rewards, RewardTerm("by_difficulty", workings_by_difficulty)))
ARES = ares(trigger_tokens=(word_tokenizer([ANSWER]).get_vocab()[AGAIN],))
GRPO = ARES.replace(advantage=chain(KLOfDifficulties(), Center(), ScaleByStd()))
ARMS: Mapping[str, tuple[Method, SingleTurn]] = {
    "GRPO": (GRPO, ENV),
    "known difficulty": (GRPO, KNOWN),
    "ARES": (ARES, ENV),
}


def recipe(method: Method, env: SingleTurn, seed: int, max_tokens: int = MAX_TOKENS) -> Recipe:
    """Train the toy model on sums of all difficulties.

    Args:
        method: The method.
        env: Its rewards.
        seed: Seed of the run.
        max_tokens: Tokens that are generated.
    """
    base = hard_sums_recipe(
        method,
        seed=seed,
        max_tokens=max_tokens,
        model=MODEL,
        min_terms=FEWEST,
        max_terms=MOST,
        learning_rate=LEARNING_RATE,
    )
    return base.replace(env=env)


RECIPE = recipe(ARES, ENV, seed=0)


def measured(policy: HasActor, seed: int) -> Metrics:
    """Accuracy, tokens and further workings on held-out sums of each difficulty, and their gap.

    Args:
        policy: Generates 4 attempts at each of 100 sums.
        seed: Seed of the attempts.
    """
    metrics = {}
    for difficulty, digits in DIFFICULTIES.items():
        tasks = DigitSums(*digits, size=100, seed=EVAL_SEED).load()
        means = mean_terms(policy, ENV, tasks, attempts=4, seed=seed)
        names = ("correct", "length", "further")
        metrics |= {f"{difficulty}/{name}": means[name] for name in names}
    correct = fmean(metrics[f"{difficulty}/correct"] for difficulty in DIFFICULTIES)
    return {**metrics, "correct": correct, "gap": metrics["easy/length"] - metrics["hard/length"]}


def run(arm: str, seed: int, max_tokens: int = MAX_TOKENS) -> Metrics:
    """Metrics of the policy after `max_tokens`.

    Args:
        arm: Name of the arm.
        seed: Seed of the run.
        max_tokens: Tokens that are generated.
    """
    ensure_trained(MODEL)
    learner = trained_for_tokens(recipe(*ARMS[arm], seed, max_tokens))
    return {**measured(learner.policy, seed), "steps": float(learner.state.step)}


def main(folder: str, first_seed: str = "0", end: str = str(SEEDS)) -> None:
    """Run all arms and print the tables."""
    arms = {
        "beginner": lambda seed: run("GRPO", seed, max_tokens=0),
        **{arm: partial(run, arm) for arm in ARMS},
    }
    runs = stored_runs(Path(folder) / "runs.jsonl", arms, range(int(first_seed), int(end)))
    if int(end) - int(first_seed) < 2:
        return
    print(paired_table(runs, ["gap", "correct", "steps"], "GRPO"))
    for name in ("length", "correct", "further"):
        print(paired_table(runs, [f"{kind}/{name}" for kind in DIFFICULTIES], "GRPO"))


if __name__ == "__main__":
    load_module_file(Path(__file__)).main(*sys.argv[1:])
