"""Task sources from text."""

import pytest

from grupo.tasks import (
    Columns,
    DatasetTasks,
    FromImportPath,
    ReasoningGym,
    TaskMixture,
    parse_task_source,
)
from grupo.util.errors import ConfigError
from grupo.util.importing import import_function


def test_a_family_has_its_settings_as_arguments():
    assert parse_task_source("rg:chain_sum") == ReasoningGym("chain_sum")
    assert parse_task_source(
        "rg:chain_sum(min_terms=2, max_terms=3, seed=5, size=9)"
    ) == ReasoningGym("chain_sum", size=9, seed=5, settings=(("min_terms", 2), ("max_terms", 3)))
    assert parse_task_source("rg:basic_arithmetic(operators=['+', '-'])") == ReasoningGym(
        "basic_arithmetic", settings=(("operators", ("+", "-")),)
    )


def test_a_sum_of_families_is_a_mixture():
    left = ReasoningGym("chain_sum", template="a+b*{question}")
    assert parse_task_source("rg:chain_sum(template='a+b*{question}')*2 + rg:gcd") == TaskMixture(
        ((left, 2.0), (ReasoningGym("gcd"), 1.0))
    )


def test_a_path_or_hub_name_is_a_table(tmp_path):
    assert parse_task_source("rows.jsonl") == DatasetTasks("rows.jsonl")
    assert parse_task_source(
        "openai/gsm8k(prompt='question', config='main', split='test')"
    ) == DatasetTasks("openai/gsm8k", Columns(prompt="question"), split="test", config="main")
    (tmp_path / "a:b.jsonl").write_text('{"prompt": "a"}')
    assert parse_task_source(str(tmp_path / "a:b.jsonl")).load()[0].prompt == "a"


def test_an_import_path_is_a_function(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def tasks():\n    yield {'prompt': '1 + 1 =', 'answer': 2}\n")
    source = parse_task_source(f"{file}:tasks")
    assert source == FromImportPath(f"{file}:tasks")
    assert [(task.prompt, task.reference_answer) for task in source.load()] == [("1 + 1 =", 2)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The task source is empty"),
        ("rg:chain_sun", "Did you mean 'chain_sum'"),
        ("rg:chain_sum(min_term=2)", "Did you mean 'min_terms'"),
        ("rg:chain_sum(2)", "Allowed: name"),
        ("rg:chain_sum(min_terms=__import__('os'))", "Allowed: name"),
        ("rg:chain_sum(**{'min_terms': 2})", "Allowed: name"),
        ("rg:chain_sum(min_terms=2", "Allowed: name"),
        ("rg:chain_sum*much", "weight after . is not a number"),
        ("rg:chain_sum*0", "TaskMixture.sources: "),
        ("rg:chain_sum+gcd", "terms that begin with rg:"),
        ("rows.jsonl(promt='q')", "Did you mean 'prompt'"),
        ("no.such.module:tasks", "does not import: ModuleNotFoundError"),
    ],
)
def test_invalid_text_is_a_config_error(text, message):
    with pytest.raises(ConfigError, match=message):
        parse_task_source(text)


def test_functions_are_imported_from_files_with_imports_of_their_own(tmp_path):
    (tmp_path / "neighbour_of_mine.py").write_text("NUMBER = 7\n")
    file = tmp_path / "mine.py"
    file.write_text("from neighbour_of_mine import NUMBER\ncalls = []\n\ndef f(): return NUMBER\n")
    assert import_function(f"{file}:f")() == 7
    assert import_function(f"{file}:f") is import_function(f"{file}:f")
    with pytest.raises(ConfigError, match=r"has no 'g'. .*Allowed: .*\bf\b"):
        import_function(f"{file}:g")
    with pytest.raises(ConfigError, match=r"is a list, not a function"):
        import_function(f"{file}:calls")
    with pytest.raises(ConfigError, match=r"There is no file .*Did you mean 'mine\.py'"):
        import_function(f"{tmp_path}/mein.py:f")
    with pytest.raises(ConfigError, match=r"Allowed: module:name"):
        import_function("package.module.function")


def test_the_error_of_a_file_names_the_reason(tmp_path):
    (tmp_path / "broken.py").write_text("1 / 0\n")
    with pytest.raises(ConfigError, match=r"broken\.py does not import: ZeroDivisionError"):
        import_function(f"{tmp_path}/broken.py:f")
