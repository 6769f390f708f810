"""Hand-written run folders in the format of the trainer."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from grupo.core.serialization import to_data
from grupo.method import Method

HOSTILE = (
    "</script><script>window.hurt=1</script><img src=x onerror='window.hurt=2'>\u2028"
    "<!--<script> ]]> \u202e & \x1b[31m"
)


def write_lines(path: Path, records: Sequence[Mapping[str, Any]], end: str = "") -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records) + end)


def response(items: Sequence[str], **fields: Any) -> dict[str, Any]:
    defaults = {
        "finish_reason": "end",
        "policy_version": 0,
        "logp": -0.5,
        "advantage": 0.5,
        "response_id": 0,
    }
    return {"items": list(items), **defaults, "entropy": 0.7, "ratio": 0.0, **fields}


def rollout(step: int, task: str, text: str, reward: float | str, **fields: Any) -> dict[str, Any]:
    return {
        "step": step,
        "task": task,
        "prompt": f"What is {task}?",
        "text": text,
        "reward": reward,
        "reward_terms": {"right": reward},
        "advantage": 0.5,
        "length": len(text),
        "truncated": False,
        "error": "",
        **fields,
    }


def recipe_data(steps: int = 3, method: Method = Method()) -> dict[str, Any]:
    policy = {"component": "grupo.models.causal_lm:CausalLM", "model": "some/model"}
    data = {"component": "grupo.recipe:Recipe", "policy": policy, "method": to_data(method)}
    return {"fingerprint": "0", "recipe": {**data, "max_steps": steps}}


def metrics(step: int, **changes: Any) -> dict[str, Any]:
    times = {"time/step": 2.0, "time/generate": 1.5, "time/update": 0.5, "tokens/generated": 30.0}
    return {
        "step": step,
        "reward/mean": step / 10,
        "policy/entropy": 0.5,
        "groups/nonzero_std_frac": 0.5,
        **times,
        **changes,
    }


def write_run(
    folder: Path,
    steps: int = 3,
    *,
    tasks: Sequence[str] = ("one", "two"),
    group: int = 2,
    ended: bool = True,
    text: str = "four",
    items: Sequence[str] = ("fo", "ur"),
    **changes: Any,
) -> Path:
    """Write a run with `group` rollouts per task and step; the first of a group has reward 1.

    `changes` replace or add metrics of every step.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recipe.json").write_text(json.dumps(recipe_data(steps)))
    write_lines(
        folder / "metrics.jsonl", [metrics(step, **changes) for step in range(1, steps + 1)]
    )
    indices = [(s, t, i) for s in range(1, steps + 1) for t in tasks for i in range(group)]
    write_lines(
        folder / "rollouts.jsonl", [rollout(s, t, text, float(i == 0)) for s, t, i in indices]
    )
    write_lines(
        folder / "responses.jsonl",
        [
            {"step": s, "group": 0, "responses": [response(items, response_id=i)]}
            for s, _, i in indices
        ],
    )
    if ended:
        (folder / "summary.json").write_text(
            json.dumps({"steps": steps, "seconds": 9.0, "held_out": {}})
        )
    return folder
