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


@pytest.mark.parametrize("name", ["rollouts.jsonl", "strategies.svg", "media/0f.png"])
@pytest.mark.parametrize("opener", OPENERS)
def test_a_run_with_a_link_to_a_file_elsewhere_is_refused(opener, name, tmp_path):
    run = tmp_path / "run"
    (run / "media").mkdir(parents=True)
    (run / "recipe.json").write_text("{}")
    (tmp_path / "secret").write_text("secret")
    (run / name).symlink_to(tmp_path / "secret")
    with pytest.raises(ConfigError) as refused:
        OPENERS[opener](run)
    assert f"{name}' is a link to a file elsewhere. Allowed in the folder of a" in str(
        refused.value
    )


def test_links_within_a_run_and_to_folders_and_those_of_loggers_are_allowed(tmp_path):
    run = tmp_path / "run"
    (run / "wandb").mkdir(parents=True)
    (tmp_path / "disk").mkdir()
    (tmp_path / "disk" / "debug.log").write_text("")
    (run / "recipe.json").write_text("{}")
    (run / "recipe-link.json").symlink_to("recipe.json")
    (run / "checkpoints").symlink_to(tmp_path / "disk")
    (run / "wandb" / "debug.log").symlink_to(tmp_path / "disk" / "debug.log")
    assert check_run_folder(run) == run
