"""Think-in-Memory: a policy that keeps thoughts about sessions, against a cut context.

Liu et al., 2023, arXiv:2311.08719. The sessions of `sessions.py` are together longer than the
context of the toy model, which acknowledges sessions, notes their facts, and answers from text.

python recipes/agents/think_in_memory.py FOLDER                    # the table of the toy model
python recipes/agents/think_in_memory.py FOLDER --model smollm2    # a chat model, two short tasks

Named before the first run: `right`, the share of right answers, and all generated and read tokens
of a task, private ones included, on 8 sets of 6 tasks with 6 questions each. The memory of one cell
is compared with the cut context of fewest sessions that has at least as many tokens, paired by set.
8 cells with 1 and 2 probes, against one cell, show what the hash loses.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated

import torch
import typer
from sessions import (
    ACKNOWLEDGED,
    ANIMALS,
    CHAT_FACT,
    CHAT_QUESTION,
    NAMES,
    QUESTION,
    REMARKS,
    Sessions,
    fact,
    session,
    visits,
)
from transformers import LlamaForCausalLM

from grupo.core.component import component
from grupo.core.interfaces import Actor, TurnStrategy, single_response
from grupo.core.ranges import NonNegativeInt
from grupo.core.types import Observation, Rollout, Task
from grupo.envs import MultiTurn
from grupo.evidence.claims.paired_table import paired_table
from grupo.evidence.claims.tiny_lm import demonstration_recipe, trained
from grupo.models.causal_lm import CausalLM
from grupo.rollouts.evaluate import HasActor
from grupo.rollouts.strategy_attempts import attempt_tasks
from grupo.rollouts.turns import RecalledThoughts
from grupo.rollouts.turns.private_context import (
    answer_in_new_context,
    task_text,
    with_task_text,
)
from grupo.toy.tokenizers import word_tokenizer
from grupo.toy.untrained_llama import LlamaArchitecture
from grupo.util.console import print_line

ENV = MultiTurn(Sessions, max_turns=64)
THINK = "{thoughts}\n{task}\n{answer}\nnote : "
PROMPT = "{thoughts}\n{task}\n"
ANSWER = "{} {} ."
ARCHITECTURE = LlamaArchitecture(64, 192, 2, 2, 160, 0.08)
SETS, TASKS, STEPS = 8, 6, 700
MOST_LINES = 6  # of a prompt in the training of the toy model
CUTS = (1, 2, 3, 4, 6)  # earlier turns


@component
class CutContext:
    """A turn in a new context with the observations of the last turns, in place of all turns.

    Args:
        turns: Number of earlier turns.
    """

    turns: NonNegativeInt

    async def __call__(self, actor: Actor, rollout: Rollout, observation: Observation) -> Rollout:
        earlier = rollout.turns[-self.turns :] if self.turns else ()
        prompt = observation
        if earlier:
            lines = "\n".join(task_text(read) for read, _ in earlier)
            text = PROMPT.format(thoughts=lines, task=task_text(observation))
            prompt = with_task_text(observation, text)
        actor = actor.fork("answer", len(rollout.turns))
        return await answer_in_new_context(actor, rollout, observation, prompt, single_response)


def example(number: int) -> Task:
    """A prompt with the answer that the toy model learns: an acknowledgement, a note, an answer."""
    rng = random.Random(f"example {number}")
    lines, known = context_lines(rng)
    said = fact(rng.choice(NAMES), rng.choice(ANIMALS))
    task = session(said, rng)
    kind = number % 5
    if kind == 0:
        prompt = PROMPT.format(thoughts=lines, task=task) if lines else task
        return Task(str(number), prompt, ACKNOWLEDGED)
    if kind == 1:
        prompt = THINK.format(thoughts=lines, task=task, answer=ACKNOWLEDGED)
        return Task(str(number), prompt, said)
    is_known = known and rng.random() < 0.9
    name = rng.choice(list(known)) if is_known else rng.choice(NAMES)
    question = QUESTION.format(name=name)
    prompt = PROMPT.format(thoughts=lines, task=question) if lines else question
    return Task(str(number), prompt, ANSWER.format(name, known.get(name) or rng.choice(ANIMALS)))


def context_lines(rng: random.Random) -> tuple[str, Mapping[str, str]]:
    """Facts, or whole sessions with questions among them; and the animals that they name, last."""
    pairs = [(rng.choice(NAMES), rng.choice(ANIMALS)) for _ in range(rng.randrange(MOST_LINES))]
    if rng.random() < 0.6:
        lines = [fact(*pair) for pair in pairs]
    else:
        lines = [session(fact(*pair), rng) for pair in pairs]
        lines += [QUESTION.format(name=rng.choice(NAMES)) for _ in range(rng.randrange(3))]
    return "\n".join(lines), dict(pairs)


def save_model(folder: Path, steps: int = STEPS) -> Path:
    """Train the toy model, and return its folder."""
    tasks = [example(number) for number in range(32 * min(steps, 400))]
    pairs = [(name, animal) for name in NAMES for animal in ANIMALS]
    texts = [*REMARKS, ACKNOWLEDGED, THINK, QUESTION, *(ANSWER.format(*pair) for pair in pairs)]
    facts = {fact(*pair): pair for pair in pairs}
    tokenizer = word_tokenizer(texts, facts)
    ARCHITECTURE.save_untrained(folder / "start", tokenizer)
    with_embedded_facts(folder / "start", tokenizer.get_vocab(), facts)

    def answer(task: Task) -> Sequence[str]:
        return [str(task.reference_answer)]

    recipe = demonstration_recipe(folder / "start", tasks, answer, steps=steps)
    trained(recipe).policy.export(folder / "model")
    return folder / "model"


def with_embedded_facts(
    folder: Path, token: Mapping[str, int], facts: Mapping[str, tuple[str, str]]
) -> None:
    """Let the embedding of a fact, one token, begin as the sum of its name's and its animal's.

    The fact about a name is then found within some hundred steps.

    Args:
        folder: The untrained model, which is changed.
        token: The number of each token.
        facts: Name and animal of each fact.
    """
    model = LlamaForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        embedding = model.model.embed_tokens.weight
        for text, (name, animal) in facts.items():
            embedding[token[text]] = embedding[token[f"{name} "]] + embedding[token[f"{animal} "]]
    model.save_pretrained(folder)


def memory(cells: int = 1, probes: int = 1) -> RecalledThoughts:
    """The strategy with the forms of the toy model."""
    return RecalledThoughts(
        3, cells, probes, thought_tokens=8, think_prompt=THINK, turn_prompt=PROMPT
    )


def strategies() -> Mapping[str, TurnStrategy]:
    """The arms of the table."""
    cut = {f"cut to {n}": CutContext(n) for n in CUTS}
    return {
        "memory, one cell": memory(),
        "memory, 8 cells, 1 probe": memory(cells=8),
        "memory, 8 cells, 2 probes": memory(cells=8, probes=2),
        **cut,
    }


def measured(
    policy: HasActor, tasks: Sequence[Task], strategy: TurnStrategy, seed: int
) -> dict[str, float]:
    """The share of right answers, and the tokens of a task; what the strategy counts."""
    attempts = attempt_tasks(policy, ENV, tasks, strategy, attempt_indices=range(1), key=seed)
    assert not attempts.errors, attempts.errors[:1]
    right = fmean(rollout.reward for rollout in attempts.rollouts[0])
    tokens = attempts.mean_tokens_per_attempt
    usage = {name: count / len(tasks) for name, count in attempts.usage.items()}
    return {"right": right, "tokens": sum(tokens.values()), **tokens, **usage}


def equal_cut(runs: Mapping[str, Sequence[Mapping[str, float]]], arm: str) -> str:
    """The cut context of fewest sessions that has at least as many tokens as an arm."""
    means = {name: fmean(run["tokens"] for run in values) for name, values in runs.items()}
    enough = [name for name in runs if name.startswith("cut") and means[name] >= means[arm]]
    return min(enough, key=means.__getitem__) if enough else f"cut to {CUTS[-1]}"


def toy_table(folder: Path) -> Iterator[str]:
    """The lines of the table of the toy model."""
    torch.set_num_threads(1)
    model = folder / "toy" / "model"
    if not model.is_dir():
        save_model(folder / "toy")
    policy = CausalLM(str(model), max_new_tokens=8).build()
    runs: dict[str, list[dict[str, float]]] = {}
    for seed in range(SETS):
        tasks = list(visits(TASKS * seed, TASKS))
        for name, strategy in strategies().items():
            runs.setdefault(name, []).append(measured(policy, tasks, strategy, seed))
        (folder / "toy.json").write_text(json.dumps(runs))
    exact = "memory, one cell"
    yield paired_table(runs, ["right", "tokens", "generated", "read"], equal_cut(runs, exact))
    yield paired_table({name: runs[name] for name in runs if "cell" in name}, ["right"], exact)
    for name in runs:
        usage = {k: round(fmean(r[k] for r in runs[name]), 1) for k in runs[name][0] if "/" in k}
        yield f"{name}: {usage}"


def chat_lines(model: str) -> Iterator[str]:
    """A JSON line for each arm of a chat model, on two short tasks."""
    policy = CausalLM(model, max_new_tokens=12, apply_chat_template=True).build()
    tasks = list(visits(0, 2, 4, 2, said=CHAT_FACT, asked=CHAT_QUESTION))
    arms = {
        "memory, one cell": RecalledThoughts(2, thought_tokens=16),
        "memory, 8 cells, 2 probes": RecalledThoughts(2, 8, 2, thought_tokens=16),
        "cut to 1": CutContext(1),
        "cut to 4": CutContext(4),
    }
    for name, strategy in arms.items():
        yield json.dumps({"arm": name, **measured(policy, tasks, strategy, 0)})


def main(
    folder: Annotated[Path, typer.Argument(help="Receives the toy model and the results.")],
    model: Annotated[str, typer.Option(help="A chat model in place of the toy model.")] = "",
) -> None:
    """Print the table of the toy model, or the results of a chat model."""
    folder.mkdir(parents=True, exist_ok=True)
    for line in chat_lines(model) if model else toy_table(folder):
        print_line(line)
        with (folder / "lines.txt").open("a") as file:
            file.write(f"{line}\n")


if __name__ == "__main__":
    typer.run(main)
