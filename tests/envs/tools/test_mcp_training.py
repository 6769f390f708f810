"""A whole run of a tiny model with the tools of an MCP server, from the command line."""

import json

import pytest

pytest.importorskip("mcp", reason="the MCP SDK is not installed: grupo[mcp]")

from tests.envs.tools.test_mcp import SERVER
from tests.helpers.env_runs import make_model, recorded, train_by_command


def test_the_tools_of_a_server_train_from_the_command_line(tmp_path):
    model = make_model(tmp_path / "model", context=2048)
    rows = [{"prompt": f"{i} and 1?", "answer": str(i + 1)} for i in range(8)]
    (tmp_path / "sums.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "rewards.py").write_text("def short(task, rollout):\n    return 1.0\n")
    options = [
        *("--env", f"mcp:{SERVER}(tools=('add',), max_turns=2, time_limit=60.0)"),
        *("--tasks", str(tmp_path / "sums.jsonl"), "--eval-tasks", "2"),
        *("--reward", f"{tmp_path / 'rewards.py'}:short"),
    ]
    run = train_by_command(tmp_path / "run", model, options)
    first, _ = recorded(run, "metrics")
    assert (first["rollouts/failed"], first["reward/short"]) == (0, 1.0)
    assert first["reward/done"] == 1.0
