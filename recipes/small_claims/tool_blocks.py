"""Tools in blocks, trained by TAPO: the table of `docs/small_claims.md`.

Half of the questions contain their answer; of the others, a search finds it. The demonstrations
search before every second answer, whether it helps or not.
"""

import random
import tempfile
from pathlib import Path
from statistics import fmean

import torch

from grupo.algo.advantages import Center, OverlongPenalty, ScaleByStd, chain
from grupo.algo.aggregation import token_mean
from grupo.algo.filters import Filter, KeepMixed, keep_all
from grupo.algo.losses import Clip
from grupo.algo.minibatches import Updates
from grupo.algo.ratios import CappedRatio
from grupo.core.types import Task
from grupo.envs import MultiTurn, RewardTerm
from grupo.envs.tools import Block, BlockTools, KeywordSearch
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.tiny_lm import train_tiny_lm, trained
from grupo.method import Method
from grupo.methods.grpo import grpo
from grupo.models.causal_lm import CausalLM
from grupo.recipe import Recipe
from grupo.rewards import BlockAnswer, FactMatch
from grupo.rollouts.curricula import DynamicSampling, ShuffledTasks
from grupo.rollouts.evaluate import HasActor, run_rollouts
from grupo.rollouts.samplers import GroupSampler
from grupo.tasks import InMemoryTasks
from grupo.util.rng import derive_key

SEEDS = 8
STEPS = 60
CITIES = [f"{a}{b}" for a in ("ba", "ce", "di", "fo", "gu") for b in ("lum", "nor", "pes", "tan")]
COLOURS = ("red", "blue", "green", "white", "black", "brown")
COLOUR_OF = {city: random.Random(city).choice(COLOURS) for city in CITIES}
HARD = [Task(f"flag of {city} ? ", f"flag of {city} ? ", COLOUR_OF[city]) for city in CITIES]
EASY = [
    Task(f"say {colour} for {city} ? ", f"say {colour} for {city} ? ", colour)
    for city, colour in zip(CITIES, COLOURS * 4, strict=False)
]
TASKS = [*HARD, *EASY]
TAGS = [f"<{end}{tag}>" for tag in ("think", "search", "answer", "response") for end in ("", "/")]


def fact(city: str) -> str:
    """The document about a city."""
    return f"flag of {city} is {COLOUR_OF[city]}"


def demonstrate(task: Task) -> list[str]:
    """A search or an answer after a question, an answer after a result; some are guesses."""
    prompt = str(task.prompt)
    rng = random.Random(prompt)
    city = next(city for city in CITIES if f" {city} ?" in prompt)
    knows = "response" in prompt or prompt.startswith("say")
    answers = [
        task.reference_answer if knows and rng.random() < 0.7 else rng.choice(COLOURS)
        for _ in range(4)
    ]
    ends = [f"<answer>{answer}</answer>" for answer in answers]
    if "response" in prompt:
        return ends
    return [
        f"<think>{city}</think><search>flag of {city}</search>",
        f"<think>{city}</think><search>flag of {city}</search>",
        *(f"<think>{city}</think>{end}" for end in ends[:2]),
    ]


def continued(task: Task) -> Task:
    """The task after a search, as a prompt of its own: the model has no chat template."""
    city = next(city for city in CITIES if f" {city} ?" in str(task.prompt))
    call = f"<think>{city}</think><search>flag of {city}</search>"
    prompt = f"{task.prompt}{call}<response>{fact(city)}</response>"
    return Task(prompt, prompt, task.reference_answer)


def tapo(max_length: int, overlong_buffer: int, group_filter: Filter) -> Method:
    """DAPO's loss with a dual clip of 10, 4 minibatches, and groups that are kept by accuracy."""
    return Method(
        curriculum=DynamicSampling(ShuffledTasks(), 10),
        sampler=GroupSampler(8),
        filter=group_filter,
        advantage=chain(OverlongPenalty(max_length, overlong_buffer), Center(), ScaleByStd()),
        loss=Clip(0.2, 0.28, CappedRatio(10.0)),
        aggregation=token_mean,
        updates=Updates(minibatches=4),
    )


ARMS = {
    "GRPO": grpo(kl_coef=0.0).replace(updates=Updates(minibatches=4)),
    "TAPO": tapo(24, 20, KeepMixed("answer/acc")),
    "TAPO without the filter": tapo(24, 20, keep_all),
}


def recipe(model: str, documents: str, method: Method, seed: int) -> Recipe:
    """Four turns at most; the policy stops at the end of each call."""
    factory = BlockTools((Block("search", KeywordSearch(documents, top_k=1)),))
    return Recipe(
        policy=CausalLM(
            model,
            max_new_tokens=16,
            tokens_per_microbatch=8192,
            stop_strings=factory.stop_strings,
            apply_chat_template=False,
        ),
        env=MultiTurn(factory, (RewardTerm("answer", BlockAnswer(FactMatch())),), max_turns=4),
        tasks=InMemoryTasks(TASKS),
        eval_tasks=0,
        method=method,
        max_steps=STEPS,
        prompts_per_step=8,
        learning_rate=5e-4,
        seed=seed,
    )


def measured(policy: HasActor, chosen: Recipe, seed: int) -> dict[str, float]:
    """Accuracy and calls, for both kinds of questions, and calls per accurate answer."""
    found: dict[str, list[float]] = {}
    for name, tasks in (("needed", HARD), ("not_needed", EASY)):
        groups = run_rollouts(policy.actor(derive_key(seed, name)), chosen.env, tasks, 8)
        rollouts = [rollout for group in groups for rollout in group.rollouts]
        found[f"acc/{name}"] = [r.reward_terms["answer/acc"] for r in rollouts]
        found[f"calls/{name}"] = [r.reward_terms.get("tool_calls", 0.0) for r in rollouts]
    calls = fmean((*found["calls/needed"], *found["calls/not_needed"]))
    accurate = fmean((*found["acc/needed"], *found["acc/not_needed"]))
    means = {name: fmean(values) for name, values in found.items()}
    return {**means, "calls_per_accurate": calls / max(accurate, 1e-3)}


def main() -> None:
    """Train the model, then each arm with all seeds; print the table."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        documents = Path(name) / "facts.txt"
        documents.write_text("\n".join(map(fact, CITIES)))
        shown = [*TASKS, *map(continued, TASKS)]
        single = [*TAGS, *CITIES]
        model = str(train_tiny_lm(Path(name), shown, demonstrate, steps=300, tags=single))
        first = recipe(model, str(documents), ARMS["GRPO"], 0)
        start = first.policy.build()
        runs = {"untrained": [measured(start, first, seed) for seed in range(SEEDS)]}
        print(runs["untrained"][0], flush=True)
        for arm, method in ARMS.items():
            chosen = [recipe(model, str(documents), method, seed) for seed in range(SEEDS)]
            runs[arm] = [measured(trained(c).policy, c, seed) for seed, c in enumerate(chosen)]
    columns = ["acc/needed", "acc/not_needed", "calls/needed", "calls/not_needed"]
    print(paired_table(runs, [*columns, "calls_per_accurate"], "untrained"))


if __name__ == "__main__":
    main()
