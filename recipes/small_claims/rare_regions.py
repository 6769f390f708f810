"""Treasure Hunt on a real tail: countries of rare regions, in `docs/small_claims.md`.

The data are the countries of the package `countryinfo` in its 22 regions, from 54 in Latin America
to 5 in Melanesia; regions of at most 10 countries, with a third of all countries together, are the
tail. The answer to `country ? ` is one of the countries. Three arms train a model of 50,000
parameters on the same demonstrations for the same steps: with tags that are dropped at random and
then inferred, as the paper has it, with tags that every prompt shows, and without tags.

Named before the first run: `tail`, the share of answers to `<region=Melanesia>country ? ` that are
of the region, mean over the tail, of dropped tags minus tags that every prompt shows, by the exact
sequential sign-flip test with looks at 8, 12 and 16 pairs; it is to be greater. `tail_untagged` is
the share of the tail in answers to the prompt without a tag.

python recipes/small_claims/rare_regions.py FILE [FIRST_SEED END]    # FILE has a line for each run
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from statistics import fmean

import torch

from grupo.algo.advantages import identity
from grupo.algo.aggregation import token_mean
from grupo.algo.losses import NLL
from grupo.compare.sequential_design import SequentialDesign
from grupo.core.schedules import Cosine, Warmup
from grupo.core.types import Task
from grupo.envs import RewardTerm, SingleTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.published_runs import published_runs
from grupo.evidence.claims.sequential_table import sequential_table
from grupo.evidence.claims.stored_runs import Metrics
from grupo.evidence.claims.tiny_lm import TINY, trained
from grupo.method import Method
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rewards import ExactMatch
from grupo.rollouts.evaluate import HasActor, run_rollouts
from grupo.rollouts.samplers import TaggedDemonstrations, without_tags
from grupo.rollouts.samplers.tagged import tag_text
from grupo.tasks import InMemoryTasks
from grupo.toy.tokenizers import word_tokenizer
from grupo.util.optional_deps import optional_dependency
from grupo.util.rng import derive_key

PROMPT, REGION = "country ? ", "region"
TAIL, STEPS = 10, 160  # countries of a region of the tail; steps of training
DESIGN = SequentialDesign(max_pairs=16, looks=(8, 12, 16))
ENV = SingleTurn((RewardTerm("same", ExactMatch()),))
ARMS: Mapping[str, TaggedDemonstrations] = {
    "no tags": TaggedDemonstrations(()),
    "tags always shown": TaggedDemonstrations((REGION,), drop_all=0.0, drop_each=0.0),
    "tags dropped": TaggedDemonstrations((REGION,)),
}
METRICS = ("tail", "head", "tail_untagged")


@cache
def countries() -> Mapping[str, str]:
    """The region of each country."""
    with optional_dependency("countryinfo", "survey"):
        from countryinfo import all_countries
    found = {country.name(): country.subregion() for country in all_countries()}
    return {name: region for name, region in found.items() if region and name.isascii()}


def is_tail(region: str) -> bool:
    """Whether a region has at most `TAIL` countries."""
    return Counter(countries().values())[region] <= TAIL


def recipe(model: str, sampler: TaggedDemonstrations, seed: int) -> Recipe:
    """Supervised training on the countries.

    Args:
        model: Folder of the untrained model.
        sampler: Makes demonstrations with tags.
        seed: Seed of the run.
    """
    tasks = [
        Task(name, PROMPT, columns={REGION: region, "solution": name})
        for name, region in countries().items()
    ]
    return Recipe(
        policy=CausalLM(model, max_new_tokens=4, tokens_per_microbatch=8192),
        env=ENV,
        tasks=InMemoryTasks(tasks),
        eval_tasks=0,
        method=Method(sampler=sampler, advantage=identity, loss=NLL(), aggregation=token_mean),
        max_steps=STEPS,
        prompts_per_step=32,
        learning_rate=Warmup(0.05, Cosine(1e-2, 1e-3)),
        seed=seed,
    )


def measured(policy: HasActor, seed: int) -> Metrics:
    """Shares of answers that are of the region of the tag, and of the tail without a tag."""
    regions = sorted(set(countries().values()))
    prompts = [f"{tag_text(REGION, region)}{PROMPT}" for region in regions]
    of_region = {
        region: fmean(countries().get(text) == region for text in texts)
        for region, texts in zip(regions, _answers(policy, prompts, 40, seed), strict=True)
    }
    (untagged,) = _answers(policy, [PROMPT], 1000, seed)
    named = [countries()[text] for text in untagged if text in countries()]
    return {
        "tail": fmean(share for region, share in of_region.items() if is_tail(region)),
        "head": fmean(share for region, share in of_region.items() if not is_tail(region)),
        "tail_untagged": fmean(map(is_tail, named)),
    }


def _answers(policy: HasActor, prompts: Sequence[str], count: int, seed: int) -> list[list[str]]:
    """Texts of some answers to each prompt, without their tags."""
    tasks = [Task(prompt, prompt) for prompt in prompts]
    groups = run_rollouts(policy.actor(derive_key(seed, "regions")), ENV, tasks, count)
    return [[without_tags(r.text, [REGION]).strip() for r in g.rollouts] for g in groups]


def run(sampler: TaggedDemonstrations, seed: int) -> Metrics:
    """The shares of an arm after training from random weights."""
    tags = [tag_text(REGION, region) for region in set(countries().values())]
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = word_tokenizer([PROMPT], [*tags, *countries()])
        TINY.save_untrained(Path(folder), tokenizer, seed)
        return measured(trained(recipe(folder, sampler, seed)).policy, seed)


def main(file: Path, seeds: Sequence[int]) -> None:
    """Run what is missing in the file and print the tables."""
    torch.set_num_threads(1)
    arms = {name: lambda seed, s=sampler: run(s, seed) for name, sampler in ARMS.items()}
    runs = published_runs(file, arms, seeds)
    if len(seeds) > 1:
        print(paired_table(runs, METRICS, "tags always shown"))
        tested = {name: runs[name] for name in ("tags always shown", "tags dropped")}
        print(sequential_table(tested, "tail", "tags always shown", DESIGN))


if __name__ == "__main__":
    bounds = [int(text) for text in sys.argv[2:4]] or [0, 16]
    main(Path(sys.argv[1]), range(*bounds))
