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
from pathlib import Path
from typing import Annotated

import typer
from shop import Shop, demonstrated, visits

from grupo import CausalLM, Evaluation, Recipe, Task
from grupo.algo.advantages import identity
from grupo.algo.aggregation import group_mean
from grupo.algo.losses import Logistic, Preference
from grupo.algo.losses.contrastive import rollout_log_ratio
from grupo.algo.losses.sibling_preference import numbered_pairs
from grupo.algo.minibatches import Updates
from grupo.core.paper import Paper, Source
from grupo.core.search_tree import CriticUCT, MixedValue
from grupo.core.sibling_rules import AllSiblings
from grupo.envs import MultiTurn
from grupo.evidence.claims.tiny_lm import mean_terms, train_tiny_lm
from grupo.method import Method
from grupo.rollouts.evaluate import SuccessCriterion
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
    plan="a step is a round of search, then two passes over its pairs; our choice",
    missing=(
        "Plans, thoughts and explanations as parts of an action.",
        "WebShop and web pages: the environment is a shop of three pages, and any MultiTurn.",
        "Search at test time.",
    ),
    deviations=(
        "theta is 0.2, beta 0.1 and c 0.5: the paper's values are not known to us.",
        "The critic's values are 1, 1/2, 1/3, ... by rank, as in the other implementation.",
        "Pairs are trained in the round that found them: no replay buffer over rounds.",
    ),
    shown=(
        "tests/recipes/test_agent_q.py::test_two_rounds_of_search_raise_the_success_of_cloning",
    ),
)
RIGHT = 0.6  # of the demonstrated actions; the others are drawn among those of the page
CLONED, TRAINED, HELD_OUT = 400, 64, 32  # visits
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
    epochs: int = 2,
    minibatches: int = 8,
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
        epochs: Passes over the pairs of a round.
        minibatches: Updates of a pass.
    """
    return Method(
        sampler=TreePairs(
            iterations,
            branches,
            max_depth=MAX_TURNS,
            step_end="",
            priority=CriticUCT(0.5, MixedValue(alpha)),
            critic=critic,
            rule=AllSiblings(theta, alpha),
        ),
        advantage=identity,
        loss=Preference(rollout_log_ratio, Logistic(beta), numbered_pairs),
        aggregation=group_mean,
        updates=Updates(epochs, minibatches),
    )


def cloned_pages() -> list[Task]:
    """The demonstrations that the toy model clones."""
    rng = random.Random("pages")
    return [page for visit in visits(0, CLONED) for page in demonstrated(visit, rng, RIGHT)]


def action(task: Task) -> Sequence[str]:
    """The demonstrated action."""
    return [str(task.reference_answer)]


def training_visits() -> Iterator[Task]:
    """The visits that are searched."""
    return visits(CLONED, TRAINED)


def held_out_visits() -> Iterator[Task]:
    """The visits that are evaluated."""
    return visits(CLONED + TRAINED, HELD_OUT)


def save_model(folder: Path, steps: int = 150) -> Path:
    """Clone the demonstrations, and return the folder of the model."""
    return train_tiny_lm(folder, cloned_pages(), action, steps=steps)


def toy_recipe(model: Path, seed: int = 0) -> Recipe:
    """Two rounds on the toy model, valued by outcomes alone: it cannot rank in words."""
    return Recipe(
        policy=CausalLM(str(model), max_new_tokens=8, tokens_per_microbatch=8192),
        env=MultiTurn(Shop, max_turns=MAX_TURNS),
        tasks=FromFunction(training_visits),
        eval_tasks=FromFunction(held_out_visits),
        method=agent_q(iterations=8, branches=3, alpha=1.0, critic=no_critic),
        max_steps=ROUNDS,
        prompts_per_step=32,
        learning_rate=1e-3,
        evaluation=Evaluation(attempts=4, success=SuccessCriterion("env_reward", 0.5)),
        seed=seed,
    )


def chat_recipe(model: str) -> Recipe:
    """Two rounds of a chat model, which ranks its own actions."""
    return toy_recipe(Path(), 0).replace(
        policy=CausalLM(model, max_new_tokens=8, stop_strings=("\n",), apply_chat_template=True),
        env=MultiTurn(Shop, max_turns=MAX_TURNS, role="user"),
        method=agent_q(iterations=8, branches=3, epochs=1, minibatches=1),
        prompts_per_step=4,
        learning_rate=1e-5,
        save_every=ROUNDS,
    )


def rounds(recipe: Recipe) -> Iterator[dict[str, float]]:
    """Success on the held-out visits before and after each round, with the tokens until then."""
    learner = Learner(recipe)
    tokens = 0.0
    for number in range(ROUNDS + 1):
        if number:
            tokens += learner.step().metrics["tokens/generated"]
        tasks = list(held_out_visits())
        success = mean_terms(learner.policy, recipe.env, tasks, attempts=8, seed=recipe.seed)
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
        for row in rounds(recipe.replace(seed=seed)):
            line = json.dumps({"model": model or "toy", "seed": seed, **row})
            print_line(line)
            with (folder / "results.jsonl").open("a") as file:
                file.write(f"{line}\n")


if __name__ == "__main__":
    typer.run(main)
