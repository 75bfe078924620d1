"""Shapes are arithmetic: seconds in, users out."""

from __future__ import annotations

from locust.util.load_locustfile import is_shape_class

import pytest

import _shapes
from _shapes import PlannedShape, ramp, soak, spike, steps


@pytest.mark.parametrize(("second", "users"), [(0, 1), (5, 50), (10, 100), (12, 100), (15, None)])
def test_a_ramp_rises_evenly_holds_and_ends(second: float, users: int | None) -> None:
    assert ramp(second, users=100, over=10, hold=5) == users


@pytest.mark.parametrize(("second", "users"), [(0, 1), (30, 40), (89, 40), (90, None)])
def test_a_soak_warms_up_and_holds(second: float, users: int | None) -> None:
    assert soak(second, users=40, warm_up=30, hold=60) == users


@pytest.mark.parametrize(
    ("second", "users"), [(0, 5), (9.9, 5), (10, 50), (19.9, 50), (20, 5), (30, None)]
)
def test_a_spike_comes_and_goes(second: float, users: int | None) -> None:
    assert spike(second, base=5, peak=50, at=10, lasting=10, total=30) == users


@pytest.mark.parametrize(("second", "users"), [(0, 10), (59, 10), (60, 20), (120, 30), (180, None)])
def test_steps_climb_until_there_are_no_more(second: float, users: int | None) -> None:
    assert steps(second, users=10, every=60, count=3) == users


def test_importing_the_room_activates_no_shape() -> None:
    assert not [name for name, item in vars(_shapes).items() if is_shape_class(item)]


def test_a_class_with_a_plan_is_a_shape_that_locust_runs() -> None:
    class Ramp(PlannedShape):
        plan = staticmethod(lambda second: ramp(second, users=8, over=60))  # type: ignore[assignment]

    shape = Ramp()  # type: ignore[no-untyped-call]

    assert is_shape_class(Ramp)
    assert shape.tick() == (1, 100.0)
