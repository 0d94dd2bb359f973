"""Words for people that many modules need: counts and times."""


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """`1 video`, `2,000 videos`; `plural` where it is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def clock(seconds: float, digits: int = 0) -> str:
    """Minutes and seconds, with hours where there are any: `2:05`, `1:02:05`, `2:05.3`."""
    scale = 10**digits
    units = round(abs(seconds) * scale)
    minutes, rest = divmod(units, 60 * scale)
    hours, minutes = divmod(minutes, 60)
    sign = "-" if seconds < 0 and units else ""
    text = f"{rest / scale:0{digits + 3 if digits else 2}.{digits}f}"
    return f"{sign}{hours}:{minutes:02d}:{text}" if hours else f"{sign}{minutes}:{text}"
