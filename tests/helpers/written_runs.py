"""Runs' folders written by hand, as the trainer writes them."""

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


def lines(path: Path, records: Sequence[Mapping[str, Any]], end: str = "") -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records) + end)


def action(parts: Sequence[str], **more: Any) -> dict[str, Any]:
    known = {"stopped": "end", "version": 0, "logp": -0.5, "advantage": 0.5, "drawn": 0}
    return {"parts": list(parts), **known, "entropy": 0.7, "ratio": 0.0, **more}


def rollout(step: int, task: str, text: str, reward: float | str, **more: Any) -> dict[str, Any]:
    return {
        "step": step,
        "task": task,
        "prompt": f"What is {task}?",
        "text": text,
        "reward": reward,
        "parts": {"right": reward},
        "advantage": 0.5,
        "length": len(text),
        "truncated": False,
        "failed": "",
        **more,
    }


def recipe(steps: int = 3, method: Method = Method()) -> dict[str, Any]:
    policy = {"piece": "grupo.models.causal_lm:CausalLM", "model": "some/model"}
    data = {"piece": "grupo.recipe:Recipe", "policy": policy, "method": to_data(method)}
    return {"fingerprint": "0", "recipe": {**data, "steps": steps}}


def metrics(step: int, **more: Any) -> dict[str, Any]:
    times = {"time/step": 2.0, "time/generate": 1.5, "time/update": 0.5, "tokens/generated": 30.0}
    return {
        "step": step,
        "reward/mean": step / 10,
        "entropy": 0.5,
        "groups/nonzero_std_frac": 0.5,
        **times,
        **more,
    }


def write(
    folder: Path,
    steps: int = 3,
    *,
    tasks: Sequence[str] = ("one", "two"),
    group: int = 2,
    ended: bool = True,
    text: str = "four",
    parts: Sequence[str] = ("fo", "ur"),
    **more: Any,
) -> Path:
    """A run of some steps, `group` rollouts for each task at each; the first of each earns 1."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recipe.json").write_text(json.dumps(recipe(steps)))
    lines(folder / "metrics.jsonl", [metrics(step, **more) for step in range(steps)])
    places = [(s, t, i) for s in range(steps) for t in tasks for i in range(group)]
    lines(folder / "rollouts.jsonl", [rollout(s, t, text, float(i == 0)) for s, t, i in places])
    lines(
        folder / "actions.jsonl",
        [{"step": s, "group": 0, "actions": [action(parts, drawn=i)]} for s, _, i in places],
    )
    if ended:
        (folder / "summary.json").write_text(
            json.dumps({"steps": steps, "seconds": 9.0, "held_out": {}})
        )
    return folder
