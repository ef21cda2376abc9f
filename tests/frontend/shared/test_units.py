"""How numbers read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from frontend.shared.templatetags.units import bytes_, duration, in_unit, ms, pct, rps, signed_pct


@pytest.mark.parametrize(
    "show, value, text",
    [
        (rps, None, "—"),
        (rps, 154479.3, "154,479"),
        (rps, 1234.5, "1,234"),
        (rps, 98.76, "98.8"),
        (rps, 0.524, "0.52"),
        (rps, 0.0, "0"),
        (ms, None, "—"),
        (ms, 0.82, "820 µs"),
        (ms, 4.314, "4.31 ms"),
        (ms, 43.14, "43.1 ms"),
        (ms, 431.4, "431 ms"),
        (ms, 1523.0, "1.52 s"),
        (ms, 15230.0, "15.2 s"),
        (ms, 0.0, "0.00 ms"),
        (pct, 0.925, "92 %"),
        (pct, 0.0312, "3.1 %"),
        (pct, None, "—"),
        (signed_pct, 0.032, "+3.2 %"),
        (signed_pct, -0.121, "−12.1 %"),
        (signed_pct, 2.04, "+204 %"),
        (signed_pct, -0.0001, "±0 %"),
        (signed_pct, None, "—"),
        (bytes_, 512, "512 B"),
        (bytes_, 1536, "1.5 KiB"),
        (bytes_, 12 << 30, "12 GiB"),
        (bytes_, None, "—"),
        (duration, 0.44, "0.4 s"),
        (duration, 42, "42 s"),
        (duration, 200, "3 min 20 s"),
        (duration, 120, "2 min"),
        (duration, 7500, "2 h 05 min"),
        (duration, 277200, "3 d 5 h"),
        (duration, None, "—"),
    ],
)
def test_a_number_has_about_three_significant_digits_and_its_unit(
    show: Callable[[float | None], str], value: float | None, text: str
) -> None:
    assert show(value) == text


@pytest.mark.parametrize(
    "value, unit, text",
    [
        (50517.0, "requests/s", "50,517"),
        (0.93, "ratio", "93 %"),
        (7.42, "CPUs", "7.42 CPUs"),
        (2048.0, "bytes/s", "2.0 KiB/s"),
        (950.0, "bits/s", "950 bit/s"),
        (1_234.0, "bits/s", "1.23 kbit/s"),
        (18_109_671_165.6, "bits/s", "18.1 Gbit/s"),
        (940_000_000.0, "bits/s", "940 Mbit/s"),
        (None, "ms", "—"),
        ("", "ms", "—"),
    ],
)
def test_a_metric_is_shown_in_its_own_unit(value: float | None, unit: str, text: str) -> None:
    assert in_unit(value, unit) == text
