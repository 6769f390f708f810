"""The atlas: methods compared on a small pretrained model, sixteen seeds at most, run by run.

python recipes/real/atlas.py docs --model PATH --minutes 60     trains runs that are still needed
python recipes/real/atlas.py docs --minutes 0                   writes docs/atlas.md again

Runs are appended to `atlas.jsonl` in the folder. Several processes may train at once, each with its
own `--share`, such as 1/2 and 2/2.

Everything here and in `grupo/evidence/atlas/table.py` was fixed before the first run of the arms
that it is about: families, number of steps, learning rate, arms, baselines, metrics, directions and
units. Seven trials with plain GRPO and one seed preceded it, on four families. They chose three
families that are learnt in part within 8 steps, by their cost, and a learning rate of 1e-5: 2e-5
solves the sums of one digit within 5 steps, and loses some of them again within 10.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from grupo import Evaluation, Recipe
from grupo.algo.advantages import Center, ScaleByStd, chain
from grupo.algo.aggregation import NormalisedAggregation, TopEntropyMask
from grupo.algo.filters import keep_nonzero_std
from grupo.algo.losses import Clip
from grupo.algo.minibatches import SingleUpdate, Updates
from grupo.algo.replay_rules import FillFromBuffer
from grupo.core.types import Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.atlas.comparison import Runs
from grupo.evidence.atlas.figure import save_curves
from grupo.evidence.atlas.page import atlas_page
from grupo.evidence.atlas.runs import append_run, read_runs
from grupo.evidence.atlas.schedule import next_run
from grupo.evidence.atlas.table import COMPARISONS
from grupo.evidence.claims.results import Results
from grupo.evidence.claims.table import ALL_CLAIMS
from grupo.evidence.claims.verdicts import claim_results, setting_checks
from grupo.evidence.survey import FamilyTasks, TaskFamily
from grupo.method import Method
from grupo.methods.alp import EaseScaledLengthPenalty
from grupo.methods.cispo import cispo
from grupo.methods.dr_grpo import dr_grpo
from grupo.methods.entropy_advantage import entropy_advantage
from grupo.methods.gdpo import gdpo
from grupo.methods.ghpo import ghpo
from grupo.methods.grpo import grpo
from grupo.methods.gspo import gspo
from grupo.methods.online_difficulty_filtering import online_difficulty_filtering
from grupo.methods.pods import pods
from grupo.methods.reinforce_pp_baseline import reinforce_pp_baseline
from grupo.methods.rloo import rloo
from grupo.methods.sft import sft
from grupo.methods.w_reinforce import w_reinforce
from grupo.pipeline import Pipeline, Stage
from grupo.rewards import FunctionReward
from grupo.rollouts.curricula import DynamicSampling, ShuffledTasks
from grupo.rollouts.evaluate import SuccessCriterion
from grupo.storage.atomic_files import write_atomically
from grupo.util.console import print_line
from grupo.util.importing import load_module_file
from grupo.util.shares import parse_share

TRAINING = load_module_file(Path(__file__).with_name("training.py"))
ATLAS_RUN = load_module_file(Path(__file__).with_name("atlas_run.py"))
SUM_VARIANTS = load_module_file(Path(__file__).with_name("sum_variants.py"))
STEPS, PROMPTS, GROUP, LEARNING_RATE = 8, 4, 8, 1e-5
EVAL_TASKS, ATTEMPTS, MAX_ROUNDS = 32, 3, 3
MAX_WORDS = 8
SFT_STEPS, DEMONSTRATIONS = 2, 16
ONE, FOUR = SingleUpdate(), Updates(minibatches=4)
GRPO = grpo(group_size=GROUP, kl_coef=0.0)


def few_words(task: Task, rollout: Rollout) -> float:
    """1 if the answer has at most 8 words, otherwise 0."""
    return float(len(rollout.text.split()) <= MAX_WORDS)


def family_recipe(family: TaskFamily, model: str, method: Method) -> Recipe:
    """A run of a method on a family, with evaluations before, in the middle and after it."""
    recipe: Recipe = TRAINING.family_recipe(family.name, model)
    return recipe.replace(
        method=method,
        max_steps=STEPS,
        prompts_per_step=PROMPTS,
        learning_rate=LEARNING_RATE,
        eval_tasks=FamilyTasks(family, count=EVAL_TASKS),
        evaluation=Evaluation(ATTEMPTS, every=STEPS // 2, success=family.success),
        save_every=STEPS,
    )


def with_few_words(recipe: Recipe) -> Recipe:
    """The recipe with a second reward for answers of at most 8 words."""
    (term,) = recipe.env.rewards
    short = RewardTerm("few_words", FunctionReward(few_words))
    evaluation = replace(recipe.evaluation, success=SuccessCriterion("total", 2.0))
    return recipe.replace(env=SingleTurn((term, short)), evaluation=evaluation)


def sft_then_grpo(recipe: Recipe) -> Pipeline:
    """Two updates on right answers, the number alone, and GRPO for the rest of the updates."""
    answers = recipe.replace(
        method=sft(),
        tasks=SUM_VARIANTS.WorkedSums(recipe.tasks),
        eval_tasks=SUM_VARIANTS.WorkedSums(recipe.eval_tasks),
        max_steps=SFT_STEPS,
        save_every=SFT_STEPS,
        prompts_per_step=DEMONSTRATIONS,
        evaluation=replace(recipe.evaluation, attempts=0, every=0),
    )
    rest = STEPS - SFT_STEPS
    evaluation = replace(recipe.evaluation, every=rest // 2)
    further = recipe.replace(max_steps=rest, save_every=rest, evaluation=evaluation)
    return Pipeline((Stage("sft", answers), Stage("grpo", further)))


def arms(model: str = TRAINING.MODEL) -> Mapping[str, Recipe | Pipeline]:
    """The recipe of each arm, by family and name."""
    length_penalty = EaseScaledLengthPenalty(0.02, reward_term="lower_case")
    dynamic = DynamicSampling(ShuffledTasks(), MAX_ROUNDS)
    methods = {
        "sums_1_digit/grpo": GRPO,
        "sums_1_digit/grpo, 4 updates": GRPO.replace(updates=FOUR),
        "sums_1_digit/rloo": rloo(GROUP, kl_coef=0.0),
        "sums_1_digit/reinforce_pp_baseline": reinforce_pp_baseline(GROUP, kl_coef=0.0),
        "sums_1_digit/pods": pods(group_size=2 * GROUP, num_kept=GROUP),
        "sums_1_digit/grpo, kl_coef 0.04": grpo(group_size=GROUP, kl_coef=0.04),
        "sums_1_digit/gspo, 4 updates": gspo(GROUP).replace(updates=FOUR),
        "sums_1_digit/cispo, 4 updates": cispo(GROUP).replace(updates=FOUR),
        "capitals/grpo": GRPO,
        "capitals/dynamic sampling": GRPO.replace(curriculum=dynamic, filter=keep_nonzero_std),
        "capitals/online_difficulty_filtering": online_difficulty_filtering(
            group_size=GROUP, max_resample_rounds=MAX_ROUNDS, kl_coef=0.0
        ),
        "capitals/ghpo": ghpo(GROUP, hint_column="answer"),
        "capitals/replay": GRPO.replace(replay=FillFromBuffer(256, 1.0)),
        "capitals/w_reinforce": w_reinforce(GROUP),
        "lower_case/grpo": GRPO,
        "lower_case/grpo, 4 updates": GRPO.replace(updates=FOUR),
        "lower_case/dr_grpo": dr_grpo(TRAINING.FAMILIES["lower_case"].max_new_tokens, GROUP),
        "lower_case/clip-higher, 4 updates": GRPO.replace(loss=Clip(0.2, 0.28), updates=FOUR),
        "lower_case/entropy_advantage": entropy_advantage(GROUP),
        "lower_case/forking tokens": GRPO.replace(
            aggregation=NormalisedAggregation(TopEntropyMask(0.2))
        ),
        "lower_case/length penalty": GRPO.replace(
            advantage=chain(length_penalty, Center(), ScaleByStd())
        ),
        "lower_case, few words/grpo": GRPO,
        "lower_case, few words/gdpo": gdpo(GROUP, reward_terms=("lower_case", "few_words")),
    }
    recipes = {name: _recipe_of(name, method, model) for name, method in methods.items()}
    pipeline = sft_then_grpo(recipes["sums_1_digit/grpo"])
    return {**recipes, "sums_1_digit/sft, then grpo": pipeline}


def _recipe_of(name: str, method: Method, model: str) -> Recipe:
    family = name.partition("/")[0]
    plan = FOUR if name.endswith("4 updates") else ONE
    first, *rest = family.split(", ")
    recipe = family_recipe(TRAINING.FAMILIES[first], model, method.replace(updates=plan))
    return with_few_words(recipe) if rest else recipe


def current_runs(file: Path, digests: Mapping[str, str]) -> Runs:
    """The runs of a file that the arms as they are now have made."""
    return {k: run for k, run in read_runs(file).items() if run.digest == digests.get(run.arm)}


def toy_verdicts(file: Path) -> Mapping[str, str]:
    """The verdicts of `docs/claims.md` by method; {} without the file of its runs."""
    results = Results.read(file)
    outcomes = claim_results(ALL_CLAIMS, setting_checks(ALL_CLAIMS, results), results)
    return {key: str(outcome.verdict) for key, outcome in outcomes.items()}


def main(
    folder: Annotated[Path, typer.Argument(help="Has atlas.jsonl, and receives atlas.md.")],
    model: Annotated[str, typer.Option(help="Folder or name of a chat model.")] = TRAINING.MODEL,
    minutes: Annotated[float, typer.Option(help="Begin no run after this time.")] = 60.0,
    share: Annotated[str, typer.Option(help="Of the seeds, for several processes: 1/2.")] = "1/1",
) -> None:
    """Train runs that comparisons still need, and write the page."""
    file, end = folder / "atlas.jsonl", time.monotonic() + 60 * minutes
    digests = {name: ATLAS_RUN.arm_digest(training) for name, training in arms().items()}
    trainings, part = arms(model), parse_share(share)
    while time.monotonic() < end and (
        key := next_run(COMPARISONS, current_runs(file, digests), part)
    ):
        arm, seed = key
        run = ATLAS_RUN.train_run(arm, trainings[arm], seed, digests[arm])
        append_run(file, run)
        print_line(f"{arm}, seed {seed}: {run.points[-1].metrics}")
    runs = current_runs(file, digests)
    toys = toy_verdicts(folder / "claims.jsonl")
    write_atomically(folder / "atlas.md", atlas_page(COMPARISONS, runs, toys))
    save_curves(COMPARISONS, runs, folder / "images" / "atlas.svg")


if __name__ == "__main__":
    typer.run(main)
