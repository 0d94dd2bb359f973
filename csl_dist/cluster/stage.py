"""Stage: what every stage works with."""

from dataclasses import dataclass, field
from textwrap import fill

from rich.console import Console

from csl_dist.run import Run
from csl_dist.training.inputs import Inputs


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The inputs of a run, and the console for a stage's messages."""

    inputs: Inputs
    console: Console = field(default_factory=Console)
    verbose: bool = False

    @property
    def run(self) -> Run:
        return self.inputs.run

    def say(self, sentence: str) -> None:
        """A line in a log; on a terminal, lines that end between words."""
        if self.console.is_terminal:
            width = self.console.width
            sentence = fill(sentence, width, break_long_words=False, break_on_hyphens=False)
        self.console.print(sentence, highlight=False, markup=False, soft_wrap=True)
