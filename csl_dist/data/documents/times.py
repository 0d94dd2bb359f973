"""Times: how a file writes seconds, and the one place where that becomes seconds and back.

A file may count seconds, milliseconds, frames or hours:minutes:seconds, from 0 or from 1, and its
ends may be the last moment inside (inclusive) or the first one outside. Inside the program a
segment is always half-open, in seconds from 0.
"""

import math
import re
from dataclasses import dataclass
from typing import Literal

from csl_dist.data.documents.edits import Edge

Unit = Literal["s", "ms", "frames", "clock"]

CLOCK = re.compile(r"(?:(\d+):)?(\d{1,2}):(\d{1,2})(?:([.,])(\d+)|[:;](\d{1,3}))?")
"""hh:mm:ss, mm:ss, hh:mm:ss.fraction, or hh:mm:ss:frame."""
FINEST_SECONDS = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """What the numbers of a file mean."""

    unit: Unit = "s"
    fps: float | None = None
    """Frames per second, of `frames` and of `hh:mm:ss:ff`."""
    base: Literal[0, 1] = 0
    """Number of the first frame, or of the first millisecond or second."""
    inclusive: bool = False
    """Whether an end is still inside; of frames and milliseconds, which have a next one."""
    decimals: int | None = None
    """Digits behind the point that the file has; None where it may have any."""
    point: Literal[".", ","] = "."
    """Before the fraction of seconds; spreadsheets of many countries write a comma."""

    def start(self, text: str) -> float:
        """Seconds of a start; ValueError where the text is none."""
        return self._seconds(text, 0)

    def stop(self, text: str) -> float:
        """Seconds at which a segment is over."""
        return self._seconds(text, 1 if self.inclusive else 0)

    def snapped(self, edge: Edge) -> float:
        """The latest time that the file can express between the two frames of an edge."""
        for step in (self._step, FINEST_SECONDS):
            seconds = math.floor(edge.at / step + 1e-3) * step
            if edge.after < seconds:
                return round(seconds, 9)
        return edge.at

    def start_text(self, seconds: float) -> str:
        return self._text(seconds, 0)

    def stop_text(self, seconds: float) -> str:
        return self._text(seconds, 1 if self.inclusive else 0)

    def start_number(self, seconds: float) -> float | int:
        """As a number of a JSON file."""
        return self._number(seconds, 0)

    def stop_number(self, seconds: float) -> float | int:
        return self._number(seconds, 1 if self.inclusive else 0)

    @property
    def _step(self) -> float:
        """Seconds between two times that the file can tell apart."""
        if self.unit == "frames":
            return 1 / self._rate
        if self.unit == "ms":
            return 1e-3
        if self.unit == "clock" and self.decimals is None:
            return 1 / self.fps if self.fps else FINEST_SECONDS
        return 10.0**-self.decimals if self.decimals is not None else FINEST_SECONDS

    @property
    def _rate(self) -> float:
        if not self.fps:
            raise ValueError("frame numbers need a rate; set dataset.labels_fps")
        return self.fps

    def _seconds(self, text: str, last: int) -> float:
        text = text.strip()
        if self.unit == "clock":
            return self._clock_seconds(text)
        number = float(text.replace(self.point, "."))
        if not math.isfinite(number):
            raise ValueError(f"{text} is no time")
        if self.unit == "s":
            return number
        units = self._rate if self.unit == "frames" else 1000.0
        return (number - self.base + last) / units

    def _clock_seconds(self, text: str) -> float:
        found = CLOCK.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no time such as 00:01:23.4")
        hours, minutes, seconds, _, fraction, frame = found.groups()
        if (int(minutes) > 59 and hours) or int(seconds) > 59:
            raise ValueError(f"{text!r} is no time: minutes and seconds go up to 59")
        whole = int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds)
        if frame is not None:
            if int(frame) >= math.ceil(self._rate):
                raise ValueError(f"{text!r}: there is no frame {frame} at {self._rate:g} fps")
            return whole + int(frame) / self._rate
        return whole + float(f"0.{fraction}") if fraction else float(whole)

    def _number(self, seconds: float, last: int) -> float | int:
        if self.unit == "s":
            return round(seconds, 6)
        units = self._rate if self.unit == "frames" else 1000.0
        return round(seconds * units) + self.base - last

    def _text(self, seconds: float, last: int) -> str:
        if self.unit == "clock":
            return self._clock_text(seconds)
        number = self._number(seconds, last)
        if isinstance(number, int):
            return str(number)
        return _shortest(number, self.decimals or 0).replace(".", self.point)

    def _clock_text(self, seconds: float) -> str:
        if self.fps and self.decimals is None:
            frames = round(seconds * self.fps)
            whole = int(frames / self.fps + 1e-9)
            rest = f":{frames - math.ceil(whole * self.fps - 1e-9):02d}"
        else:
            digits = _shortest(seconds, self.decimals or 0).partition(".")
            whole, rest = int(digits[0]), digits[1].replace(".", self.point) + digits[2]
        return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}{rest}"


def _shortest(seconds: float, decimals: int) -> str:
    """At least so many digits behind the point, and as many as it takes, up to six."""
    for digits in range(decimals, 6):
        if abs(round(seconds, digits) - seconds) < FINEST_SECONDS / 2:
            return f"{seconds:.{digits}f}"
    return f"{seconds:.6f}"


def decimals_of(texts: list[str], point: str = ".") -> int:
    """The most digits behind a point among some texts."""
    return max((len(text.partition(point)[2]) for text in texts), default=0)
