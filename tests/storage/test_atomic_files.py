import os

import pytest

from grupo.storage import atomic_files


def test_atomic_write_replaces_the_text_and_leaves_no_other_file(tmp_path):
    atomic_files.write_atomically(tmp_path / "recipe.json", "old")
    atomic_files.write_atomically(tmp_path / "recipe.json", "né")
    assert (tmp_path / "recipe.json").read_text(encoding="utf-8") == "né"
    assert os.listdir(tmp_path) == ["recipe.json"]


def test_write_new_never_overwrites_a_file(tmp_path):
    (tmp_path / "a").write_text("old")
    with pytest.raises(FileExistsError):
        atomic_files.write_new(tmp_path / "a", [b"new"])
    assert (tmp_path / "a").read_text() == "old"


def test_folders_are_created_with_parents_and_removed_with_contents(tmp_path):
    atomic_files.make_folder(tmp_path / "a" / "b")
    atomic_files.make_folder(tmp_path / "a" / "b")
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "a" / "b" / "link").symlink_to(tmp_path / "kept")
    atomic_files.remove(tmp_path / "a")
    assert os.listdir(tmp_path) == ["kept"]
    assert os.listdir(tmp_path / "kept") == ["file"]


def test_remove_unfinished_removes_only_temporary_files(tmp_path):
    (tmp_path / "tmp.1").mkdir()
    (tmp_path / "tmp.1" / "weights").touch()
    (tmp_path / "tmp.2").touch()
    (tmp_path / "step-00000001").mkdir()
    atomic_files.remove_temporary_files(tmp_path)
    assert os.listdir(tmp_path) == ["step-00000001"]
