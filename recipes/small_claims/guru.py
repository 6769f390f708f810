"""GURU in small: RL on one of six domains, tested on all, from two mixes of pretraining.

Writes a table of `docs/small_claims.md`. Each mix has three domains in plenty and three hardly at
all, so that every domain is in both roles. Named before the first run: domains in plenty gain from
RL on other domains, more than the others do; those need RL on themselves.

python recipes/small_claims/guru.py FOLDER [FIRST_SEED END]

Seeds in FOLDER are not repeated, so that two processes can share them; the tables are of all seeds
that have ended.
"""

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import fmean

import torch
from six_domains import (
    DOMAINS,
    ENV,
    TAGS,
    demonstrate,
    domain_tasks,
    held_out_tasks,
    pretraining_tasks,
    training_tasks,
)

from grupo.compare.table_formats import markdown
from grupo.core.paper import Paper, Source
from grupo.evidence.claims.paired_table import paired_table, signed
from grupo.evidence.claims.tiny_lm import demonstration_recipe, mean_terms, trained
from grupo.methods.grpo import grpo
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rollouts.evaluate import HasActor
from grupo.tasks import InMemoryTasks
from grupo.toy.tokenizers import word_tokenizer
from grupo.toy.untrained_llama import LlamaArchitecture
from grupo.util.statistics import student_t_mean

PAPER = Paper(
    title="Revisiting Reinforcement Learning for LLM Reasoning from A Cross-Domain Perspective",
    kind="environment",
    use="Tasks of several domains are trained on together, each with a scorer of its own.",
    tags=("reward", "curriculum"),
    catalogue=("guru-cross-domain",),
    source=Source(
        "code",
        "LLM360/Reasoning360, verl/utils/reward_score: __init__.py (the router), zebra_puzzle.py,"
        " puzzles_dataset.py, graph_dataset.py, codeio.py, tablereason.py; abstract and project"
        " page for the claim",
    ),
    checked=("golden", "run"),
    missing=(
        "The 92,000 prompts and their curation by the pass rates of a weak and a strong model;"
        " SurveyedTasks with Between selects by one model.",
        "Graph search: ExactMatch; questions from the web: a judge.",
    ),
    deviations=(
        "Zebra tables with additional rows or cells score 0: the code ignores these.",
        "Several answers about a table are compared without their order, not sorted as text.",
        "An order must be a list in JSON or Python; the code also accepts words without quotes.",
        "GRPO's mean over answers instead of the mean over tokens.",
    ),
    shown=(
        "docs/small_claims.md#six-domains",
        "tests/recipes/test_six_domains.py::test_each_domain_has_its_scorer",
    ),
)
SEEDS = 8
PRETRAINING_STEPS = 4000
STEPS = 80
ATTEMPTS = 4
PLENTY, HARDLY = 1.0, 0.05  # shares in pretraining
MIXES = {"A": ("math", "code", "science"), "B": ("logic", "simulation", "tabular")}
ALL = "all six"
ARCHITECTURE = LlamaArchitecture(context_length=128)
Accuracies = dict[str, float]  # by domain
Gains = Mapping[str, Mapping[str, Accuracies]]  # of a mix, of what was trained on


def pretrained(folder: Path, mix: str, seed: int) -> Path:
    """The folder of a model of 0.1 million parameters, trained on demonstrations of a mix."""
    plenty = MIXES[mix]
    shares = {domain: PLENTY if domain in plenty else HARDLY for domain in DOMAINS}
    tasks = pretraining_tasks(shares, size=32 * PRETRAINING_STEPS)
    every = [task for domain in DOMAINS for task in domain_tasks(domain)]
    texts = [text for t in every for text in (str(t.prompt), str(t.columns["shown"]))]
    start, model = folder / "start", folder / "model"
    ARCHITECTURE.save_untrained(start, word_tokenizer(texts, TAGS), seed)
    steps = PRETRAINING_STEPS
    recipe = demonstration_recipe(start, tasks, demonstrate, steps=steps, seed=seed)
    trained(recipe).policy.export(model)
    return model


def recipe(model: Path, domains: Iterable[str], seed: int) -> Recipe:
    """GRPO on the tasks of some domains; `reward/correct/DOMAIN` are its curves."""
    tasks = [task for domain in domains for task in training_tasks(domain)]
    return Recipe(
        policy=CausalLM(str(model), max_new_tokens=24, tokens_per_microbatch=8192),
        env=ENV,
        tasks=InMemoryTasks(tasks),
        eval_tasks=0,
        method=grpo(kl_coef=0.0),
        max_steps=STEPS,
        prompts_per_step=8,
        learning_rate=5e-4,
        seed=seed,
    )


def accuracies(policy: HasActor, seed: int) -> Accuracies:
    """The mean score on the held-out tasks of each domain."""
    return {
        domain: mean_terms(policy, ENV, held_out_tasks(domain), attempts=ATTEMPTS, seed=seed)[
            "correct"
        ]
        for domain in DOMAINS
    }


def run_seed(folder: Path, seed: int) -> None:
    """Pretrain both mixes, train on each domain and on all, and write all accuracies."""
    path = folder / f"seed{seed}.json"
    if path.exists():
        return
    found: dict[str, dict[str, Accuracies]] = {}
    for mix in MIXES:
        model = pretrained(folder / f"seed{seed}" / mix, mix, seed)
        start = recipe(model, DOMAINS, seed).policy.build()
        found[mix] = {"": accuracies(start, seed)}
        for arm, domains in {**{d: (d,) for d in DOMAINS}, ALL: DOMAINS}.items():
            policy = trained(recipe(model, domains, seed)).policy
            found[mix][arm] = accuracies(policy, seed)
    path.write_text(json.dumps(found))


def role_means(results: Gains) -> dict[str, Accuracies]:
    """Mean accuracies of a seed by what was trained on and by the tested domains' role in the mix.

    The result has, for no RL, RL on the tested domain, on one of the five others and on all six,
    the mean over domains that the mix has in plenty, and over the other three.
    """
    roles: dict[str, dict[str, list[float]]] = {}
    for mix, by_arm in results.items():
        for arm, tested in by_arm.items():
            for domain, accuracy in tested.items():
                role = "plenty" if domain in MIXES[mix] else "hardly"
                name = {"": "no RL", ALL: ALL, domain: "the domain"}.get(arm, "another domain")
                roles.setdefault(name, {}).setdefault(role, []).append(accuracy)
    return {name: {r: fmean(x) for r, x in by_role.items()} for name, by_role in roles.items()}


def transfer_table(seeds: list[Gains], mix: str) -> str:
    """Mean gain of each domain by what was trained on; domains of the mix in plenty first."""
    columns = sorted(DOMAINS, key=lambda domain: domain not in MIXES[mix])
    start = [f"{fmean(seed[mix][''][d] for seed in seeds):.2f}" for d in columns]
    rows = [
        [arm, *(f"{fmean(s[mix][arm][d] - s[mix][''][d] for s in seeds):+.2f}" for d in columns)]
        for arm in (*columns, ALL)
    ]
    header = ["trained on", *(f"{d}{'' if d in MIXES[mix] else ' (hardly)'}" for d in columns)]
    return markdown([header, ["accuracy before", *start], *rows])


def print_tables(seeds: list[Gains]) -> None:
    """Print a transfer table of each mix, the means by role, and the differences of the claim."""
    for mix in MIXES:
        print(f"{mix}\n{transfer_table(seeds, mix)}")
    means = [role_means(seed) for seed in seeds]
    runs = {arm: [seed[arm] for seed in means] for arm in means[0]}
    print(paired_table(runs, ["plenty", "hardly"], "no RL"))

    def gain(seed: Mapping[str, Accuracies], arm: str, role: str) -> float:
        return seed[arm][role] - seed["no RL"][role]

    other, own = "another domain", "the domain"
    more = [gain(s, other, "plenty") - gain(s, other, "hardly") for s in means]
    need = [gain(s, own, "hardly") - gain(s, other, "hardly") for s in means]
    print(f"gain from another domain, plenty - hardly: {signed(student_t_mean(more))}")
    print(f"gain where hardly, the domain - another: {signed(student_t_mean(need))}")


def main() -> None:
    """Run some seeds, all by default, and print the tables of all that have ended."""
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    first, end = map(int, sys.argv[2:]) if sys.argv[2:] else (0, SEEDS)
    for seed in range(first, end):
        run_seed(folder, seed)
    paths = sorted(folder.glob("seed*.json"))
    print(f"{len(paths)} seeds")
    if len(paths) > 1:
        print_tables([json.loads(path.read_text()) for path in paths])


if __name__ == "__main__":
    main()
