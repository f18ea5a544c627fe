"""How far a disk's head travels for a trace of requests, by where some files lie together.

Those files have one place, near which they are all; any other file lies in one piece, anywhere
alike. What comes out is simulated: the mean over all places of the others, in cylinders.
"""

from collections.abc import Collection, Hashable, Sequence


def travelled(
    trace: Sequence[tuple[Hashable, float]],
    together: Collection[Hashable],
    place: float | None,
    cylinders: int,
) -> float:
    """Cylinders that the head crosses on average from request to request, and back to the first.

    trace: of each request its file, and how many cylinders from the file's beginning.
    together, place: files that lie together, and the cylinder there; None for anywhere.
    cylinders: of the disk.
    """

    def between(one: tuple[Hashable, float], other: tuple[Hashable, float]) -> float:
        (file, at), (next_file, next_at) = one, other
        if file == next_file:
            return abs(at - next_at)
        inside = (file in together) + (next_file in together)
        if inside == 2:
            return 0.0
        return to_place if inside else anywhere

    # means of |x - y| and |x - place| with x and y anywhere alike
    anywhere = cylinders / 3
    to_place = anywhere
    if place is not None:
        to_place = (place**2 + (cylinders - place) ** 2) / (2 * cylinders)
    return sum(between(one, other) for one, other in zip(trace, [*trace[1:], *trace[:1]]))
