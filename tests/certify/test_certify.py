"""Certificates: what is drawn, what follows from it, and that intervals hold."""

import re
import uuid
from dataclasses import replace
from pathlib import Path

import made_run
import numpy as np
import pytest
from served import client_of
from typer.testing import CliRunner

import csl_dist
from csl_dist.certify.certificate import certificate, wrong_shares
from csl_dist.certify.drawing import first_sample, larger_sample
from csl_dist.certify.estimate import (
    Judged,
    estimate,
    judged,
    next_stratum,
    simulated,
    wrong_share,
)
from csl_dist.certify.sample import read_sample
from csl_dist.certify.sampling import LEAST_DRAWS, Population, drawn, grown, population
from csl_dist.cli.app import app
from csl_dist.review.edits import SpanEdit
from csl_dist.review.segments import segment_table
from csl_dist.review.store import CurrentDecisions, Decision, NewReview, of_revision, store_of

RUNS = 120


def made_population(seed: int, rate: float = 0.06) -> tuple[Population, np.ndarray]:
    """Segments of a dataset and the wrong share of each; suspicion tells most wrong ones."""
    rng = np.random.default_rng(seed)
    seconds_N = rng.lognormal(2, 0.7, 800)
    is_wrong_N = rng.random(800) < rate
    score_N = rng.normal(size=800) + 2.5 * is_wrong_N
    flagged_N = np.where(score_N > np.quantile(score_N, 1 - rate), 1.0, np.nan)
    return population(seconds_N, score_N, flagged_N), is_wrong_N.astype(float)


def test_intervals_hold_as_often_as_they_say() -> None:
    """The fast form of benchmarks/certify.py, which has the figures."""
    num_held = 0
    for seed in range(RUNS):
        people, wrong_N = made_population(seed)
        draws_H = [LEAST_DRAWS] * people.num_strata
        for _ in range(8):
            chosen = drawn(people, draws_H, seed=seed)
            strata = [
                judged(one, {int(i): wrong_N[i] for i in one}, people.seconds_N, own, suspicion)
                for one, own, suspicion in zip(
                    chosen, people.own(), people.suspicion(), strict=True
                )
            ]
            seconds_HS = simulated(strata, seed=seed, num_simulations=500)
            draws_H = grown(draws_H, next_stratum(strata, seconds_HS))
        found = wrong_share(strata, seconds_HS, 0.95)
        truth = wrong_N @ people.seconds_N / people.seconds_N.sum()
        num_held += found.low <= truth <= found.high
    assert num_held / RUNS >= 0.93


def test_strata_tell_of_each_other() -> None:
    """Ten right draws of unsuspicious footage say more where suspicious footage is right too."""

    def high(wrong_above: float) -> float:
        whole = {"seconds": 500.0, "known_seconds": 0.0, "wrong_seconds": 0.0, "rest": 100.0}
        above = Judged(draws=40, wrong=wrong_above, squared=wrong_above, suspicion=1.0, **whole)
        below = Judged(draws=10, wrong=0.0, squared=0.0, suspicion=-1.0, **whole)
        return float(np.quantile(simulated([above, below], seed=0)[1], 0.975))

    assert high(0.0) < 0.7 * high(0.5)


def test_stratum_that_is_judged_whole_has_no_uncertainty() -> None:
    seconds_N = np.array([10.0, 20.0, 30.0])
    found = judged(np.array([0, 1, 2, 2]), {0: 1.0, 1: 0.0, 2: 0.5}, seconds_N, np.arange(3))
    result = estimate([found], confidence=0.95)
    assert result.low == result.high
    assert result.share == pytest.approx(25 / 60)
    assert result.low == pytest.approx(25 / 60)


def test_more_draws_keep_those_before() -> None:
    people, _ = made_population(1)
    few, many = (drawn(people, [n] * people.num_strata, seed=3) for n in (10, 25))
    for a, b in zip(few, many, strict=True):
        np.testing.assert_array_equal(a, b[:10])


def test_forecast_narrows_with_more_draws() -> None:
    one = Judged(
        seconds=1000,
        known_seconds=100,
        wrong_seconds=5,
        draws=20,
        wrong=0.05,
        squared=0.05,
        rest=100,
        suspicion=0.0,
    )
    widths = []
    for factor in (1, 2, 4, 8):
        found = estimate([one.scaled(factor)], confidence=0.95)
        widths.append(found.high - found.low)
    assert widths == sorted(widths, reverse=True)


def decide(root: str, span: tuple[str, int, int], decision: Decision, label: str | None) -> None:
    video, start, stop = span
    edits = None if label is None else (SpanEdit(start=start, stop=stop, label=label),)
    store_of(root, None).append(
        NewReview(
            key=uuid.uuid4().hex,
            revision=1,
            video=video,
            start=start,
            stop=stop,
            decision=decision,
            edits=edits,
            reviewer="Ada",
        )
    )


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, [*arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return re.sub(r"\s+", " ", done.output)


def test_certificate_is_drawn_reviewed_and_written(made_root: str) -> None:
    said = run("certify", made_root, "--claim", "90", "--seed", "4")
    assert "none of" in said
    sample = read_sample(csl_dist.open_audit(made_root))
    assert sample is not None
    assert not (Path(made_root) / "certificate.html").exists()
    client = client_of(made_root)
    rows = client.get("/api/audits/run/flags?source=sample").json()["flags"]
    assert [(r["video"], r["start"], r["stop"]) for r in rows] == list(sample.spans)
    for span in sample.spans:
        is_wrong = span[0] == "v2" and span[1] == made_run.WRONG.start
        decide(
            made_root,
            span,
            Decision.EDITED if is_wrong else Decision.CORRECT,
            "b" if is_wrong else None,
        )
    said = run("certify", made_root, "--claim", "90")
    # Eight segments, all of them drawn: 4 of 60 seconds are wrong, and nothing is left open.
    assert "93.3% of seconds are right (93.3% to 93.3% at 95%)" in said
    assert "the claim of 90.0% holds" in said
    page = (Path(made_root) / "certificate.html").read_text()
    assert "93.3 %" in page
    assert "seed 4" in page
    assert "can't be made" in run("certify", made_root, "--claim", "99")


def test_boundary_within_the_tolerance_is_right(made_root: str) -> None:
    segments = segment_table(csl_dist.open_audit(made_root))
    store_of(made_root, None).create()
    first = segments[(segments.video == "v3") & (segments.start == 100)].iloc[0]
    span = ("v3", int(first.start), int(first.stop))
    index = int(first.name)
    for frames, wanted in ((15, 0.0), (25, 0.25)):
        video, start, stop = span
        store_of(made_root, None).append(
            NewReview(
                key=uuid.uuid4().hex,
                revision=1,
                video=video,
                start=start,
                stop=stop,
                decision=Decision.EDITED,
                edits=(SpanEdit(start=stop - frames, stop=stop, label="c"),),
                reviewer="Ada",
            )
        )
        current = CurrentDecisions(store_of(made_root, None), of_revision(1)).by_span()
        assert wrong_shares(segments, current, within_seconds=2.0)[index] == wanted


def test_larger_sample_holds_the_smaller_one(made_root: str) -> None:
    segments = segment_table(csl_dist.open_audit(made_root))
    many = segments.loc[segments.index.repeat(60)].reset_index(drop=True)
    many["video"] = [f"{video}-{i}" for i, video in enumerate(many.video)]
    given = {"seed": 1, "within_seconds": 2.0, "confidence": 0.95}
    sample = first_sample(many, num_reviews=40, **given)
    larger = larger_sample(sample, many, {}, num_more=30)
    assert larger.spans[: len(sample.spans)] == sample.spans
    assert len(larger.spans) >= len(sample.spans) + 30
    found = certificate(larger, many, {}, claim=0.97)
    assert (found.judged, found.still_needed) == (0, None)


def test_sample_grows_to_all_segments_and_ends_there(made_root: str) -> None:
    """Also where every judged segment is right, so that no simulated dataset tells strata apart."""
    audit = csl_dist.open_audit(made_root)
    segments = segment_table(audit)
    store_of(made_root, None).create()
    given = {"seed": 1, "within_seconds": 2.0, "confidence": 0.95}
    sample = first_sample(segments, num_reviews=1, **given)
    sample = replace(sample, draws=(1,) * len(sample.draws), spans=sample.spans[:1])
    decide(made_root, sample.spans[0], Decision.CORRECT, None)
    current = CurrentDecisions(store_of(made_root, None), of_revision(1)).by_span()
    assert set(larger_sample(sample, segments, current, num_more=10_000).spans) == {
        (v, a, b) for v, a, b in zip(segments.video, segments.start, segments.stop, strict=True)
    }


def test_tolerance_that_is_no_time_is_refused(made_root: str) -> None:
    done = CliRunner().invoke(app, ["certify", made_root, "--within", "soon"])
    assert done.exit_code != 0
    assert "give seconds" in str(done.exception)
