"""The graph of imports: computed from the source, one direction, as few layers as the design has.

`cli, jobs, service -> pipeline -> stages -> stores -> data, storage -> types, errors`.
"""

import ast
from collections.abc import Iterable
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "csl_dist"

COMPOSED = ("features.adapt", "predict.follow")
"""Modules made of several stages, which stand above them."""
LAYERS = (
    ("types", "errors", "words"),
    ("config", "strategies", "measures", "storage", "data", "lint"),
    (
        *("run", "cluster", "features", "training", "predict", "score", "flag", "evaluate"),
        *("audit", "cost", "report", "export", "review", "certify"),
    ),
    ("stage",),
    ("pipeline",),
    ("cli", "service"),
)
"""From the bottom; a module imports from its own layer or below. `stage` is every `stage.py`."""


def modules() -> dict[str, Path]:
    """Files by the name of their module below the package; a folder's own by the folder's."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = list(path.relative_to(PACKAGE).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {name: path for name, path in found.items() if name}


MODULES = modules()


def imported(path: Path) -> set[str]:
    """Full names of the modules, and of what is taken from them, anywhere in a file."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def own_imports(path: Path) -> set[str]:
    """Modules of the package that a file imports."""
    own = {name.removeprefix("csl_dist.") for name in imported(path)}
    return {name for name in own if name in MODULES}


GRAPH = {name: own_imports(path) - {name} for name, path in MODULES.items()}


def is_stage(module: str) -> bool:
    return (module.endswith(".stage") and module != "cluster.stage") or module in COMPOSED


def room(module: str) -> str:
    """The top-level folder or module that a module belongs to; stages are a room of their own."""
    return "stage" if is_stage(module) else module.split(".")[0]


def layer(module: str) -> int:
    return next(i for i, rooms in enumerate(LAYERS) if room(module) in rooms)


def require_order(graph: dict[str, set[str]]) -> None:
    """Raises CycleError, which names the cycle."""
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize("module", MODULES)
def test_imports_of_a_module_point_down(module: str) -> None:
    assert not {other for other in GRAPH[module] if layer(other) > layer(module)}


def test_modules_have_no_cycle() -> None:
    require_order({m: {o for o in used if not m.startswith(f"{o}.")} for m, used in GRAPH.items()})


def test_folders_have_no_cycle() -> None:
    folders: dict[str, set[str]] = {}
    for module, used in GRAPH.items():
        if not is_stage(module):
            own = {room(other) for other in used if not is_stage(other)}
            folders.setdefault(room(module), set()).update(own - {room(module)})
    require_order(folders)


def test_stages_do_not_import_each_other() -> None:
    for module in filter(is_stage, MODULES):
        others = {other for other in GRAPH[module] if is_stage(other)}
        assert not others or module in COMPOSED, f"{module} imports {others}"


def users(package: str) -> set[str]:
    return {
        name
        for name, path in MODULES.items()
        if any(found.split(".")[0] == package for found in imported(path))
    }


def allowed(module: str, rooms: Iterable[str]) -> bool:
    return room(module) in rooms


@pytest.mark.parametrize(
    ("package", "rooms"),
    [
        ("ray", ("stage", "cluster", "service")),
        ("zarr", ("storage",)),
        ("obstore", ("storage",)),
        ("fastapi", ("service",)),
        ("sqlalchemy", ("review",)),
        ("typer", ("cli",)),
    ],
)
def test_package_is_imported_only_where_it_belongs(package: str, rooms: tuple[str, ...]) -> None:
    assert users(package), f"{package} is imported nowhere: does this test look in the right place?"
    assert not {module for module in users(package) if not allowed(module, rooms)}
