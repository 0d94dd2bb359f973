"""Pages that are made from the source are as the source is now."""

import importlib.util
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def test_config_reference_is_that_of_the_source() -> None:
    path = DOCS / "config_reference.py"
    spec = importlib.util.spec_from_file_location("config_reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = module.reference()
    assert (DOCS / "config.md").read_text() == page, "run: python docs/config_reference.py"
    assert "| `batch_frames` | `auto` |" in page
