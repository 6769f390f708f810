import pytest

from grupo.core.errors import ConfigError
from grupo.tasks import (
    Columns,
    DatasetTasks,
    FromImportPath,
    ReasoningGym,
    TaskMixture,
    import_function,
    parse_task_source,
)


def test_a_family_is_named_with_its_numbers():
    assert parse_task_source("rg:chain_sum") == ReasoningGym("chain_sum")
    assert parse_task_source(
        "rg:chain_sum(min_terms=2, max_terms=3, seed=5, size=9)"
    ) == ReasoningGym("chain_sum", size=9, seed=5, settings=(("min_terms", 2), ("max_terms", 3)))
    assert parse_task_source("rg:basic_arithmetic(operators=['+', '-'])") == ReasoningGym(
        "basic_arithmetic", settings=(("operators", ("+", "-")),)
    )


def test_a_mix_is_named_by_its_sum():
    left = ReasoningGym("chain_sum", template="a+b*{question}")
    assert parse_task_source("rg:chain_sum(template='a+b*{question}')*2 + rg:gcd") == TaskMixture(
        ((left, 2.0), (ReasoningGym("gcd"), 1.0))
    )


def test_tables_are_named_by_their_path(tmp_path):
    assert parse_task_source("rows.jsonl") == DatasetTasks("rows.jsonl")
    assert parse_task_source(
        "openai/gsm8k(prompt='question', config='main', split='test')"
    ) == DatasetTasks("openai/gsm8k", Columns(prompt="question"), split="test", config="main")
    (tmp_path / "a:b.jsonl").write_text('{"prompt": "a"}')
    assert parse_task_source(str(tmp_path / "a:b.jsonl")).load()[0].prompt == "a"


def test_a_function_is_named_by_its_place(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def tasks():\n    yield {'prompt': '1 + 1 =', 'answer': 2}\n")
    source = parse_task_source(f"{file}:tasks")
    assert source == FromImportPath(f"{file}:tasks")
    assert [(task.prompt, task.reference_answer) for task in source.load()] == [("1 + 1 =", 2)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "No tasks are named"),
        ("rg:chain_sun", "Did you mean 'chain_sum'"),
        ("rg:chain_sum(min_term=2)", "Did you mean 'min_terms'"),
        ("rg:chain_sum(2)", "Allowed: name"),
        ("rg:chain_sum(min_terms=__import__('os'))", "Allowed: name"),
        ("rg:chain_sum(**{'min_terms': 2})", "Allowed: name"),
        ("rg:chain_sum(min_terms=2", "Allowed: name"),
        ("rg:chain_sum*much", "is not a weight"),
        ("rg:chain_sum*0", "weights"),
        ("rg:chain_sum+gcd", "terms that begin with rg:"),
        ("rows.jsonl(promt='q')", "Did you mean 'prompt'"),
        ("no.such.module:tasks", "does not import: ModuleNotFoundError"),
    ],
)
def test_what_cannot_be_read_is_refused(text, said):
    with pytest.raises(ConfigError, match=said):
        parse_task_source(text)


def test_functions_are_found_in_files_that_import_their_neighbours(tmp_path):
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
    with pytest.raises(ConfigError, match=r"Write module:name"):
        import_function("package.module.function")


def test_a_file_that_does_not_run_says_why(tmp_path):
    (tmp_path / "broken.py").write_text("1 / 0\n")
    with pytest.raises(ConfigError, match=r"broken\.py does not import: ZeroDivisionError"):
        import_function(f"{tmp_path}/broken.py:f")
