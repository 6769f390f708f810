"""The example of docs/judges.md, executed with a fake judge and a tiny model."""

import json
import re

import pytest

from grupo.rewards.judges.session import close_sessions
from tests.helpers.fake_judge import FakeJudge, says
from tests.helpers.paths import ROOT
from tests.helpers.tiny_lm import save_model

PAGE = (ROOT / "docs" / "judges.md").read_text()
CODE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
CHANGES = "max_steps=1, prompts_per_step=2, eval_tasks=0, learning_rate=1e-3"


def test_the_example_trains_with_a_judge_over_http(tmp_path, monkeypatch):
    fake = FakeJudge(says('It is "right".\nScore: 4'))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("HOME", str(tmp_path))
    save_model(tmp_path / "model")
    rows = [{"prompt": f"{i} + 1 =", "answer": str(i + 1)} for i in range(6)]
    (tmp_path / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    code = CODE[0].replace("https://api.openai.com/v1", fake.url).replace("path/to/model", "model")
    code = code.replace("max_new_tokens=256", "max_new_tokens=8, device='cpu'")
    code = code.replace('source("train.jsonl"),', f'source("train.jsonl"), {CHANGES},')
    exec(code, {})
    close_sessions()
    fake.stop()
    (step,) = map(json.loads, (tmp_path / "runs/judged/metrics.jsonl").read_text().splitlines())
    assert step["reward/quality"] == pytest.approx((4 - 1) / 9)
    assert step["usage/judge_calls"] == len(fake.bodies)
    assert re.search(
        r"Question: (\d) \+ 1 =\nReference answer: \d\n[0-9a-f]{16}\n", fake.prompts[0]
    )
    cache = tmp_path / ".cache" / "grupo" / "judge_replies.sqlite"
    assert cache.exists()
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert not any(b"sk-secret" in content for content in files)


def test_the_other_snippets_of_the_page_make_judges():
    names = {}
    exec(CODE[0].partition("recipe =")[0], names)
    for code in CODE[1:]:
        exec(code, names)
    assert {type(names[x]).__name__ for x in ("rubric", "cheaper", "from_tasks", "sampled")} == {
        "Rubric",
        "RubricInOneCall",
        "PairwiseJudge",
    }
