"""An object of a run in a bucket that vanishes: named, never read as numbers or as an empty run."""

import fnmatch
from pathlib import Path

import pytest
from s3_server import BUCKET, FaultyProxy

from csl_dist.audit.reader import open_audit
from csl_dist.audit.verify import checks
from csl_dist.errors import CslError
from csl_dist.storage.url import Storage

KINDS = {
    "features": "features.zarr/*/c/*",
    "checkpoint": "*/checkpoints/*/meta.json",
    "trajectory": "transformer/trajectories.zarr/v2/*/c/*",
    "flags": "audits/*/flags.parquet",
    "audit": "audits/*/audit.json",
    "run": "run.json",
}
"""Kinds of stored things, and where their objects are."""
UNREAD = ("features", "checkpoint")
"""What nobody needs who reads an audit."""
UNMADE = ("checkpoint", "audit", "run")
"""What is written last: without it a thing is not done yet, and is made when it is asked for."""


@pytest.fixture
def remote(made_folder: Path, proxy: FaultyProxy, request: pytest.FixtureRequest) -> str:
    """The finished run, in a folder of the bucket that no other test uses."""
    name = request.node.name.translate(str.maketrans("[]", "--"))
    local, far = Storage(str(made_folder / "run")), Storage(f"s3://{BUCKET}/{name}")
    for key in local.list_keys():
        far.put(key, local.read(key))
    return far.url


def used(root: str) -> None:
    """Reads of a run what a person looks at."""
    audit = open_audit(root)
    audit.flags()
    for video in ("v1", "v2", "v3"):
        audit.csl(video)
        audit.trajectory(video, frames=slice(0, 300))
        audit.scores(video)


def named_damage(root: str) -> list[str]:
    """What `csl verify` says."""
    try:
        return [damage.what for check in checks(root) for damage in check.find()]
    except CslError as error:
        return [str(error)]


def test_object_that_vanished_is_named_and_goes_back(remote: str) -> None:
    storage = Storage(remote)
    keys = sorted(storage.list_keys())
    for kind, pattern in KINDS.items():
        key = next(key for key in keys if fnmatch.fnmatchcase(key, pattern))
        content = storage.read(key)
        storage.delete(key)
        if kind in UNREAD:
            used(remote)
        else:
            with pytest.raises(CslError) as caught:
                used(remote)
            assert "\n" not in str(caught.value)
        assert kind in UNMADE or named_damage(remote), kind
        storage.put(key, content)
    used(remote)


@pytest.mark.parametrize("part", ["/c/", ".parquet", ".json"])
def test_objects_that_vanish_after_they_were_listed_are_one_sentence(
    remote: str, proxy: FaultyProxy, part: str
) -> None:
    proxy.fault = lambda _, method, path: (
        "vanished" if method == "GET" and part in path and "list-type" not in path else None
    )
    with pytest.raises(CslError) as caught:
        used(remote)
    assert "\n" not in str(caught.value)
