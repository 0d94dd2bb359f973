import pytest

from csl_dist.words import clock, counted


@pytest.mark.parametrize(
    ("seconds", "digits", "text"),
    [
        *((5, 0, "0:05"), (65, 0, "1:05"), (3725, 0, "1:02:05"), (59.6, 0, "1:00")),
        *((59.96, 1, "1:00.0"), (125.34, 1, "2:05.3"), (3599.99, 2, "59:59.99")),
        *((-3, 0, "-0:03"), (-0.2, 0, "0:00")),
    ],
)
def test_times_are_minutes_and_seconds(seconds: float, digits: int, text: str) -> None:
    assert clock(seconds, digits) == text


def test_one_is_told_in_the_singular() -> None:
    assert [counted(n, "video") for n in (0, 1, 2000)] == ["0 videos", "1 video", "2,000 videos"]
    assert counted(2, "entry", "entries") == "2 entries"
    assert counted(1, "entry", "entries") == "1 entry"
