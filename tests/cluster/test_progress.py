"""What a stage shows: bars and sentences, on terminals of any width and in logs."""

import io
from typing import Any, cast

import pytest
from rich.console import Console

from csl_dist.cluster.progress import progress_bar
from csl_dist.cluster.stage import Stage

NOTE = "8 units in flight, 123,457 frames x checkpoints/s, 13 min left"
PATH = "/" + "long/" * 30


def shown_on(width: int, is_terminal: bool) -> tuple[Console, io.StringIO]:
    text = io.StringIO()
    console = Console(file=text, force_terminal=is_terminal, width=width, color_system=None)
    return console, text


@pytest.mark.parametrize(("width", "has_note"), [(80, False), (120, False), (180, True)])
def test_bar_shows_a_note_only_where_it_fits_whole(width: int, has_note: bool) -> None:
    console, text = shown_on(width, is_terminal=True)
    with progress_bar(console, "predict: units", total=216) as bar:
        bar.note(NOTE)
        bar.advance(100)
    assert "100/216" in text.getvalue()
    assert (NOTE in text.getvalue()) is has_note
    assert "…" not in text.getvalue()


@pytest.mark.parametrize("is_terminal", [True, False])
def test_sentence_ends_lines_between_words_on_a_terminal_alone(is_terminal: bool) -> None:
    console, text = shown_on(40, is_terminal)
    words = [*("findings score high " * 6).split(), PATH, "end"]
    Stage(inputs=cast(Any, None), console=console).say(" ".join(words))
    lines = text.getvalue().splitlines()
    assert " ".join(lines).split() == words
    assert PATH in text.getvalue(), "a path stays whole"
    assert (len(lines) > 1) is is_terminal
