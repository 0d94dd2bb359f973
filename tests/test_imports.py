"""Imports point one way, and Ray and Zarr stay where they belong."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "csl_dist"

LAYERS = (
    ("errors", "records"),
    (
        "config",
        "selection",
        "score_names",
        "published",
        "storage",
        "layout",
        "ledger",
        "arrays",
        "trackers",
    ),
    ("run_file", "verdict", "pulse"),
    (
        "timeline",
        "flag_edits",
        "video",
        "frames",
        "feature_files",
        "corrupt",
        "datasets",
        "encoder",
        "models",
    ),
    (
        "features",
        "ready_features",
        "node_features",
        "catalog",
        "checkpoints",
        "foreign",
        "trajectories",
        "scores",
        "batches",
    ),
    ("extract", "train", "score", "reduce", "flag", "evaluate", "check", "init", "plan", "rates"),
    ("baselines", "ensemble", "calibrate", "labelled"),
    ("run",),
    ("scored",),
    ("rehearse",),
    ("findings", "measurements", "reproduce", "paper_tables", "status", "trainings", "worklist"),
    ("publish", "query"),
    ("relabel",),
    ("report", "export", "tables", "answers"),
    ("remote",),
    ("service",),
    ("bench",),
    ("cli",),
)
"""From the bottom; a module imports from its own layer or below."""

STAGES = ("extract", "train", "score", "reduce", "flag", "evaluate")
STORES = ("arrays",)


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def unit_of(path: Path) -> str:
    """The top-level module or subpackage that a file belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_names(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            if node.module == "csl_dist":
                names |= {f"csl_dist.{alias.name}" for alias in node.names}
    return names


def layer_of(unit: str) -> int:
    return next(i for i, layer in enumerate(LAYERS) if unit in layer)


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_of_a_module_point_down(path: Path) -> None:
    unit = unit_of(path)
    if unit == "__init__":
        return
    own = {name.split(".")[1] for name in imported_names(path) if name.startswith("csl_dist.")}
    upward = {other for other in own - {unit} if layer_of(other) > layer_of(unit)}
    assert not upward
    if unit in STAGES:
        assert not own & set(STAGES) - {unit}, "stages meet in the stores, not in each other"


@pytest.mark.parametrize(
    ("package", "allowed"),
    [("ray", ("remote", "service", "bench", "cli")), ("zarr", STORES), ("obstore", ("storage",))],
)
def test_package_is_imported_only_where_it_belongs(package: str, allowed: tuple[str, ...]) -> None:
    users = {
        unit_of(path)
        for path in modules()
        if any(name.split(".")[0] == package for name in imported_names(path))
    }
    assert users <= set(allowed)
    assert users, f"{package} is imported nowhere: is this test looking in the right place?"
