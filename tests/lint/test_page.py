"""Colours on the page of findings."""

from made_labels import sequence

from csl_dist.lint.page.drawing import class_colours
from csl_dist.lint.run import lint


def test_class_has_one_colour_in_all_procedures_and_its_own_in_each() -> None:
    recipes = {
        "tea": ["boil", "pour", "stir", "drink"],
        "soup": ["cut", "boil", "stir", "eat", "rinse"],
        "salad": ["cut", "rinse", "pour", "eat"],
    }
    procedures = lint(
        sequence(f"{name}{i}", steps, procedure=name)
        for name, steps in recipes.items()
        for i in range(3)
    ).procedures
    colours = class_colours(procedures)
    assert set(colours) == {step for steps in recipes.values() for step in steps}
    for steps in recipes.values():
        assert len({colours[step] for step in steps}) == len(steps)
