"""Names of files in data: whether they stay within the folder that holds the data."""

import re
from pathlib import PurePosixPath

_DRIVE = re.compile(r"[A-Za-z]:")


def stays_inside(name: object) -> bool:
    r"""True if a name, or a pattern of names, is that of a file in the folder or below it.

    >>> [stays_inside(name) for name in ("a.json", "data/*.csv", "../a.json", "/etc/passwd")]
    [True, True, False, False]
    >>> [stays_inside(name) for name in ("https://host/a.csv", "zip://a::b.zip", r"C:\a", 3)]
    [False, False, False, False]
    """
    if not isinstance(name, str):
        return False
    path = name.replace("\\", "/")
    is_local = "://" not in path and "::" not in path and not _DRIVE.match(path)
    is_relative = not path.startswith(("/", "~")) and ".." not in PurePosixPath(path).parts
    return is_local and is_relative
