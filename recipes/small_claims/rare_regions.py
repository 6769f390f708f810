"""Treasure Hunt on a real tail: countries of rare regions, in `docs/small_claims.md`.

The data are the countries of the package `countryinfo`, from 53 in Sub-Saharan Africa to 5 in
Melanesia; regions of at most TAIL countries are the tail, 71 of 253. The answer to `country ? ` is
one of them. Each country has two tags, its region and whether it has neighbours by land. All arms
train a model of 50,000 parameters from random weights on the same demonstrations, for the same
steps. With dropped tags, prompts show both, one or none, and the policy infers what is missing. The
arm that is trained on the region's tag alone knows which tag users will show: the upper bound,
which must win first.

Named before the first run of these seeds: `tail`, the share of answers that are of the region that
the prompt shows as its only tag, mean over the regions of the tail, of dropped tags minus tags that
every prompt of the training shows, by the exact sequential sign-flip test with looks at 8, 12 and
16 pairs; it is to be greater. `head` is that of the other regions; `both` that of the tail behind
both tags, where the answer must fit both; `untagged` the share of the tail behind no tag.

python recipes/small_claims/rare_regions.py FILE [FIRST_SEED END]    # FILE has a line for each run
"""

import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
from grupo.evidence.claims.sequential_table import sequential_table
from grupo.evidence.claims.stored_runs import Metrics, stored_runs
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

PROMPT, TAGS = "country ? ", ("region", "neighbours")
TAIL, STEPS = 10, 150  # countries of a region of the tail; steps of training
BASELINE, DROPPED = "tags always shown", "tags dropped"
ARMS: Mapping[str, TaggedDemonstrations] = {
    BASELINE: TaggedDemonstrations(TAGS, drop_all=0.0, drop_each=0.0),
    "the region's tag alone": TaggedDemonstrations(TAGS[:1], drop_all=0.0, drop_each=0.0),
    DROPPED: TaggedDemonstrations(TAGS, drop_all=0.2),
}
METRICS = ("tail", "head", "both", "untagged")
DESIGN = SequentialDesign(max_pairs=16, looks=(8, 12, 16))
ENV = SingleTurn((RewardTerm("same", ExactMatch()),))


@cache
def countries() -> Mapping[str, tuple[str, str]]:
    """Region of each country, and whether it has neighbours."""
    with optional_dependency("countryinfo", "survey"):
        from countryinfo import all_countries
    return {
        country.name(): (country.subregion().title(), "some" if country.borders() else "none")
        for country in all_countries()
        if country.subregion()
    }


def tail() -> set[str]:
    """The regions of the tail."""
    counts = Counter(region for region, _ in countries().values())
    return {region for region, count in counts.items() if count <= TAIL}


def prompt(*values: str) -> str:
    """The prompt that shows the tags of some values, in the order of `TAGS`.

    >>> prompt("Melanesia")
    '<region=Melanesia>country ? '
    """
    return "".join(map(tag_text, TAGS, values)) + PROMPT


def recipe(model: str, sampler: TaggedDemonstrations, seed: int) -> Recipe:
    """Supervised training on the countries.

    Args:
        model: Folder of the untrained model.
        sampler: Makes demonstrations with tags.
        seed: Seed of the run.
    """
    tasks = [
        Task(name, PROMPT, columns={**dict(zip(TAGS, values, strict=True)), "solution": name})
        for name, values in countries().items()
    ]
    return Recipe(
        policy=CausalLM(model, max_new_tokens=4, tokens_per_microbatch=8192),
        env=ENV,
        tasks=InMemoryTasks(tasks),
        eval_tasks=0,
        method=Method(sampler=sampler, advantage=identity, loss=NLL(), aggregation=token_mean),
        max_steps=STEPS,
        prompts_per_step=128,
        learning_rate=Warmup(0.05, Cosine(1e-2, 1e-3)),
        seed=seed,
    )


def measured(policy: HasActor, seed: int) -> Metrics:
    """Shares of answers that fit the tags of their prompts, and of the tail behind no tag."""
    pairs = sorted(set(countries().values()))
    regions, rare = sorted({region for region, _ in pairs}), tail()
    shown = [(region,) for region in regions] + pairs
    prompts = [prompt(*values) for values in shown]
    fits = {
        values: fmean(countries().get(text, ())[: len(values)] == values for text in texts)
        for values, texts in zip(shown, _answers(policy, prompts, 40, seed), strict=True)
    }
    (untagged,) = _answers(policy, [PROMPT], 1000, seed)
    return {
        "tail": _mean(fits, ((x,) for x in regions if x in rare)),
        "head": _mean(fits, ((x,) for x in regions if x not in rare)),
        "both": _mean(fits, (x for x in pairs if x[0] in rare)),
        "untagged": fmean(countries().get(text, ("",))[0] in rare for text in untagged),
    }


def _mean(shares: Mapping[tuple[str, ...], float], keys: Iterable[tuple[str, ...]]) -> float:
    return fmean(shares[key] for key in keys)


def _answers(policy: HasActor, prompts: Sequence[str], count: int, seed: int) -> list[list[str]]:
    """Texts of some answers to each prompt, without their tags."""
    tasks = [Task(text, text) for text in prompts]
    groups = run_rollouts(policy.actor(derive_key(seed, "regions")), ENV, tasks, count)
    return [[without_tags(r.text, TAGS).strip() for r in g.rollouts] for g in groups]


def run(sampler: TaggedDemonstrations, seed: int) -> Metrics:
    """The shares of an arm after training from random weights."""
    pairs = countries().values()
    tags = [tag_text(name, pair[i]) for i, name in enumerate(TAGS) for pair in pairs]
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = word_tokenizer([PROMPT], [*dict.fromkeys(tags), *countries()])
        TINY.save_untrained(Path(folder), tokenizer, seed)
        return measured(trained(recipe(folder, sampler, seed)).policy, seed)


def main(file: Path, seeds: Sequence[int]) -> None:
    """Run what is missing in the file and print the tables."""
    torch.set_num_threads(1)
    arms = {name: lambda seed, s=sampler: run(s, seed) for name, sampler in ARMS.items()}
    runs = stored_runs(file, arms, seeds)
    if len(seeds) > 1:
        print(paired_table(runs, METRICS, BASELINE))
        tested = {name: runs[name] for name in (BASELINE, DROPPED)}
        print(sequential_table(tested, "tail", BASELINE, DESIGN))


if __name__ == "__main__":
    bounds = [int(text) for text in sys.argv[2:4]] or [0, 16]
    main(Path(sys.argv[1]), range(*bounds))
