"""Decisions in a database of one's own: where a root lies in a bucket, or a team shares one."""

import io
from dataclasses import replace
from pathlib import Path

import builder
import made_run
import pytest
from rich.console import Console

from csl_dist.audit.revision import AuditStore
from csl_dist.config import FlagConfig, parse_config
from csl_dist.errors import ConfigError
from csl_dist.flag.stage import audit_fingerprint, make_audit
from csl_dist.review.store import Decision, NewReview, store_of
from csl_dist.training.inputs import open_inputs


def test_audit_learns_from_the_database_that_the_config_names(tmp_path: Path) -> None:
    made_run.make_run(tmp_path, FlagConfig())
    config = made_run.config_of(tmp_path, FlagConfig())
    database = f"sqlite:///{tmp_path}/team.db"
    shared = replace(config, audit=replace(config.audit, reviews=database))
    alone, together = open_inputs(config), open_inputs(shared)
    store = AuditStore(alone.run.paths)
    versions, first = store.record(1).scores, store.flags(1).iloc[0]
    assert audit_fingerprint(together, versions) == audit_fingerprint(alone, versions), "no reviews"
    assert not (tmp_path / "team.db").exists(), "who only reads makes no database"
    reviews = store_of(config.root, database)
    reviews.create()
    reviews.append(
        NewReview(
            key="1" * 8,
            revision=1,
            video=first.video,
            start=int(first.start),
            stop=int(first.stop),
            decision=Decision.CORRECT,
            reviewer="Ada",
        )
    )
    assert audit_fingerprint(together, versions) != audit_fingerprint(alone, versions)
    number = make_audit(together, versions, "reviewed")
    assert store.record(number).num_reviewed == 1
    spans = store.flags(number)[["video", "start", "stop"]].itertuples(index=False, name=None)
    assert (first.video, first.start, first.stop) not in list(spans)


def test_decisions_that_do_not_count_are_told(tmp_path: Path) -> None:
    root = made_run.make_run(tmp_path, FlagConfig())
    config = made_run.config_of(tmp_path, FlagConfig())
    database = f"sqlite:///{tmp_path}/team.db"
    inputs = open_inputs(replace(config, audit=replace(config.audit, reviews=database)))
    said = io.StringIO()
    builder.finish_run(inputs, Console(file=said, width=400))
    assert f"audit.reviews: {database} is not there yet" in said.getvalue()
    assert "only decisions" not in said.getvalue()
    for store in (store_of(root, None), store_of(root, database)):
        store.create()
    said = io.StringIO()
    builder.finish_run(inputs, Console(file=said, width=400))
    assert "not there yet" not in said.getvalue()
    assert f"only decisions in {database} count" in said.getvalue()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://csl:secret@db/reviews", "PGPASSWORD"),
        ("postgresql://csl:secret/more@db/reviews", "PGPASSWORD"),
        ("postgresql://csl:#secret@db/reviews", "PGPASSWORD"),
        ("postgresql://csl@db/reviews?password=secret", "PGPASSWORD"),
        ("postgresql://csl@db/reviews?sslmode=require&sslpassword=secret", "PGPASSWORD"),
        ("postgresql://csl@db/reviews#x?password=secret", "PGPASSWORD"),
        ("postgresqlfoo://csl@db/reviews", "names no database"),
        ("sqlite:///team.db", "four slashes"),
        ("sqlite://", "four slashes"),
        ("sqlite:////", "four slashes"),
        ("sqlite:////:memory:", "four slashes"),
        ("reviews.db", "names no database"),
        ("s3://bucket/reviews.db", "names no database"),
    ],
)
def test_database_that_an_audit_can_not_learn_from_is_refused(url: str, words: str) -> None:
    data = {"root": "r", "dataset": {"path": "d"}, "audit": {"reviews": url}}
    with pytest.raises(ConfigError, match=words) as refused:
        parse_config(data, where="the test")
    assert "audit.reviews" in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://csl@db:5432/reviews?application_name=a@b",
        "postgres://db/reviews",
        "sqlite:////srv/team:1@home.db",
    ],
)
def test_database_without_a_password_is_taken(url: str) -> None:
    data = {"root": "r", "dataset": {"path": "d"}, "audit": {"reviews": url}}
    assert parse_config(data, where="the test").audit.reviews == url
