"""GRPO teaches a small real model each family of tasks on which methods can be compared.

These are the families of docs/real_survey.md that the model solves with 8 answers in 5 to 90 % of
the tasks: with more or fewer, few groups have both right and wrong answers. Each name is a recipe:

grupo train recipes/real/comparable.py:capitals --model PATH
grupo compare recipes/real/comparable.py:capitals --method grpo --method dr_grpo --out FOLDER
"""

from pathlib import Path

from grupo.util.importing import load_module_file

NAMES = (
    *("negative_sentence", "larger_number", "syllogism", "exact_sentences", "sums_1_digit"),
    *("keywords", "products", "lower_case", "json_keys", "capitals", "letters_of_a_word"),
    *("opposites", "copied_sentence", "exact_words", "words_of_a_sentence", "currency_codes"),
    *("package_summaries", "sums_2_digits", "simple_equations", "differences", "sums_3_terms"),
)
TRAINING = load_module_file(Path(__file__).with_name("training.py"))
RECIPES = {name: TRAINING.family_recipe(name) for name in NAMES}
globals().update(RECIPES)
