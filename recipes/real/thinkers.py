"""Group Think: lists of names by thinkers that read one another, against independent answers.

Hsu et al., 2025, arXiv:2505.11107. Four thinkers name members of a set, each with 32 tokens at
most. Both arms have the same prompt, the same starts and the same tokens; the only difference is
what a thinker reads: the texts of all, or its own. Wording, temperature and length were chosen on
independent answers, after one attempt of each arm with an earlier wording.

The table, fixed before the arms were compared: for each list and arm, the number of different
members that the four texts name together in their first 8, 16 and 32 tokens, the share of mentions
that name a member again, and the paired difference of the arms at 32 tokens over ATTEMPTS attempts
with a bootstrap interval. Claim of the paper: thinkers name more at equal tokens, as they see what
is named. This model was not trained to write beside others; no difference, or fewer, is a result.

python recipes/real/thinkers.py FILE --model PATH      appends a line of each attempt to FILE
"""

import asyncio
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from grupo.core.decoding import LockStep
from grupo.core.interfaces import Actor
from grupo.core.response_use import generation_only
from grupo.core.types import Response, Rollout
from grupo.inference.sampling_params import Sampling
from grupo.models.causal_policy import CausalPolicy
from grupo.rollouts.turns.forced_start import append_forced
from grupo.util.console import print_line
from grupo.util.event_loop import run_coroutine
from grupo.util.importing import load_module_file
from grupo.util.rng import derive_key
from grupo.util.statistics import bootstrap_interval

TRAINING = load_module_file(Path(__file__).with_name("training.py"))
THINKERS, ATTEMPTS, TEMPERATURE = 4, 6, 0.6
TOKENS = (8, 16, 32)
START = "\n\nList {number}:"
PROMPT = "Name as many {what} as you can. Write the names only, with commas between them."


def separate(text: str) -> tuple[str, ...]:
    """The names in a text, divided by commas.

    >>> separate("iron, gold")
    ('iron', 'gold')
    """
    return tuple(name.strip() for name in text.split(","))


LISTS = {
    "animals": separate(
        "ant, bear, bee, bird, buffalo, butterfly, camel, cat, cheetah, chicken, cow, crocodile,"
        " deer, dog, dolphin, donkey, duck, eagle, elephant, fish, fox, frog, giraffe, goat,"
        " gorilla, hippopotamus, horse, hyena, kangaroo, koala, leopard, lion, lizard, monkey,"
        " mouse, octopus, otter, owl, panda, parrot, penguin, pig, rabbit, raccoon, rat,"
        " rhinoceros, seal, shark, sheep, snake, spider, squirrel, tiger, turtle, whale, wolf,"
        " zebra"
    ),
    "fruits": separate(
        "apple, apricot, avocado, banana, blackberry, blueberry, cherry, coconut, cranberry, date,"
        " fig, grape, grapefruit, guava, kiwi, lemon, lime, mango, melon, nectarine, olive, orange,"
        " papaya, peach, pear, pineapple, plum, pomegranate, raspberry, strawberry, tangerine,"
        " tomato, watermelon"
    ),
    "chemical elements": separate(
        "hydrogen, helium, lithium, beryllium, boron, carbon, nitrogen, oxygen, fluorine, neon,"
        " sodium, magnesium, aluminum, silicon, phosphorus, sulfur, chlorine, argon, potassium,"
        " calcium, titanium, chromium, manganese, iron, cobalt, nickel, copper, zinc, gallium,"
        " arsenic, selenium, bromine, krypton, silver, cadmium, tin, iodine, xenon, tungsten,"
        " platinum, gold, mercury, lead, radon, radium, uranium, plutonium"
    ),
}


def mentions(text: str, names: Sequence[str]) -> list[str]:
    """The names that a text mentions, also in the plural, in its order.

    >>> mentions("Bears, grapefruit, bear", ("bear", "grape", "grapefruit"))
    ['bear', 'grapefruit', 'bear']
    """
    longest_first = sorted(names, key=len, reverse=True)
    names_pattern = "|".join(map(re.escape, longest_first))
    found = re.findall(rf"\b({names_pattern})s?\b", text, re.IGNORECASE)
    return [name.lower() for name in found]


async def started(actor: Actor, prompt: str) -> list[Rollout]:
    """The start of each text."""
    texts = (START.format(number=i + 1) for i in range(THINKERS))
    return [await append_forced(actor, Rollout(), prompt, text) for text in texts]


async def together(actor: Actor, prompt: str) -> Sequence[Response]:
    """The texts of thinkers that read one another."""
    starts = [rollout.last_response.items for rollout in await started(actor, prompt)]
    return await actor.decode(Rollout(), prompt, LockStep(tuple(starts)))


async def alone(actor: Actor, prompt: str) -> Sequence[Response]:
    """The texts of independent answers with the same starts."""
    answers = (
        actor.fork("writer", i + 1)(rollout, "")
        for i, rollout in enumerate(await started(actor, prompt))
    )
    return await asyncio.gather(*answers)


ARMS = {"together": together, "alone": alone}


def attempt(policy: CausalPolicy, what: str, arm: str, number: int) -> dict[str, Any]:
    """One attempt at a list: members named after each number of tokens, and what it costs."""
    with generation_only():
        actor = policy.actor(derive_key(0, what, number))
    begin = time.process_time()
    responses = run_coroutine(ARMS[arm](actor, PROMPT.format(what=what)))
    seconds = time.process_time() - begin
    texts = {
        count: [policy.chat_tokenizer.decode(response.items[:count]) for response in responses]
        for count in TOKENS
    }
    named = {n: [m for text in texts[n] for m in mentions(text, LISTS[what])] for n in TOKENS}
    return {
        "list": what,
        "arm": arm,
        "attempt": number,
        "named": {str(n): len(set(found)) for n, found in named.items()},
        "mentions": len(named[TOKENS[-1]]),
        "generated": sum(actor.generated_tokens.values()),
        "read": sum(actor.read_tokens.values()),
        "cpu_seconds": round(seconds, 2),
        "texts": texts[TOKENS[-1]],
    }


def table(lines: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The rows of the table in the docstring, in Markdown."""
    for what in LISTS:
        rows = {arm: [x for x in lines if (x["list"], x["arm"]) == (what, arm)] for arm in ARMS}
        for arm, found in rows.items():
            named = [np.mean([x["named"][str(n)] for x in found]) for n in TOKENS]
            last = [x["named"][str(TOKENS[-1])] for x in found]
            again = 1 - sum(last) / max(1, sum(x["mentions"] for x in found))
            cells = " | ".join(f"{x:.1f}" for x in named)
            tokens = np.mean([x["generated"] for x in found])
            yield f"| {what} | {arm} | {cells} | {again:.0%} | {tokens:.0f} |"
        pairs = zip(
            *([x["named"][str(TOKENS[-1])] for x in rows[arm]] for arm in ARMS), strict=True
        )
        differences = np.array([a - b for a, b in pairs], dtype=float)
        low, high = bootstrap_interval([differences])
        yield f"{what}: together less alone {differences.mean():+.1f} [{low:+.1f}, {high:+.1f}]"


def main(
    file: Annotated[Path, typer.Argument(help="Receives a JSON line for each attempt.")],
    model: Annotated[str, typer.Option(help="Folder or name of a chat model.")] = TRAINING.MODEL,
) -> None:
    """Write each list together and alone, and print the table."""
    spec = TRAINING.chat_model(model, TOKENS[-1])
    policy = replace(spec, sampling=Sampling(TEMPERATURE)).build()
    lines = []
    for what in LISTS:
        for number in range(ATTEMPTS):
            for arm in ARMS:
                lines.append(attempt(policy, what, arm, number))
                with file.open("a") as appended:
                    appended.write(json.dumps(lines[-1]) + "\n")
    for line in table(lines):
        print_line(line)


if __name__ == "__main__":
    typer.run(main)
