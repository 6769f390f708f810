"""CALM with a model as intervener, on production plans: `docs/guidance_shown/calm_storm.md`.

In `calm_storm.py` a rule finds the first flaw of an answer. Here a second model of 0.1 million
parameters reads the plan and the answer, quotes the flawed part and writes the hint. It was trained
on flawed answers with the rule's replies, of which a tenth are about another row or missing, so
that it errs. GRPO alone generates as many tokens as CALM and GRPO together, those of all
corrections and of the intervener counted.

Named before the first run of these seeds: `correct` on held-out plans, CALM with the model then
GRPO, minus GRPO alone, by the exact sequential sign-flip test with looks at 8 and 12 pairs; it is
to be greater.

python recipes/guidance/asked_intervener.py FOLDER FILE [FIRST_SEED END]
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import torch
from calm_storm import ARCHITECTURE
from calm_storm_table import METRICS, Plans
from short_programs import TOKENS, ShortPlans, find_flaw, flawed_answer

from grupo.compare.sequential_design import SequentialDesign
from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.published_runs import published_runs
from grupo.evidence.claims.sequential_table import sequential_table
from grupo.evidence.claims.tiny_lm import demonstration_recipe, mean_terms, trained
from grupo.models.causal_lm import CausalLM
from grupo.models.multi_policy_spec import MultiPolicy, RolePolicy
from grupo.pipeline import CollectStage, Pipeline
from grupo.rewards import ExactMatch
from grupo.rollouts.samplers.intervener import INTERVENER_ROLE, AskedIntervener
from grupo.toy.tokenizers import word_tokenizer
from grupo.util.rng import make_rng

NONE, SEPARATOR, QUESTION = "none ", "=> ", "flaw ? "
ASKED = AskedIntervener("{task}{answer}" + QUESTION, SEPARATOR, NONE.strip())
ERRORS = 0.1  # of the replies that the intervener learns from
DESIGN = SequentialDesign(max_pairs=12, looks=(8, 12))


def reply(task: Task, answer: str) -> str:
    """What the intervener learns to reply: the rule's flaw and hint, with errors."""
    rng = make_rng(0, "intervener", task.key)
    flaw = find_flaw(task, answer)
    if flaw is None or rng.random() < ERRORS / 2:
        return NONE
    part, hint = flaw
    rows = [row for row in answer.split("; ") if row.startswith(part.split(" ")[0])]
    if rng.random() < ERRORS / 2 and len(rows) > 1:
        part = rng.choice(rows)
    return f"{part}{SEPARATOR}{hint}"


def questions(count: int) -> list[Task]:
    """Plans with a flawed answer and the reply of the intervener as `solution`."""
    found = []
    for plan in ShortPlans(count, seed=5000).load():
        (answer,) = flawed_answer(plan)
        prompt = f"{plan.prompt}{answer}{QUESTION}"
        found.append(Task(prompt, prompt, columns={"solution": reply(plan, answer)}))
    return found


def save_intervener(folder: Path, steps: int = 1500, count: int = 5000) -> Path:
    """Train the intervener, and return its folder."""
    tokens = (*TOKENS, NONE, SEPARATOR, QUESTION)
    ARCHITECTURE.save_untrained(folder / "start", word_tokenizer([], tokens))
    recipe = demonstration_recipe(
        folder / "start", questions(count), lambda task: [task.columns["solution"]], steps=steps
    )
    trained(recipe).policy.export(folder / "model")
    return folder / "model"


class AskedPlans(Plans):
    """The arms of `calm_storm_table.py`, with a model as intervener.

    Args:
        folder: The folder, which has both models and the pipelines.
    """

    @cached_property
    def intervener(self) -> Path:
        """The folder of the intervener."""
        model = self.folder / "intervener" / "model"
        return model if model.exists() else save_intervener(self.folder / "intervener")

    def pipeline(self, seed: int) -> Pipeline:
        """The pipeline of a seed, whose collection asks the intervener."""
        collect, *others = super().pipeline(seed).stages
        assert isinstance(collect, CollectStage)
        asked = CausalLM(str(self.intervener), max_new_tokens=16, tokens_per_microbatch=8192)
        recipe = collect.recipe.replace(
            policy=MultiPolicy(collect.recipe.policy, (RolePolicy(INTERVENER_ROLE, asked),)),
            method=collect.recipe.method.replace(sampler=replace(collect.sampler, find_flaw=ASKED)),
        )
        return Pipeline((replace(collect, recipe=recipe, sampler=recipe.method.sampler), *others))

    def agreement(self, count: int = 100) -> float:
        """Share of answers to new plans in which the intervener replies what the rule says."""
        plans = [(plan, *flawed_answer(plan)) for plan in ShortPlans(count, seed=6000).load()]
        told = [find_flaw(*x) for x in plans]
        tasks = [
            Task(
                str(i),
                f"{plan.prompt}{answer}{QUESTION}",
                SEPARATOR.join(flaw) if flaw else NONE,
            )
            for i, ((plan, answer), flaw) in enumerate(zip(plans, told, strict=True))
        ]
        policy = CausalLM(str(self.intervener), max_new_tokens=16).build()
        env = SingleTurn((RewardTerm("same", ExactMatch()),))
        return mean_terms(policy, env, tasks, attempts=1)["same"]


def main(folder: Path, file: Path, seeds: Sequence[int]) -> None:
    """Run what is missing in the file and print the tables."""
    torch.set_num_threads(1)
    plans = AskedPlans(folder)
    arms = {"GRPO": plans.grpo, "CALM": plans.calm, "CALM, GRPO": plans.storm}
    runs = published_runs(file, arms, seeds)
    if len(seeds) > 1:
        print(paired_table(runs, METRICS, "GRPO"))
        tested = {name: runs[name] for name in ("GRPO", "CALM, GRPO")}
        print(sequential_table(tested, "correct", "GRPO", DESIGN))


if __name__ == "__main__":
    bounds = [int(text) for text in sys.argv[3:5]] or [0, 12]
    main(Path(sys.argv[1]), Path(sys.argv[2]), range(*bounds))
