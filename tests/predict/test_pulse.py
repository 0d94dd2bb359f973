import time
from dataclasses import replace
from pathlib import Path

import pytest

from csl_dist.predict.pulse import Pulse, RecentRate, duration, end_pulse, put_pulse, read_pulse
from csl_dist.storage.paths import RunPaths
from csl_dist.storage.url import Storage

PULSE = Pulse(
    units_done=1200,
    units_total=4000,
    units_in_flight=8,
    frame_rate=123456.7,
    seconds_left=780.0,
    lost_workers=0,
    skipped_checkpoints=0,
    at=0.0,
)


def test_pulse_says_rate_and_time_left() -> None:
    expected = "8 units in flight, 123,457 frames x checkpoints/s, 13 min left"
    assert PULSE.sentence() == expected
    failing = replace(PULSE, lost_workers=2, skipped_checkpoints=1)
    assert failing.sentence() == f"{expected}, 2 lost workers, 1 skipped checkpoint"


def test_old_pulse_asks_whether_the_audit_was_killed() -> None:
    assert replace(PULSE, at=time.time()).report().endswith("13 min left")
    late = replace(PULSE, at=time.time() - 1200).report()
    assert late.startswith("predicting: 1,200 of 4,000 units, 8 units in flight")
    assert late.endswith("; that was 20 min ago, and nothing since: has it been killed?")


def test_pulse_is_read_from_storage_until_the_audit_ends(tmp_path: Path) -> None:
    paths = RunPaths(Storage(str(tmp_path)))
    assert read_pulse(paths) is None
    put_pulse(paths, PULSE)
    assert read_pulse(paths) == PULSE
    end_pulse(paths)
    assert read_pulse(paths) is None


@pytest.mark.parametrize(
    ("seconds", "text"), [(4.4, "4 s"), (99, "99 s"), (600, "10 min"), (12600, "3.5 h")]
)
def test_durations_as_people_say_them(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_rate_is_that_of_the_last_minute_and_forgets_a_wait() -> None:
    rate = RecentRate(0.0)
    rate.note(3600.0, 1, 100)  # an hour of waiting for the first
    for second in range(1, 301):
        rate.note(3600.0 + second, 2, 200)
    assert rate.per_second() == pytest.approx((2.0, 200.0))


def test_rate_of_units_that_take_minutes_is_that_of_the_last_one() -> None:
    rate = RecentRate(0.0)
    rate.note(600.0, 1, 1000)
    assert rate.per_second() == pytest.approx((1 / 600, 1000 / 600))
    rate.note(900.0, 1, 1000)
    assert rate.per_second() == pytest.approx((1 / 300, 1000 / 300))
