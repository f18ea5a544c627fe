"""The models against cases whose answers are known in closed form."""

import pytest

from pgrerun.lab.models import closed_network, workstation


def test_balanced_stations_follow_n_over_n_plus_m_minus_1():
    for customers in (1, 2, 5, 20):
        solution = closed_network.solve({"a": 1.0, "b": 1.0, "c": 1.0}, customers)
        assert solution.utilization["a"] == pytest.approx(customers / (customers + 2))


def test_a_station_that_serves_everybody_at_once_delays_nobody():
    shared = closed_network.solve({"processor": 0.0, "disk": 1.0}, 4, delays={"disk"})
    assert shared.throughput == pytest.approx(4.0)


def test_overlap_bounds_the_queueing_model():
    demands = {"processor": 0.42, "disk": 0.58}
    for customers in (1, 2, 3, 8):
        bound = closed_network.perfect_overlap(demands, customers)
        assert closed_network.solve(demands, customers).throughput <= bound.throughput + 1e-12
    assert closed_network.perfect_overlap(demands, 2).utilization["processor"] == pytest.approx(
        0.42 / 0.58
    )


@pytest.mark.parametrize(
    "demands, customers", [({}, 1), ({"disk": 0.0}, 1), ({"disk": -1.0}, 1), ({"disk": 1.0}, 0)]
)
def test_networks_without_meaning_are_refused(demands, customers):
    with pytest.raises(ValueError):
        closed_network.solve(demands, customers)


@pytest.mark.parametrize("force", [True, False])
def test_one_simulated_backend_takes_the_sum_of_its_demands(force):
    demand = workstation.Demand(processor=0.6, reads=11.86, writes=13.79, force=force)
    played = workstation.simulate(
        demand, backends=1, disk_rate=30, variability=0.8, transactions=5000
    )
    assert 1 / played.throughput == pytest.approx(0.6 + 25.65 / 30, rel=0.02)
    assert played.processor + played.disk == pytest.approx(1.0)


def test_exponential_service_meets_mean_value_analysis():
    # One request per slice and equal classes: the network that the formula solves.
    demand = workstation.Demand(processor=2 * 0.5, reads=1, writes=0, force=False)
    played = workstation.simulate(
        demand, backends=3, disk_rate=2, variability=1, transactions=20000, seed=3
    )
    exact = closed_network.solve({"processor": 1.0, "disk": 0.5}, 3)
    assert played.throughput == pytest.approx(exact.throughput, rel=0.03)


def test_constant_balanced_service_overlaps_perfectly():
    demand = workstation.Demand(processor=2.0, reads=1, writes=0, force=True)
    played = workstation.simulate(demand, backends=2, disk_rate=0.5, variability=0)
    assert played.processor > 0.97


def test_variability_is_found_again():
    rate = 2 / (1 - 0.57)
    program = workstation.Demand(processor=0.57, reads=1, writes=1, force=True)
    made = workstation.simulate(
        program, backends=2, disk_rate=rate, variability=0.7, transactions=20000, seed=5
    )
    assert workstation.calibrate_variability(0.57, made.processor, seed=9) == pytest.approx(
        0.7, abs=0.08
    )
