"""Files of pipelines of another shape end in one message."""

import json

import pytest

from grupo.pipeline.load import load_pipeline_file
from grupo.storage.pipeline_dirs import pipeline_json, stage_folders
from grupo.util.errors import ConfigError
from grupo.util.run_files import PIPELINE_FILE

STAGE = {"name": "sft"}
FORGED = [
    None,
    [],
    {"stages": 3, "rounds": 1},
    {"stages": {"tuple": None}, "rounds": 1},
    {"stages": {"tuple": [[]]}, "rounds": 1},
    {"stages": {"tuple": [{"name": 3}]}, "rounds": 1},
    {"stages": {"tuple": [{"name": "../sft"}]}, "rounds": 1},
    {"stages": {"tuple": [{"name": "a\0b"}]}, "rounds": 1},
    {"stages": {"tuple": [STAGE]}, "rounds": "1"},
    {"stages": {"tuple": [STAGE]}, "rounds": True},
    {"stages": {"tuple": [STAGE]}, "rounds": 10**400},
]


@pytest.mark.parametrize("data", FORGED)
def test_a_forged_pipeline_with_a_right_fingerprint_is_one_error(tmp_path, data):
    (tmp_path / PIPELINE_FILE).write_text(pipeline_json(data))
    with pytest.raises(ConfigError, match=r"pipeline\.json describes no pipeline\. Allowed: "):
        stage_folders(tmp_path)


def test_the_stages_of_a_stored_pipeline_are_listed(tmp_path):
    (tmp_path / PIPELINE_FILE).write_text(
        pipeline_json({"stages": {"tuple": [STAGE]}, "rounds": 2})
    )
    folders = [stage.folder for stage in stage_folders(tmp_path)]
    assert folders == [tmp_path / "1" / "sft", tmp_path / "2" / "sft"]


@pytest.mark.parametrize("kind", [["Stage"], {"a": 1}, 3, "stage"])
def test_a_stage_of_an_unknown_type_is_one_error(tmp_path, kind):
    file = tmp_path / "pipeline.yaml"
    file.write_text(f"stages:\n- type: {json.dumps(kind)}\n  name: a\n  recipe: a.toml\n")
    with pytest.raises(ConfigError, match=r"stages\[0\]\.type: .* is no stage"):
        load_pipeline_file(file)
