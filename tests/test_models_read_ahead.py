"""A disk that serves a request at a time, with UNIX's reading ahead or without."""

import pytest

from pgrerun.lab.models.read_ahead import Request, calibrated, response


def rowed(pages: int) -> list[Request]:
    return [Request(number + 1, "f", number) for number in range(pages)]


def test_nobody_reads_ahead_of_places_apart():
    apart = [Request(number + 1, "f", 10 * number) for number in range(8)]
    for ahead in (True, False):
        assert response(apart, 8, 2.0, lambda pages: 0.5, ahead=ahead) == pytest.approx(6.0)


def test_a_row_is_fetched_while_its_pages_are_worked_on():
    # the first two are waited for; from then on the disk, twice as fast, keeps ahead
    assert response(rowed(100), 100, 100.0, lambda pages: 0.5, ahead=True) == pytest.approx(101.0)
    assert response(rowed(100), 100, 100.0, lambda pages: 0.5, ahead=False) == pytest.approx(150.0)
    # a disk that is slower than the work is what is waited for
    assert response(rowed(100), 100, 10.0, lambda pages: 0.5, ahead=True) < 52


def test_a_jump_ends_the_row():
    jumps = []
    for number in range(0, 90, 3):
        for place in (number, 1000 + number):  # away after every page
            jumps.append(Request(len(jumps) + 1, "f", place))
    least = len(jumps) * 0.5 + 30.0
    assert response(jumps, len(jumps), 30.0, lambda pages: 0.5, ahead=True) == pytest.approx(least)


def test_the_service_time_is_found_again():
    def seconds(service: float) -> float:
        return response(rowed(50), 50, 1.0, lambda pages: service, ahead=True)

    assert calibrated(seconds, seconds(0.02)) == pytest.approx(0.02)
    with pytest.raises(ValueError, match="sign"):
        calibrated(seconds, 1e6)
