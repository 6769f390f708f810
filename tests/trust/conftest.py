"""Fixtures of the long tests: a training process, and folders in memory."""

from tests.helpers.training_fixtures import tmp_path, training_process  # noqa: F401
