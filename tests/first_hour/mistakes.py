"""Every mistake of the first hour: those of the diary, and others of users of TRL and verl."""

from tests.first_hour.diary_mistakes import DIARY
from tests.first_hour.other_mistakes import COMMAND_LINE
from tests.first_hour.python_mistakes import PYTHON

OTHERS = (*COMMAND_LINE, *PYTHON)
MISTAKES = (*DIARY, *OTHERS)
