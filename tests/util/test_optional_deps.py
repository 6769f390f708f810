"""The import of bitsandbytes, which peft imports, warns of nothing that grupo does not use."""

import subprocess
import sys

import pytest

pytest.importorskip("bitsandbytes")
WARNING = "gemm_4bit_forward"
# on a processor with AVX512-BF16, bitsandbytes looks for a kernel in a package of its own
PROGRAM = """
import logging, sys
from importlib.abc import MetaPathFinder

class WithBfloat16(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "bitsandbytes.backends.cpu.ops":
            sys.modules["bitsandbytes.functional"].has_avx512bf16 = lambda: True

sys.meta_path.insert(0, WithBfloat16())
sys.modules["kernels"] = None
{before}
from peft import LoraConfig
print("imported", "bitsandbytes.backends.cpu.ops" in sys.modules)
logging.getLogger("bitsandbytes.backends.cpu.ops").warning("another message")
"""


def messages(before: str) -> str:
    """What is printed on standard error if `before` comes before the import of peft."""
    command = [sys.executable, "-c", PROGRAM.format(before=before)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "imported True\n"
    return done.stderr


@pytest.mark.slow
def test_adapters_do_not_warn_of_a_missing_kernel_whoever_imports_peft():
    assert messages("from grupo.models.lora import Lora").splitlines() == ["another message"]


@pytest.mark.slow
def test_bitsandbytes_by_itself_warns():
    assert WARNING in messages("")
