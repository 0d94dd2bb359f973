"""Stage: what a stage on Ray needs beside its inputs."""

from dataclasses import dataclass, field

from rich.console import Console

from csl_dist.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A run, and where the stage tells what it does."""

    run: Run
    console: Console = field(default_factory=Console)
    verbose: bool = False

    def say(self, sentence: str) -> None:
        self.console.print(sentence, highlight=False, markup=False, soft_wrap=True)
