"""Files of a run's folder from elsewhere that have no end."""

import os

import pytest

from grupo.report.html.payload import open_runs
from grupo.report.read_run import check_run_folder
from grupo.training.resume.run_folder import RunFolder
from grupo.util.errors import ConfigError

OPENERS = {
    "commands": RunFolder.open,
    "reports": check_run_folder,
    "pages": lambda f: open_runs([f]),
}


def pipe(path):
    os.mkfifo(path)


def device(path):
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("replace", [pipe, device])
@pytest.mark.parametrize("name", ["metrics.jsonl", "summary.json", "media/0f.png"])
@pytest.mark.parametrize("opener", OPENERS)
def test_a_run_with_a_pipe_or_a_device_is_refused_unread(opener, name, replace, tmp_path):
    (tmp_path / "recipe.json").write_text("{}")
    (tmp_path / "media").mkdir()
    replace(tmp_path / name)
    with pytest.raises(ConfigError) as refused:
        OPENERS[opener](tmp_path)
    assert f"{name}' is a pipe, a socket or a device. Allowed in the" in str(refused.value)
