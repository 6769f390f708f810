"""Agent Q: search over the turns of an agent, and DPO on siblings. Putta et al., arXiv:2408.07199.

The environment is `shop.py`. A toy model clones demonstrations that are right on 60 % of the
pages, and then takes two rounds of search and DPO. With `--model smollm2` a pretrained model
searches the same shop, ranks its own actions in words, and learns from the pairs.

python recipes/agents/agent_q.py FOLDER [SEEDS]             # the toy model
python recipes/agents/agent_q.py FOLDER --model smollm2     # a chat model
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from shop import Shop, demonstrated, texts_of, visits

from grupo import CausalLM, Recipe, Task
from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import ChosenNLL, Logistic, Preference
from grupo.algo.losses.base import Loss
from grupo.algo.losses.contrastive import rollout_log_ratio
from grupo.algo.losses.sibling_preference import numbered_pairs
from grupo.algo.minibatches import Updates
from grupo.core.paper import Paper, Source
from grupo.core.search_tree import CriticUCT, MixedValue
from grupo.core.sibling_rules import AllSiblings
from grupo.envs import MultiTurn
from grupo.evidence.claims.tiny_lm import mean_terms, train_tiny_lm
from grupo.method import Method
from grupo.rollouts.samplers import TreePairs
from grupo.rollouts.samplers.step_critics import SelfRanking, StepCritic, no_critic
from grupo.tasks import FromFunction
from grupo.training.learner import Learner
from grupo.util.console import print_line

PAPER = Paper(
    title="Agent Q: Advanced Reasoning and Learning for Autonomous AI Agents",
    use="An agent fails on tasks of several turns, and its sessions can be forked.",
    tags=("tree", "preferences", "agents"),
    kind="pipeline",
    catalogue=("agent-q",),
    checked=("golden", "run"),
    source=Source(
        "third_party",
        "notes on the paper with its formulas of selection, mixture and pairs (arXiv:2408.07199);"
        " sentient-engineering/agent-q, agentq/core/mcts/browser_mcts.py, another implementation;"
        " the paper was not opened",
    ),
    plan="a step is a round of search, then two updates on its pairs, ten for the toy; our choice",
    missing=(
        "Plans, thoughts and explanations as parts of an action.",
        "WebShop and web pages: the environment is a shop of three pages, and any MultiTurn.",
        "Search at test time.",
    ),
    deviations=(
        "theta is 0.2, beta 0.1 and c 1: the paper's values are not known to us.",
        "The critic's values are 1, 1/2, 1/3, ... by rank, as in the other implementation.",
        "The toy model adds the likelihood of the better actions, without which it unlearns them.",
        "Pairs are trained in the round that found them: no replay buffer over rounds.",
    ),
    shown=(
        "tests/recipes/test_agent_q.py::test_two_rounds_of_search_raise_the_success_of_cloning",
    ),
)
RIGHT = 0.6  # of the demonstrated actions; the others are drawn among those of the page
VISITS, WALKS = 6, 40  # visits, and demonstrations of each
MAX_TURNS = 5
ROUNDS = 2


def agent_q(
    iterations: int = 16,
    branches: int = 4,
    theta: float = 0.2,
    alpha: float = 0.5,
    beta: float = 0.1,
    *,
    critic: StepCritic = SelfRanking(),
    nll_coef: float = 0.0,
    epochs: int = 2,
    minibatches: int = 1,
) -> Method:
    """DPO on all siblings of a search over turns whose mixed values differ by more than `theta`.

    The reference policy is the one that sampled, by its recorded log-probabilities. A step is a
    round.

    Args:
        iterations: Rollouts that are completed and scored for each task.
        branches: Actions that are sampled from a page.
        theta: Smallest difference of the values of a pair.
        alpha: Share of the outcomes in a value; the rest is the critic's.
        beta: Inverse temperature of DPO.
        critic: Values the actions of a page.
        nll_coef: Weight of the likelihood of the better actions; 0 leaves it out.
        epochs: Passes over the pairs of a round.
        minibatches: Updates of a pass.
    """
    loss: Loss = Preference(rollout_log_ratio, Logistic(beta), numbered_pairs)
    return Method(
        sampler=TreePairs(
            iterations,
            branches,
            max_depth=MAX_TURNS,
            step_end="",
            priority=CriticUCT(1.0, MixedValue(alpha)),
            critic=critic,
            rule=AllSiblings(theta, alpha),
        ),
        advantage=identity,
        loss=loss + nll_coef * ChosenNLL(numbered_pairs) if nll_coef else loss,
        aggregation=group_mean,
        updates=Updates(epochs, minibatches),
    )


def cloned_pages() -> list[Task]:
    """The demonstrations that the toy model clones."""
    rng = random.Random("pages")
    walks = (visit for visit in shop_visits() for _ in range(WALKS))
    pages = (page for visit in walks for page in demonstrated(visit, rng, RIGHT))
    return [replace(page, key=f"{number} {page.key}") for number, page in enumerate(pages)]


def action(task: Task) -> Sequence[str]:
    """The demonstrated action."""
    return [str(task.reference_answer)]


def shop_visits() -> Iterator[Task]:
    """The visits: cloned, searched and evaluated, for the toy model learns them by heart."""
    return visits(0, VISITS)


def save_model(folder: Path, steps: int = 80) -> Path:
    """Clone the demonstrations, and return the folder of the model. A page is one token."""
    tokens = {text for visit in shop_visits() for text in texts_of(visit)}
    return train_tiny_lm(folder, cloned_pages(), action, steps=steps, tags=tokens)


def toy_recipe(model: Path, seed: int = 0) -> Recipe:
    """Two rounds on the toy model, valued by outcomes alone: it cannot rank in words.

    With DPO alone its probability leaves both actions of a pair for texts that are no actions; the
    likelihood of the better action keeps it.
    """
    return Recipe(
        policy=CausalLM(str(model), max_new_tokens=8, tokens_per_microbatch=8192),
        env=MultiTurn(Shop, max_turns=MAX_TURNS),
        tasks=FromFunction(shop_visits),
        eval_tasks=0,
        method=agent_q(
            iterations=24, branches=4, alpha=1.0, critic=no_critic, nll_coef=1.0, epochs=10
        ),
        max_steps=ROUNDS,
        prompts_per_step=VISITS,
        learning_rate=1e-3,
        seed=seed,
    )


def chat_recipe(model: str) -> Recipe:
    """Two rounds of a chat model, which ranks its own actions."""
    return toy_recipe(Path(), 0).replace(
        policy=CausalLM(model, max_new_tokens=8, stop_strings=("\n",), apply_chat_template=True),
        env=MultiTurn(Shop, max_turns=MAX_TURNS, role="user"),
        method=agent_q(iterations=8, branches=3, epochs=1),
        learning_rate=1e-5,
        save_every=ROUNDS,
    )


def rounds(recipe: Recipe, attempts: int = 32) -> Iterator[dict[str, float]]:
    """Success before and after each round, with the tokens that were generated until then."""
    learner = Learner(recipe)
    tokens = 0.0
    for number in range(ROUNDS + 1):
        if number:
            tokens += learner.step().metrics["tokens/generated"]
        tasks = list(shop_visits())
        success = mean_terms(learner.policy, recipe.env, tasks, attempts=attempts, seed=recipe.seed)
        yield {"round": number, "success": success["reward"], "tokens": tokens}


def main(
    folder: Annotated[Path, typer.Argument(help="Receives the toy model and results.jsonl.")],
    seeds: Annotated[int, typer.Argument(help="Number of seeds.")] = 1,
    model: Annotated[str, typer.Option(help="A chat model in place of the toy model.")] = "",
) -> None:
    """Print and append the success after each round."""
    if not model and not (folder / "model").is_dir():
        save_model(folder)
    for seed in range(seeds):
        recipe = chat_recipe(model) if model else toy_recipe(folder / "model")
        for row in rounds(recipe.replace(seed=seed), 4 if model else 32):
            line = json.dumps({"model": model or "toy", "seed": seed, **row})
            print_line(line)
            with (folder / "results.jsonl").open("a") as file:
                file.write(f"{line}\n")


if __name__ == "__main__":
    typer.run(main)
