"""Whatever is imported first: these packages need some of each other."""

import subprocess
import sys

import pytest

# what is heavy is loaded once, and each child that is forked begins with nothing of ours
EACH = """
import importlib, os, pkgutil, sys
import numpy, torch, transformers
from transformers import AutoModelForCausalLM, PreTrainedModel
package = importlib.util.find_spec("grupo." + sys.argv[1])
found = pkgutil.walk_packages(package.submodule_search_locations, package.name + ".")
names = [module.name for module in found]
del sys.modules["grupo"]
for name in names:
    child = os.fork()
    if not child:
        code = 1
        try:
            importlib.import_module(name)
            code = 0
        finally:
            os._exit(code)
    if os.waitpid(child, 0)[1]:
        print(name)
print(len(names) > 3)
"""


@pytest.mark.parametrize("package", ["engines", "lean", "packing", "policies"])
def test_every_module_can_be_the_first(package):
    asked = [sys.executable, "-c", EACH, package]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert said.split() == ["True"]
