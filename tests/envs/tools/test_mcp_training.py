"""A whole run of a tiny model with the tools of an MCP server, from the command line."""

import json

import pytest

pytest.importorskip("mcp", reason="the MCP SDK is not installed: grupo[mcp]")

from grupo.envs.tools.mcp import connection_of
from tests.envs.tools.test_mcp import SERVER
from tests.helpers.env_runs import make_model, recorded, train_by_command
from tests.helpers.http_serving import serving
from tests.helpers.mcp_http_app import make_app


@pytest.fixture
def task_options(tmp_path):
    """A model, and the options of sums as tasks with a reward."""
    rows = [{"prompt": f"{i} and 1?", "answer": str(i + 1)} for i in range(8)]
    (tmp_path / "sums.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "rewards.py").write_text("def short(task, rollout):\n    return 1.0\n")
    return [
        *("--tasks", str(tmp_path / "sums.jsonl"), "--eval-tasks", "2"),
        *("--reward", f"{tmp_path / 'rewards.py'}:short"),
    ]


def test_the_tools_of_a_server_train_from_the_command_line(tmp_path, task_options):
    model = make_model(tmp_path / "model", context=2048)
    env = f"mcp:{SERVER}(tools=('add',), max_turns=2, time_limit=60.0)"
    run = train_by_command(tmp_path / "run", model, ["--env", env, *task_options])
    first, _ = recorded(run, "metrics")
    assert (first["rollouts/failed"], first["reward/short"]) == (0, 1.0)
    assert first["reward/done"] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("shown", ["secret-123", b"secret-123".hex(), "s%65cret\\u002d123"])
def test_the_token_of_a_server_at_a_url_is_not_in_the_run_folder(
    tmp_path, task_options, monkeypatch, shown
):
    monkeypatch.setenv("REMOTE_TOKEN", "secret-123")
    model = make_model(tmp_path / "model", context=4096)
    requests = []
    with serving(make_app(f"adds {shown}"), requests=requests) as (url, _):
        env = f"mcp:{url}/mcp(token_env='REMOTE_TOKEN', time_limit=60.0)"
        run = train_by_command(tmp_path / "run", model, ["--env", env, *task_options])
        connection_of(f"{url}/mcp", (), "REMOTE_TOKEN").close()
    assert {headers["authorization"] for *_, headers in requests} == {"Bearer secret-123"}
    files = [file for file in run.folder.rglob("*") if file.is_file()]
    assert any(b"adds [token]" in file.read_bytes() for file in files)
    assert any(b"REMOTE_TOKEN" in file.read_bytes() for file in files)
    for text in (b"secret-123", shown.encode()):
        assert not any(text in file.read_bytes() for file in files)
