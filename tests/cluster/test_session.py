"""Ray that can't be reached or started: one sentence, soon."""

import socket
import time

import pytest
import ray
from ray.exceptions import ActorDiedError, AuthenticationError, RaySystemError, RayTaskError

from csl_dist.cluster import session
from csl_dist.errors import JobError


@pytest.fixture
def no_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)


@pytest.mark.usefixtures("no_ray")
@pytest.mark.parametrize("form", ["{}", "ray://{}"])
def test_dead_address_is_told_within_seconds(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = form.format(f"127.0.0.1:{unused.getsockname()[1]}")
    monkeypatch.setenv("RAY_ADDRESS", address)
    begun = time.monotonic()
    with pytest.raises(JobError, match=f"no Ray cluster answers at RAY_ADDRESS={address}"):
        session.connect()
    assert time.monotonic() - begun < 10


@pytest.mark.usefixtures("no_ray")
@pytest.mark.parametrize(
    ("raised", "words"),
    [
        (AuthenticationError("unauthorized"), "needs its token"),
        (ConnectionError("Could not find any running Ray instance.\nmore"), "is RAY_ADDRESS right"),
        (RaySystemError("no head"), "the Ray cluster can't be used"),
    ],
)
def test_what_ray_raises_becomes_one_sentence(
    monkeypatch: pytest.MonkeyPatch, raised: Exception, words: str
) -> None:
    def init(**_: object) -> None:
        raise raised

    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    with pytest.raises(JobError, match=words) as refused:
        session.connect()
    assert "\n" not in str(refused.value)


@pytest.mark.usefixtures("no_ray")
def test_ray_that_is_slow_to_start_is_told(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "SLOW_SECONDS", 0.05)

    def init(**_: object) -> None:
        time.sleep(0.5)
        raise ValueError("the minimum allowed is 78643200 bytes")

    monkeypatch.setattr(ray, "init", init)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(JobError, match="can't start on this machine: the minimum .*/dev/shm"):
        session.connect()
    assert "Ray has not started on this machine" in capfd.readouterr().err


def test_lost_actors_and_nodes_are_told_from_errors_in_tasks() -> None:
    assert session.is_loss(ActorDiedError())
    assert session.is_loss(RaySystemError("gone"))
    assert not session.is_loss(RayTaskError("f", "trace", ValueError("a bug")))
    assert not session.is_loss(ValueError("a bug"))
