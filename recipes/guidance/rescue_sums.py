"""Six more papers on sums of ten digits, of which the beginner solves none.

`recipes/guidance/hard_sums.py` has the world and the oracle's hint, which must win first. Here the
sums are 64, so that they recur, and the last working in an answer counts. The page
`docs/guidance_shown/rescue_sums.md` says what each paper becomes in this world.

Named before the first run of seeds 24 to 39: the accuracy on held-out sums of 8 to 10 digits
(`long`) of SAGE, its light variant, Cog-Rethinker, ThinkTuning, CLPO, PDR and SPO, each minus that
of GRPO, at 300,000 generated tokens, those of hints, parts, rewrites, drafts, completions and the
teacher counted, by the exact sequential sign-flip test with looks at 8, 12 and 16 pairs and an
error of 5 % for all seven together.

python recipes/guidance/rescue_sums.py FOLDER [FIRST_SEED END]
"""

import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from grupo.algo.advantages import ByRewardTerm, GroupedBy
from grupo.compare.sequential_design import SequentialDesign
from grupo.core.component import component
from grupo.core.interfaces import Actor, Env
from grupo.core.prompt_text import prompt_as_text
from grupo.core.ranges import PositiveInt
from grupo.core.schedules import Linear
from grupo.core.types import Group, Rollout, Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.hard_sums import (
    EVAL_SEED,
    TRAINING_SEED,
    accuracy_by_terms,
    hard_sums_recipe,
    trained_for_tokens,
)
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.sequential_table import sequential_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
from grupo.evidence.claims.tiny_lm import mean_terms
from grupo.method import Method
from grupo.methods.cog_rethinker import DECOMPOSED, cog_rethinker
from grupo.methods.grpo import grpo
from grupo.methods.pdr import pdr
from grupo.methods.sage_self_hint import sage_self_hint
from grupo.methods.spo_segment import spo_segment
from grupo.methods.thinktuning import thinktuning
from grupo.models.causal_lm import CausalLM
from grupo.models.multi_policy_spec import MultiPolicy, RolePolicy
from grupo.recipe import Recipe
from grupo.rewards.base import PerRolloutReward
from grupo.rollouts.samplers import (
    AtHintLevel,
    DistilledDrafts,
    GroupSampler,
    LeveledHint,
    LikeliestDrafts,
    Rescue,
    RescueAttempt,
    Rewritten,
    TeacherFeedback,
    WithRecitedRescues,
    with_hint,
)
from grupo.rollouts.samplers.hints import append_to_prompt
from grupo.rollouts.samplers.merge_rules import replace_all
from grupo.rollouts.samplers.rescue import GenerationPrompt, RescuePrompts
from grupo.rollouts.samplers.rewritten import PART
from grupo.rollouts.samplers.teacher_feedback import TEACHER_ROLE
from grupo.tasks.digit_sums import (
    ANSWER,
    HINT_PREFIX,
    START,
    TOTAL,
    DigitSums,
    first_additions,
    sum_prompt,
)
from grupo.toy.arithmetic_lm import ensure_trained
from grupo.toy.digit_sums_lm import SolutionsWithMistakes, ToyDigitSumsLM, is_right_working
from grupo.util.importing import load_module_file

GROUP_SIZE, MAX_TOKENS = 8, 300_000
THINKTUNING = "ThinkTuning"  # the arm with a teacher
MAX_NEW_TOKENS = 128  # of an answer: two workings of ten digits
DRAFT_TOKENS = 25  # of a working: the first term and four additions
CAREFUL = SolutionsWithMistakes().careful_additions
SUMS = DigitSums(10, 10, size=64, seed=TRAINING_SEED)
BEGINNER = ToyDigitSumsLM()
TEACHER = ToyDigitSumsLM(solve=SolutionsWithMistakes(mistake_probability=0.0))
DESIGN = SequentialDesign(max_pairs=16, looks=(8, 12, 16))


@component
class LastWorking(PerRolloutReward):
    """1 if an answer ends with a working without a mistake of the sum in the prompt, else 0.

    The result must be the reference answer, since a rewritten prompt has another sum.
    """

    @property
    def reward_range(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def score(self, task: Task, rollout: Rollout) -> float:
        digits = prompt_as_text(task.prompt).split(HINT_PREFIX)[0].split()
        terms = {word[0]: int(word[1:]) for word in digits}
        working = START + rollout.text.rpartition(START)[2]
        ends_right = working.endswith(f"{ANSWER}{task.reference_answer}")
        return float(ends_right and is_right_working(working, terms))


ENV = SingleTurn((RewardTerm("correct", LastWorking()),))


@component
class BeginningOfSolution:
    """The prompt for a hint of a level: the first digits and all but the last of their additions.

    A hint of the levels 1 to 3 has 4, 6 and 8 additions.
    """

    def __call__(self, task: Task, level: int) -> str:
        additions = 2 * level + 2
        digits = [*task.columns["terms"].values()][: additions + 2]
        return (
            sum_prompt(digits) + HINT_PREFIX + first_additions(task.columns["solution"], additions)
        )


def without_last_addition(working: str) -> str:
    """The working without its last addition and its answer; empty if it has no answer.

    >>> without_last_addition(": a6 b2T8 c2T0 is 0")
    ': a6 b2T8 '
    """
    words = working.rpartition(ANSWER)[0].split()
    return "".join(f"{word} " for word in words[:-1])


SELF_HINT = LeveledHint(1, BeginningOfSolution(), without_last_addition, HINT_PREFIX)


@component
class SolvedParts:
    """Builds the prompt with the additions of a sum, made by the policy in shorter sums.

    The first part has the first digits; each other part begins with the result of the previous
    one. If a part has no total for one of its additions, there is no prompt.

    Args:
        additions: Additions of a part.
    """

    additions: PositiveInt = CAREFUL

    async def __call__(self, group: Group, env: Env, actor: Actor) -> RescuePrompts:
        (letter, total), *rest = group.task.columns["terms"].items()
        hint = f"{HINT_PREFIX}{START}{letter}{total} "
        for start in range(0, len(rest), self.additions):
            part = rest[start : start + self.additions]
            shorter = sum_prompt([total, *(digit for _, digit in part)])
            working = (await actor.fork("part", start)(Rollout(), shorter)).text
            totals = re.findall(f"{TOTAL}([0-9])", working)
            if len(totals) != len(part):
                return RescuePrompts()
            words = zip(part, totals, strict=True)
            hint += "".join(f"{letter}{digit}{TOTAL}{total} " for (letter, digit), total in words)
            total = totals[-1]
        streams = tuple((DECOMPOSED, i) for i in range(len(group.rollouts)))
        return RescuePrompts((GenerationPrompt(append_to_prompt(group.task, hint), streams),))


def shorter_sum(working: str) -> str:
    """The sum that is left after the careful additions of a working; empty if none is left.

    >>> shorter_sum(": a6 b2T8 c2T0 d1T1 e3T4 f5T9 is 9")
    'a1 b3 c5 '
    """
    additions = re.findall(f"[a-z]([0-9]){TOTAL}([0-9])", working)
    done, left = additions[:CAREFUL], additions[CAREFUL:]
    return sum_prompt([done[-1][1], *(digit for digit, _ in left)]) if left else ""


GRPO = grpo(GROUP_SIZE, kl_coef=0.0)
PLAIN = GroupSampler(GROUP_SIZE)
SAGE = sage_self_hint(GROUP_SIZE)
SELF_HINTED = tuple(
    RescueAttempt(replace(SELF_HINT, level=level), replace_all, source="with_self_hint")
    for level in (1, 2, 3)
)
DECOMPOSITION = Rescue(PLAIN, (RescueAttempt(SolvedParts(), replace_all, source=DECOMPOSED),))
FEEDBACK = TeacherFeedback(GROUP_SIZE, share=Linear(0.1, 0.01), request="")
REWRITTEN = Rewritten(
    PLAIN, simplify=HINT_PREFIX + START, vary=HINT_PREFIX + START, parse=shorter_sum
)
DRAFTS = DistilledDrafts(
    GROUP_SIZE,
    distill=LikeliestDrafts(1),
    max_tokens=DRAFT_TOKENS,
    request=HINT_PREFIX + "{workspace}",
)
METHODS: Mapping[str, Method] = {
    "GRPO": GRPO,
    "oracle hint": GRPO.replace(sampler=with_hint(PLAIN, "hint", HINT_PREFIX)),
    "SAGE": SAGE.replace(sampler=Rescue(PLAIN, SELF_HINTED)),
    "SAGE-light": SAGE.replace(sampler=AtHintLevel(PLAIN, hint=SELF_HINT)),
    "Cog-Rethinker": cog_rethinker(GROUP_SIZE).replace(
        sampler=WithRecitedRescues(DECOMPOSITION, (DECOMPOSED,))
    ),
    THINKTUNING: thinktuning(GROUP_SIZE).replace(sampler=FEEDBACK),
    "CLPO": GRPO.replace(
        sampler=REWRITTEN, advantage=GroupedBy(GRPO.advantage, ByRewardTerm(PART))
    ),
    "PDR": pdr(GROUP_SIZE).replace(sampler=DRAFTS),
    "SPO": spo_segment(GROUP_SIZE),
}
TESTED = tuple(name for name in METHODS if name != "oracle hint")


def rescue_recipe(arm: str, seed: int, max_tokens: int = MAX_TOKENS) -> Recipe:
    """The recipe of an arm; that of ThinkTuning has the teacher.

    Args:
        arm: Name of the arm.
        seed: Seed of the run.
        max_tokens: Tokens that are generated.
    """
    recipe = hard_sums_recipe(METHODS[arm], seed=seed, max_tokens=max_tokens)
    assert isinstance(recipe.policy, CausalLM)
    policy = replace(recipe.policy, max_new_tokens=MAX_NEW_TOKENS)
    if arm == THINKTUNING:
        teacher = replace(recipe.policy, model=str(TEACHER.model_dir))
        policy = MultiPolicy(policy, (RolePolicy(TEACHER_ROLE, teacher),))
    return recipe.replace(policy=policy, tasks=SUMS, env=ENV)


RECIPE = rescue_recipe("SAGE", 0)


def run(arm: str, seed: int, max_tokens: int = MAX_TOKENS) -> Metrics:
    """Accuracies of the policy after `max_tokens`.

    Args:
        arm: Name of the arm.
        seed: Seed of the run.
        max_tokens: Tokens that are generated.
    """
    for model in (BEGINNER, TEACHER) if arm == THINKTUNING else (BEGINNER,):
        ensure_trained(model)
    learner = trained_for_tokens(rescue_recipe(arm, seed, max_tokens))
    return {**accuracy_by_terms(learner, seed, env=ENV), "steps": float(learner.state.step)}


def right_explanations() -> Mapping[str, float]:
    """Share of the beginner's workings of five and six digits that are right, by what it is shown.

    ExPO has workings explained whose answer stands in the prompt.
    """
    policy = CausalLM(str(BEGINNER.model_dir), max_new_tokens=MAX_NEW_TOKENS).build()
    tasks = DigitSums(5, 6, size=100, seed=EVAL_SEED).load()
    with_answer = [
        append_to_prompt(task, f"{HINT_PREFIX}{ANSWER}{task.reference_answer}") for task in tasks
    ]
    shown = {"the sum": tasks, "the sum and its answer": with_answer}
    return {name: mean_terms(policy, ENV, own)["correct"] for name, own in shown.items()}


def main(folder: str, first_seed: str = "24", end: str = "40") -> None:
    """Run all arms and print the tables."""
    arms = {arm: partial(run, arm) for arm in METHODS}
    runs = stored_runs(Path(folder) / "runs.jsonl", arms, range(int(first_seed), int(end)))
    print(paired_table(runs, ["long", "short", "steps"], "GRPO"))
    print(sequential_table({arm: runs[arm] for arm in TESTED}, "long", "GRPO", DESIGN))
    print("right explanations:", right_explanations())


if __name__ == "__main__":
    load_module_file(Path(__file__)).main(*sys.argv[1:])
