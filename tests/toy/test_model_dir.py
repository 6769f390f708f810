"""The folder of a toy model: other fields and other code name another one."""

import sys

from grupo.tasks import digit_sums, scenes
from grupo.toy import masked_lm, sft, tokenizers
from grupo.toy.digit_sums_lm import ToyDigitSumsLM
from grupo.toy.model_dir import code_modules, model_dir_of
from grupo.toy.vision_lm import ToyVisionLM
from grupo.util.importing import load_module_file

EXAMPLES = '''"""Examples."""

from grupo.core.component import component


@component
class Examples:
    """Numbers."""

    size: int = 4

    def draw(self, rng):
        return rng.randrange(self.size)
'''


def folder_of(file, text, **fields):
    """The folder of a toy model that a file defines."""
    file.write_text(text)
    module = load_module_file(file)
    try:
        return model_dir_of(module.Examples(**fields), "numbers")
    finally:
        del sys.modules[module.__name__]


def test_other_code_or_fields_name_another_folder(tmp_path):
    file = tmp_path / "examples.py"
    folder = folder_of(file, EXAMPLES)
    assert folder.name.startswith("numbers-")
    assert folder_of(file, EXAMPLES, size=5) != folder
    assert folder_of(file, EXAMPLES.replace("randrange(", "randrange(1, ")) != folder


def test_comments_and_docstrings_do_not_name_another_folder(tmp_path):
    file = tmp_path / "examples.py"
    folder = folder_of(file, EXAMPLES)
    assert folder_of(file, EXAMPLES.replace("Numbers.", "Whole numbers.")) == folder
    assert folder_of(file, f"{EXAMPLES}# the end\n") == folder


def test_the_code_of_tasks_examples_and_tokenizers_counts_and_that_of_others_does_not():
    names = code_modules(ToyDigitSumsLM())
    assert {x.__name__ for x in (digit_sums, sft, tokenizers)} <= names
    assert not {x.__name__ for x in (masked_lm, scenes)} & names
    assert {x.__name__ for x in (scenes, tokenizers)} <= code_modules(ToyVisionLM())
