"""The report file: embedded data, its Content-Security-Policy, reproducibility."""

import base64
import gzip
import hashlib
import json
import re

import pytest

from grupo.report.html.build import write_html_report
from grupo.report.html.metric_docs import metric_definitions
from grupo.util.errors import ConfigError
from tests.helpers.written_runs import HOSTILE, write_run

SCRIPT = re.compile(r"<script(?P<attributes>[^>]*)>(?P<text>.*?)</script>", re.DOTALL)


def scripts(page: str) -> list[tuple[str, str]]:
    return [(match["attributes"], match["text"]) for match in SCRIPT.finditer(page)]


def test_only_the_embedded_script_is_allowed_by_its_hash(tmp_path):
    page = write_html_report([write_run(tmp_path / "run")], tmp_path / "a.html").read_text()
    executable = [text for kind, text in scripts(page) if not kind]
    hashes = [base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in executable]
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy
    assert len(hashes) == 1
    assert f"script-src 'sha256-{hashes[0]}'" in policy[1]
    assert policy[1].startswith("default-src 'none'")
    assert "connect-src 'none'" in policy[1]


def test_untrusted_text_does_not_close_elements(tmp_path):
    run = write_run(tmp_path / "run", text=HOSTILE, items=[HOSTILE], tasks=[HOSTILE])
    page = write_html_report([run], tmp_path / "a.html").read_text()
    assert "window.hurt" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    kinds = [kind for kind, _ in scripts(page)]
    groups = [f' type="text/plain" id="group-0-{step}-0"' for step in (3, 2, 1)]
    assert kinds == [' type="application/json" id="data"', "", *groups]
    (data,) = [text for kind, text in scripts(page) if "json" in kind]
    assert json.loads(data)["runs"][0]["groups_by_step"]["1"][0]["task"] == HOSTILE
    (packed,) = [text for kind, text in scripts(page) if '"group-0-3-0"' in kind]
    group = json.loads(gzip.decompress(base64.b64decode(packed)))
    assert group["rollouts"][0]["text"] == HOSTILE


def test_page_has_no_external_references_and_is_small(tmp_path):
    out = write_html_report([write_run(tmp_path / "run")], tmp_path / "a.html")
    page = out.read_text()
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
    assert "@import" not in page
    assert "url(" not in page
    assert out.stat().st_size < 3_000_000


def test_same_run_gives_the_same_page(tmp_path):
    run = write_run(tmp_path / "run")
    names = ("a.html", "b.html")
    first, second = (write_html_report([run], tmp_path / name).read_bytes() for name in names)
    assert first == second


def test_file_that_is_not_a_report_is_not_overwritten(tmp_path):
    (tmp_path / "notes.html").write_text("mine")
    with pytest.raises(ConfigError, match=r"notes\.html' exists and is not a report"):
        write_html_report([write_run(tmp_path / "run")], tmp_path / "notes.html")
    out = write_html_report([tmp_path / "run"], tmp_path / "a.html")
    write_html_report([tmp_path / "run"], out)


def test_missing_output_folder_is_a_config_error(tmp_path):
    with pytest.raises(ConfigError, match=r"out: .* is in a folder that does not exist"):
        write_html_report([write_run(tmp_path / "run")], tmp_path / "no" / "a.html")


def test_report_of_a_real_run_has_every_response(real_run, tmp_path):
    page = write_html_report([real_run], tmp_path / "a.html").read_text()
    packed = [text for kind, text in scripts(page) if "group-" in kind]
    assert len(packed) == 3 * 4
    groups = [json.loads(gzip.decompress(base64.b64decode(text))) for text in packed[4:8]]
    assert [len(group["rollouts"]) for group in groups] == [8] * 4
    assert [group["reference_answer"] for group in groups] == [
        str(int(group["prompt"].split()[0]) + 1) for group in groups
    ]
    for rollout in (r for group in groups for r in group["rollouts"]):
        (response,) = rollout["responses"]
        assert "".join(response["items"]).removesuffix("<end>") == rollout["text"]
        assert len(response["logp"]) == len(response["items"]) == rollout["length"]
        assert rollout["advantage"] == pytest.approx(response["advantage"], abs=1e-4)


def test_healthy_ranges_match_the_metrics_page():
    definitions = metric_definitions()
    ranges = {name: (d.low, d.high) for name, d in definitions.items()}
    assert ranges["groups/nonzero_std_frac"] == (0.2, 0.9)
    assert ranges["completions/truncated_frac"] == (None, 0.2)
    assert ranges["rollouts/failed"] == (0.0, 0.0)
    assert ranges["sampler_mismatch/logp_diff_mean"] == (None, 0.05)
    assert ranges["time/other"] == (None, None)
    assert definitions["policy/entropy"].unit == "nats per token"
    assert definitions["loss"].section == "Updates"
