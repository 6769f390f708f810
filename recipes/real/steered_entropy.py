"""V-Reason: gradient steps on the entropy while a small real model answers, against none.

Sridhar et al., 2025, arXiv:2510.17045. The tasks are sums of one digit, which this model solves if
it decodes greedily, and the larger one of two numbers, which it does not.

The table, fixed before the first whole run: for each family and learning rate, the share of tasks
that the answer solves, generated tokens and gradient steps of an answer, the mean entropy of its
tokens, and the mean entropy behind the peak of the moving average, where the method lowers it. A
trial with one task had shown how many tasks and tokens fit the time, and that a learning rate of
0.003 changes nothing. Below: the
paired differences of accuracy and of the entropy behind the peak from learning rate 0, which is
ordinary decoding, with bootstrap intervals over tasks. Claim of the paper: shorter answers, which
are more often right. A null result is a result.

python recipes/real/steered_entropy.py FILE --model PATH      appends a line of each answer to FILE
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from grupo.core.decoding import EntropySteering
from grupo.core.interfaces import open_env, score_group
from grupo.core.types import Response, Rollout, Task
from grupo.evidence.survey import TaskFamily
from grupo.inference.base import Reply, Request, generate_all
from grupo.inference.entropy_steering import EntropySwitch
from grupo.models.causal_policy import CausalPolicy
from grupo.util.console import print_line
from grupo.util.event_loop import run_coroutine
from grupo.util.importing import load_module_file
from grupo.util.rng import derive_key
from grupo.util.statistics import bootstrap_interval

TRAINING = load_module_file(Path(__file__).with_name("training.py"))
FAMILIES = ("sums_1_digit", "larger_number")
TASKS, MAX_NEW_TOKENS = 12, 16
NOTHING = 1e-30  # a learning rate that moves no value
LEARNING_RATES = (NOTHING, 0.03)


def reply_to(policy: CausalPolicy, task: Task, learning_rate: float) -> Reply:
    """The steered answer to a task, with the entropy of each token."""
    tokens, _ = policy.chat_tokenizer.encode_turn(Rollout(), task.prompt)
    steering = EntropySteering(learning_rate=learning_rate)
    request = Request(tokens, derive_key(0, task.key), policy.spec.sampling, decoding=steering)
    return generate_all(policy.weight_sync.engine(), [request])[0]


def behind_the_peak(entropy: Sequence[float]) -> list[float]:
    """The entropies behind the maximum of their moving average.

    >>> behind_the_peak([1.0, 3.0, 2.0, 0.5])
    [2.0, 0.5]
    """
    switch = EntropySwitch(EntropySteering().decay)
    peaks = [i for i, value in enumerate(entropy) if switch(value) > 0]
    return list(entropy[peaks[-1] + 1 :]) if peaks else []


def answer(
    policy: CausalPolicy, family: TaskFamily, task: Task, learning_rate: float
) -> dict[str, Any]:
    """What one answer is, costs and earns."""
    started = time.process_time()
    reply = reply_to(policy, task, learning_rate)
    seconds = time.process_time() - started
    text = policy.chat_tokenizer.decode(reply.tokens)
    response = Response(reply.tokens, reply.logp, text=text, finish_reason=reply.finish_reason)
    rollout = Rollout().append_turn(task.prompt, response)
    (scored,) = run_coroutine(score_group(task, open_env(family.env), [rollout])).rollouts
    behind = behind_the_peak(reply.entropy)
    return {
        "learning_rate": learning_rate,
        "solved": bool(family.success(scored)),
        "tokens": len(reply.tokens),
        "gradient_steps": reply.gradient_steps,
        "entropy": float(np.mean(reply.entropy)),
        "entropy_behind_peak": float(np.mean(behind)) if behind else None,
        "cpu_seconds": round(seconds, 2),
        "text": text,
    }


def table(name: str, rows: Mapping[float, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    """The rows of the table in the docstring, in Markdown, and the differences below it."""
    for rate, answers in rows.items():
        shown = f"{rate:g}" if rate > NOTHING else "0"
        tokens, steps, entropy = (
            np.mean([x[key] for x in answers]) for key in ("tokens", "gradient_steps", "entropy")
        )
        solved = np.mean([x["solved"] for x in answers])
        behind = np.mean([x["entropy_behind_peak"] for x in answers if x["entropy_behind_peak"]])
        yield (
            f"| {name} | {shown} | {solved:.1%} | {tokens:.1f} | {steps:.1f} | {entropy:.2f} |"
            f" {behind:.2f} |"
        )
    for rate, answers in rows.items():
        for key in ("solved", "entropy_behind_peak") if rate > NOTHING else ():
            pairs = ((x[key], y[key]) for x, y in zip(answers, rows[NOTHING], strict=True))
            differences = np.array([float(a) - float(b) for a, b in pairs if None not in (a, b)])
            low, high = bootstrap_interval([differences])
            mean = differences.mean()
            yield f"{name}, {rate:g} less 0, {key}: {mean:+.3f} [{low:+.3f}, {high:+.3f}]"


def main(
    file: Annotated[Path, typer.Argument(help="Receives a JSON line for each answer.")],
    model: Annotated[str, typer.Option(help="Folder or name of a chat model.")] = TRAINING.MODEL,
) -> None:
    """Answer the tasks with each learning rate, and print the table."""
    policy = TRAINING.chat_model(model, MAX_NEW_TOKENS).build()
    for name in FAMILIES:
        family = TRAINING.FAMILIES[name]
        tasks = TRAINING.surveyed(family).load()[:TASKS]
        rows: dict[float, list[dict[str, Any]]] = {rate: [] for rate in LEARNING_RATES}
        for rate, answers in rows.items():
            for task in tasks:
                answers.append(answer(policy, family, task, rate))
                with file.open("a") as lines:
                    lines.write(
                        json.dumps({"family": name, "task": task.key, **answers[-1]}) + "\n"
                    )
        for line in table(name, rows):
            print_line(line)


if __name__ == "__main__":
    typer.run(main)
