"""`csl bench`: runs a script of `benchmarks/`, which csl_dist has only where it is checked out.

Everything that a benchmark measures with is in the scripts; nothing of it is imported here.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from csl_dist.cli.app import app, say
from csl_dist.errors import ConfigError

CHECKOUT = Path(__file__).parents[2]


# Options after NAME are the script's.
@app.command(
    rich_help_panel="Stores and speed", context_settings={"allow_interspersed_args": False}
)
def bench(
    name: Annotated[
        str | None, typer.Argument(help="Which one; without it, all are listed.", metavar="NAME")
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Argument(help="Handed on; `csl bench NAME --help` tells them.", metavar="OPTIONS"),
    ] = None,
) -> None:
    """Measure the product beside something simple, where it is checked out."""
    scripts = _scripts(CHECKOUT)
    if name is None:
        width = max(map(len, scripts)) + 2
        for known, script in scripts.items():
            say(f"{known:<{width}}{_purpose(script)}")
        return
    if name not in scripts:
        raise ConfigError(f"there is no benchmark {name!r}; there are {', '.join(scripts)}")
    paths = [str(CHECKOUT), *filter(None, [os.environ.get("PYTHONPATH")])]
    done = subprocess.run(
        [sys.executable, str(scripts[name]), *(options or [])],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        check=False,
    )
    raise typer.Exit(done.returncode)


def _scripts(checkout: Path) -> dict[str, Path]:
    """The benchmarks by name; other modules there are what they share."""
    if not (checkout / "pyproject.toml").is_file():
        raise ConfigError(
            "the benchmarks are scripts of the source code, and csl_dist is installed without it; "
            "clone the repository, `pip install -e .` there, and run `csl bench` again"
        )
    paths = sorted((checkout / "benchmarks").glob("*.py"))
    return {path.stem: path for path in paths if '__name__ == "__main__"' in path.read_text()}


def _purpose(script: Path) -> str:
    """The first line of a script's docstring."""
    return (ast.get_docstring(ast.parse(script.read_text())) or "").partition("\n")[0]
