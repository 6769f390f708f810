"""Fetch SmolLM2 and say where it is: `python -m grupo.models.pretrained`."""

import sys

from grupo.models.pretrained.smollm2 import describe, fetch_smollm2
from grupo.util.console import print_error, print_line
from grupo.util.exit_codes import CommandError

if __name__ == "__main__":
    try:
        folder = fetch_smollm2()
    except CommandError as error:
        print_error(f"grupo: {error}")
        sys.exit(error.exit_code)
    for line in describe(folder):
        print_line(line)
