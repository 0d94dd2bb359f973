"""The files in cluster/ fit what reads them: the launcher's own schema, and KubeRay's fields."""

import json
import re
import runpy
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import ray.autoscaler
import yaml
from ray.autoscaler._private.util import prepare_config, validate_config

from csl_dist.cluster.session import NUM_GPUS_VARIABLE

CLUSTER = Path(__file__).parents[1] / "cluster"

CLUSTER_FIELDS = {
    "rayVersion",
    "enableInTreeAutoscaling",
    "autoscalerOptions",
    "authOptions",
    "headGroupSpec",
    "workerGroupSpecs",
}
JOB_FIELDS = {
    "entrypoint",
    "backoffLimit",
    "shutdownAfterJobFinishes",
    "ttlSecondsAfterFinished",
    "rayClusterSpec",
}
"""Those of KubeRay's API `ray.io/v1` that the manifests use; a typing error is none of them."""


def read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((CLUSTER / name).read_text())
    return content


@pytest.mark.parametrize("name", ["aws.yaml", "gcp.yaml"])
def test_launcher_file_fits_the_schema_of_ray(name: str) -> None:
    schema = json.loads(Path(ray.autoscaler.__file__).with_name("ray-schema.json").read_text())
    config = read(name)
    jsonschema.validate(config, schema)
    validate_config(prepare_config(config))
    spot = config["available_node_types"]["gpu"]["node_config"]
    assert "spot" in json.dumps(spot).lower()
    assert config["available_node_types"]["gpu"]["max_workers"] <= config["max_workers"]


def cluster_spec(name: str) -> dict[str, Any]:
    spec: dict[str, Any] = read(name)["spec"]
    return spec.get("rayClusterSpec", spec)


@pytest.mark.parametrize("name", ["raycluster.yaml", "rayjob.yaml"])
def test_kuberay_manifest_has_known_fields_and_gpu_workers(name: str) -> None:
    manifest = read(name)
    assert manifest["apiVersion"] == "ray.io/v1"
    assert manifest["kind"] == {"raycluster": "RayCluster", "rayjob": "RayJob"}[Path(name).stem]
    spec = cluster_spec(name)
    assert set(spec) == CLUSTER_FIELDS
    assert spec["rayVersion"] == version("ray")
    assert spec["authOptions"] == {"mode": "token"}
    assert spec["enableInTreeAutoscaling"] is True
    for group in [spec["headGroupSpec"], *spec["workerGroupSpecs"]]:
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())
        assert group["template"]["spec"]["containers"]
    (workers,) = spec["workerGroupSpecs"]
    assert workers["minReplicas"] <= workers["replicas"] <= workers["maxReplicas"]
    (container,) = workers["template"]["spec"]["containers"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert container["resources"]["limits"] == container["resources"]["requests"]


def test_job_manifest_mounts_the_config_that_it_runs() -> None:
    spec = read("rayjob.yaml")["spec"]
    assert set(spec) == JOB_FIELDS
    head = spec["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    (mount,) = head["containers"][0]["volumeMounts"]
    assert spec["entrypoint"].split()[-1].startswith(mount["mountPath"])
    assert mount["name"] in {volume["name"] for volume in head["volumes"]}


def test_manifests_of_cluster_and_job_differ_in_the_config_alone() -> None:
    cluster, job = cluster_spec("raycluster.yaml"), cluster_spec("rayjob.yaml")
    head = job["headGroupSpec"]["template"]["spec"]
    (variable,) = head["containers"][0].pop("env")
    assert variable == {"name": NUM_GPUS_VARIABLE, "value": "16"}
    del head["volumes"], head["containers"][0]["volumeMounts"]
    assert cluster == job


def test_slurm_script_is_valid_shell() -> None:
    subprocess.run(["bash", "-n", CLUSTER / "slurm.sh"], check=True)


def test_image_has_the_version_of_ray_that_is_pinned() -> None:
    assert f"RAY_VERSION={version('ray')}\n" in (CLUSTER / "Dockerfile").read_text()


def test_image_lists_what_it_is_made_of() -> None:
    made = subprocess.run(
        [sys.executable, CLUSTER / "sbom.py"], capture_output=True, text=True, check=True
    )
    components = {one["name"]: one for one in json.loads(made.stdout)["components"]}
    assert components["torch"]["version"] == version("torch")
    assert "GPL" in components["libavcodec (FFmpeg, inside av)"]["licenses"][0]["license"]["name"]


def pins(name: str) -> dict[str, str]:
    lines = (CLUSTER.parent / name).read_text().splitlines()
    found = (re.match(r"([\w.-]+)==([\w.+!-]+)", line) for line in lines)
    return {re.sub("[-_.]+", "-", pin[1]).lower(): pin[2] for pin in found if pin}


def test_hashes_are_those_of_the_pinned_versions() -> None:
    """`make hashes` writes them anew; torch has a build for each kind of machine, and no hash."""
    versions, hashed = pins("constraints.txt"), pins("constraints-hashes.txt")
    assert len(hashed) > 150
    assert {name: versions.get(name) for name in hashed} == hashed
    assert not {"torch", "torchvision"} & hashed.keys()


def test_database_of_holes_that_is_not_reached_is_one_sentence_and_no_failure() -> None:
    skipped = {"name": "av", "skip_reason": "Dependency not found on PyPI"}
    clean = {"name": "attrs", "version": "26.1", "vulns": []}
    hole = {"id": "CVE-1", "fix_versions": ["3.2"]}
    torn = {"name": "zarr", "version": "3.1", "vulns": [hole]}
    told = runpy.run_path(str(CLUSTER / "holes.py"))["told"]
    lines, code = told([skipped, skipped])
    assert (len(lines), code) == (1, 0)
    assert "none of 2 packages could be looked up" in lines[0]
    assert told([clean, skipped]) == (["known holes: 0 in 1 of 2 packages that were looked up"], 0)
    assert told([clean, torn])[0][1:] == ["zarr 3.1: CVE-1, mended in 3.2"]
    assert told([clean, torn])[1] == 1
