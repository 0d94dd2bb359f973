"""Real label files, where they are at hand."""

import sys
from pathlib import Path

import numpy as np
import pytest

from csl_dist.lint.findings import Kind
from csl_dist.lint.run import lint

ROOT = Path(__file__).parents[2]
DATA = ROOT / "../shared/data"
sys.path.insert(0, str(ROOT / "benchmarks"))

pytestmark = pytest.mark.skipif(not DATA.exists(), reason=f"no real data in {DATA}")


@pytest.mark.parametrize("name", ["50salads", "cholec80", "breakfast"])
def test_clean_dataset_has_one_finding_an_hour_at_most(name: str) -> None:
    from label_data import READERS

    result = lint(READERS[name](DATA))
    assert len(result.findings) <= result.hours


def test_two_copied_files_of_needle_passing_are_told_and_none_elsewhere() -> None:
    from label_data import READERS

    copies = {
        name: [
            {f.video, f.evidence["other"]}
            for f in lint(READERS[name](DATA)).findings
            if f.kind is Kind.DUPLICATE and "other" in f.evidence
        ]
        for name in ("needle_passing", "knot_tying", "gtea", "captaincook4d")
    }
    names = [{f"Needle_Passing_S0{k}_T0{trial}" for k in (3, 4)} for trial in (4, 3)]
    assert copies == {"needle_passing": names, "knot_tying": [], "gtea": [], "captaincook4d": []}


def test_misspelt_step_of_captaincook_is_told() -> None:
    from label_data import READERS

    findings = lint(READERS["captaincook4d"](DATA)).findings
    told = [f.sentence for f in findings if f.kind is Kind.CLASS_NAMES]
    assert len(told) == 1
    assert "chat masala" in told[0]


def test_three_annotators_of_poem_agree_on_most_of_the_time() -> None:
    from label_data import READERS

    pairs = lint(READERS["poem"](DATA)).agreement.pairs
    assert [(p.first, p.second, p.num_videos) for p in pairs] == [
        ("01", "02", 14),
        ("01", "03", 14),
        ("02", "03", 14),
    ]
    assert all(0.8 < pair.agreed < 0.95 for pair in pairs)


def test_real_order_errors_of_captaincook_rank_high() -> None:
    from label_data import captaincook_with_errors
    from lint import judged_recordings

    judged = judged_recordings(list(captaincook_with_errors(DATA)), clean_reference=True)
    auc, precision = judged.figures("order")
    assert auc > 90
    assert precision > 75
    assert np.concatenate(judged.wrong).sum() == 382
