"""Stage: what every stage on Ray needs."""

from dataclasses import dataclass, field

from rich.console import Console

from csl_dist.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A run, and the console for the stage's messages."""

    run: Run
    console: Console = field(default_factory=Console)
    verbose: bool = False

    def say(self, sentence: str) -> None:
        self.console.print(sentence, highlight=False, markup=False, soft_wrap=True)
